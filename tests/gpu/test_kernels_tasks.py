"""Kernels of optional features of a task against their references, two models at once."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from difflogic.core import prng, rules
from difflogic.core.bits import IGNORED
from difflogic.engine import control as c
from difflogic.engine.events import FaultRates
from difflogic.engine.shape import Shape
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.model import bit_words, corner_words, pool_words
from difflogic.gpu.plan import BatchSource
from difflogic.model.circuit import Circuit
from difflogic.reference.kernels.d_damage import d_damage
from difflogic.reference.kernels.d_faults import d_faults
from difflogic.reference.kernels.damage import damage
from difflogic.reference.kernels.draw_corners import draw_corners
from difflogic.reference.kernels.draw_faults import draw_faults
from difflogic.reference.kernels.draw_pool import draw_pool
from difflogic.reference.kernels.draw_samples import draw_samples
from difflogic.reference.kernels.faults import faults
from difflogic.reference.kernels.fire_mask import fire_mask
from difflogic.reference.kernels.hard_damage import hard_damage
from difflogic.reference.kernels.hard_faults import hard_faults
from difflogic.reference.kernels.rule_target import rule_target
from difflogic.reference.kernels.same_start import same_start
from difflogic.reference.kernels.sample_losses import sample_losses
from difflogic.reference.kernels.seed_boards import seed_boards
from difflogic.reference.kernels.seed_grid import seed_grid
from difflogic.reference.kernels.step_loss import step_loss
from difflogic.reference.kernels.step_loss_backward import step_loss_backward
from difflogic.reference.kernels.write_back import write_back
from tests import tolerances
from tests.gpu.rig import Rig, assert_matches_reference, rig
from tests.random_circuits import bits, random_circuit


def control_words(seeds: tuple[int, ...]) -> np.ndarray:
    words = np.arange(8 * len(seeds), dtype=np.uint32).reshape(-1, 8)
    for row, seed in zip(words, seeds, strict=True):
        row[c.DATA_KEY], row[c.TRAIN_KEY] = prng.split(prng.key_from_seed(seed))
    return words


M = 2
CONTROL = control_words((23, 24))

SHAPES = [
    Shape(1, 3, 3, 1, steps=4),
    Shape(3, 5, 7, 2, steps=4, loss_channels=2, periodic=True),
    Shape(17, 4, 16, 1, steps=4),
    Shape(33, 3, 5, 3, steps=4, loss_channels=2),
]
DAMAGED = [replace(shape, damage_side=side, damage_steps=(0, 2)) for shape in SHAPES for side in (1, 3, 1000)]


def circuits(shape: Shape) -> list[Circuit]:
    return [random_circuit(np.random.default_rng(0), shape.channels, periodic=shape.periodic)] * M


def corners_of(shape: Shape, samples: int, seed: int = 1) -> np.ndarray:
    high = (shape.height, shape.width)
    return np.random.default_rng(seed).integers(0, high, (M, len(shape.damage_steps), samples, 2))


def put_corners(r: Rig, corners: np.ndarray) -> None:
    """Put the corners of the batch behind those of the evaluation grids."""
    words = corner_words(np.zeros((M, corners.shape[1], 0, 2), dtype=np.int64), r.plan)
    first = 32 * r.plan.probe_groups
    words[:, :, first : first + corners.shape[2]] = corners
    r.put("corners", words)


@pytest.mark.parametrize("shape", [Shape(1, 3, 3, 1, 1), Shape(17, 4, 4, 1, 1), Shape(20, 3, 5, 1, 1)], ids=str)
def test_boards(device: GpuDevice, shape: Shape) -> None:
    with rig(device, circuits(shape), shape, batch_source=BatchSource("boards")) as r:
        r.put("control", CONTROL)
        r.run(*r.work.seed)
        got = r.get_cells(r.work.state(0), 1, shape.cells)
    assert_matches_reference(got, lambda m, state: seed_boards(shape, CONTROL[m], state))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_same_start(device: GpuDevice, shape: Shape) -> None:
    same = bits(np.random.default_rng(2), shape.cells_per_grid, shape.channels)
    with rig(device, circuits(shape), shape, batch_source=BatchSource("picture")) as r:
        r.put("same", same)
        r.run(*r.work.seed)
        got = r.get_cells(r.work.state(0), shape.channels, shape.cells)
    assert_matches_reference(got, lambda _, state: same_start(shape, same, state))


@pytest.mark.parametrize("shape", [replace(shape, loss_channels=1) for shape in SHAPES], ids=str)
def test_rule_targets(device: GpuDevice, shape: Shape) -> None:
    rng = np.random.default_rng(3)
    rule = rng.integers(0, 2, rules.ENTRIES).astype(np.uint32)
    state = bits(rng, M, shape.channels, shape.cells)
    with rig(device, circuits(shape), shape, batch_source=BatchSource(ruled=True)) as r:
        r.put_cells(r.work.state(0), state)
        r.put("rule", rule)
        r.run(r.work.seed[-1])
        got = r.get_cells("targets", 1, shape.cells)
    assert_matches_reference(got, lambda m, targets: rule_target(shape, state[m], rule, targets))


@pytest.mark.parametrize("probes", [0, 40])
@pytest.mark.parametrize("shape", DAMAGED[::3], ids=str)
def test_corners(device: GpuDevice, shape: Shape, probes: int) -> None:
    first, steps = 32 * -(-probes // 32), len(shape.damage_steps)
    with rig(device, circuits(shape), shape, probes=probes, hard_batch=shape.batch) as r:
        before = r.get("corners", steps, r.plan.corner_samples, 2, dtype=np.uint32)
        r.put("control", CONTROL)
        r.run(*r.work.corners)
        got = r.get("corners", steps, r.plan.corner_samples, 2, dtype=np.uint32)
    drawn = got[:, :, first : first + shape.batch]
    assert_matches_reference(drawn, lambda m, corners: draw_corners(shape, CONTROL[m], corners))
    np.testing.assert_array_equal(got[:, :, :first], before[:, :, :first])


@pytest.mark.parametrize("shape", DAMAGED, ids=str)
def test_damage(device: GpuDevice, shape: Shape) -> None:
    rng = np.random.default_rng(4)
    state = rng.random((M, shape.channels, shape.cells), dtype=np.float32) + np.float32(1)
    corners = corners_of(shape, shape.batch)

    def damage_of(mark: int, m: int, state: np.ndarray) -> None:
        damage(shape, mark, corners[m], state)

    with rig(device, circuits(shape), shape, probes=3, hard_batch=shape.batch) as r:
        put_corners(r, corners)
        for step in shape.damage_steps:
            r.put_cells(r.work.state(step), state)
            r.run(*r.work._damage(step))
        got = [r.get_cells(r.work.state(step), *state.shape[1:]) for step in shape.damage_steps]
    for mark, damaged in enumerate(got):
        assert_matches_reference(damaged, partial(damage_of, mark), state)
        assert (damaged == 0).any(axis=(1, 2)).all()


@pytest.mark.parametrize("shape", DAMAGED, ids=str)
def test_damaged_adjoints(device: GpuDevice, shape: Shape) -> None:
    rng = np.random.default_rng(5)
    corners = corners_of(shape, shape.batch)
    with rig(device, circuits(shape), shape) as r:
        given = rng.random((M, 9 * shape.channels, shape.cells), dtype=np.float32)
        put_corners(r, corners)
        r.put_cells(r.work.d_patches(2), given)
        r.run(*r.work._d_events(2))
        got = r.get_cells(r.work.d_patches(2), *given.shape[1:])
        for m in range(M):
            expected = given[m].copy()
            d_damage(shape, 1, corners[m], expected)
            assert (expected == 0).any()
            np.testing.assert_array_equal(got[m], expected)


@pytest.mark.parametrize("probes", [1, 40])
@pytest.mark.parametrize("shape", DAMAGED, ids=str)
def test_hard_damage(device: GpuDevice, shape: Shape, probes: int) -> None:
    rng = np.random.default_rng(6)
    with rig(device, circuits(shape), shape, probes=probes, hard_batch=shape.batch) as r:
        words = rng.integers(0, 2**32, (M, shape.channels, r.hard_shape.cells), dtype=np.uint32)
        corners = corners_of(shape, 32 * r.plan.groups)
        r.put("corners", corners.astype(np.uint32))
        r.put_cells(r.work.words(2), words)
        r.run(*r.work._damage(2, hard=True))
        got = r.get_cells(r.work.words(2), *words.shape[1:], dtype=np.uint32)
        assert_matches_reference(got, lambda m, words: hard_damage(r.hard_shape, 1, corners[m], words), words)


JUDGED = [replace(shape, loss_steps=(1, 3, 4), targets=targets) for shape in SHAPES for targets in (1, 3)]


@pytest.mark.parametrize("shape", JUDGED, ids=str)
def test_earlier_losses(device: GpuDevice, shape: Shape) -> None:
    rng = np.random.default_rng(7)
    states = rng.random((2, M, shape.channels, shape.cells), dtype=np.float32)
    targets = rng.random((M, shape.targets, shape.loss_channels, shape.cells), dtype=np.float32)
    targets[rng.random(targets.shape) < 0.3] = IGNORED
    with rig(device, circuits(shape), shape) as r:
        r.put_cells("targets", targets)
        given = rng.random((M, 9 * shape.channels, shape.cells), dtype=np.float32)
        for step, state in zip((1, 3), states, strict=True):
            r.put_cells(r.work.state(step), state)
            r.put_cells(r.work.d_patches(step), given)
            r.run(*r.work._event("step_loss", step, (1, 3), {"state": r.work.state(step)}))
        partials = r.get("loss_partials", 3, r.plan.chunks)
        r.run(*r.work._d_events(3))
        got = r.get_cells(r.work.d_patches(3), *given.shape[1:])
        for m in range(M):
            d_judged = np.empty((2, shape.loss_channels, shape.cells), dtype=np.float32)
            by_cell = np.empty((3, shape.cells), dtype=np.float32)
            for mark in range(2):
                step_loss(shape, mark, states[mark, m], targets[m], d_judged, by_cell)
                by_chunk = np.add.reduceat(by_cell[mark], np.arange(0, shape.cells, 16))
                np.testing.assert_allclose(partials[m, mark, : len(by_chunk)], by_chunk, rtol=tolerances.LOSS_RTOL)
                assert not partials[m, mark, len(by_chunk) :].any()
            expected = given[m].copy()
            step_loss_backward(shape, 1, d_judged, expected)
            np.testing.assert_allclose(got[m], expected, rtol=0, atol=tolerances.STATE_ATOL)


@pytest.mark.parametrize("part", [1, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_pool_is_drawn_from(device: GpuDevice, shape: Shape, part: int) -> None:
    sizes = (M, part * shape.batch, shape.height, shape.width, shape.channels)
    pool = np.random.default_rng(8).integers(0, 2, sizes, dtype=np.uint8)
    with rig(device, circuits(shape), shape, batch_source=BatchSource(pool=part * shape.batch)) as r:
        r.put("control", CONTROL)
        r.put("pool", np.stack([pool_words(each) for each in pool]))
        r.run(r.work.seed[-1])
        got = r.get_cells(r.work.state(0), shape.channels, shape.cells)
        places = r.get("places", shape.batch, dtype=np.uint32)
    for m in range(M):
        expected, at = np.empty_like(got[m]), np.empty(shape.batch, dtype=np.int64)
        draw_pool(shape, CONTROL[m], pool[m], expected, at)
        np.testing.assert_array_equal(places[m], at)
        np.testing.assert_array_equal(got[m], expected)


@pytest.mark.parametrize("samples", [1, 5, 70_000])
@pytest.mark.parametrize("shape", JUDGED, ids=str)
def test_samples_are_drawn(device: GpuDevice, shape: Shape, samples: int) -> None:
    """Samples come with targets, of which some do not count; other channels stay the same."""
    if samples > 5 and shape.cells_per_grid > 9:
        return
    rng = np.random.default_rng(11)
    x = bits(rng, samples, shape.height, shape.width, 1).astype(np.uint8)
    y = rng.integers(-1, 2, (samples, shape.targets, shape.height, shape.width, shape.loss_channels), dtype=np.int8)
    before = rng.random((M, shape.channels, shape.cells), dtype=np.float32)
    with rig(device, circuits(shape), shape, batch_source=BatchSource("zeros", samples=samples, given=1)) as r:
        r.put("control", CONTROL)
        r.put("x", bit_words(x))
        r.put("y", np.stack([bit_words(y > 0), bit_words(y >= 0)], axis=-1))
        r.put_cells(r.work.state(0), before)
        r.run(r.work.seed[-1])
        got = r.get_cells(r.work.state(0), shape.channels, shape.cells)
        targets = r.get_cells("targets", shape.targets, shape.loss_channels, shape.cells)
    for m in range(M):
        state, wanted = before[m].copy(), np.empty_like(targets[m])
        draw_samples(shape, CONTROL[m], x, y, state, wanted)
        np.testing.assert_array_equal(got[m], state)
        np.testing.assert_array_equal(targets[m], wanted)


@pytest.mark.parametrize("shape", [*SHAPES, *JUDGED], ids=str)
def test_sample_losses(device: GpuDevice, shape: Shape) -> None:
    rng = np.random.default_rng(9)
    state = rng.random((M, shape.channels, shape.cells), dtype=np.float32)
    targets = bits(rng, M, shape.targets, shape.loss_channels, shape.cells)
    targets[rng.random(targets.shape) < 0.3] = IGNORED
    with rig(device, circuits(shape), shape, batch_source=BatchSource(pool=shape.batch)) as r:
        r.put_cells(r.work.state(shape.steps), state)
        r.put_cells("targets", targets)
        r.run(r.work.update[0])
        got = r.get("sample_losses", shape.batch)
    for m in range(M):
        expected = np.empty(shape.batch, dtype=np.float32)
        sample_losses(shape, state[m], targets[m], expected)
        np.testing.assert_allclose(got[m], expected, rtol=tolerances.LOSS_RTOL)


@pytest.mark.parametrize("resets", [0, 1, 5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_batch_goes_back(device: GpuDevice, shape: Shape, resets: int) -> None:
    """The first of equal losses is replaced; the second model's epoch was skipped."""
    rng = np.random.default_rng(10)
    size = (shape.channels, shape.cells)
    state, fresh = rng.random((M, *size), dtype=np.float32), bits(rng, M, *size)
    losses = rng.integers(0, 3, (M, shape.batch)).astype(np.float32)
    places = 2 * np.arange(shape.batch) + rng.integers(0, 2, (M, shape.batch))
    pool = rng.integers(0, 2, (M, 2 * shape.batch, shape.height, shape.width, shape.channels), dtype=np.uint8)
    control = CONTROL.copy()
    control[:, c.NONFINITE] = 0, 1
    with rig(device, circuits(shape), shape, batch_source=BatchSource(pool=2 * shape.batch, resets=resets)) as r:
        before = np.stack([pool_words(each) for each in pool])
        for name, values in (("control", control), ("places", places.astype(np.uint32)), ("sample_losses", losses)):
            r.put(name, values)
        r.put("pool", before)
        r.put_cells(r.work.state(shape.steps), state)
        r.put_cells("fresh", fresh)
        r.run(r.work.update[-1])
        got = r.get("pool", 2 * shape.batch, r.plan.grid_words, dtype=np.uint32)
    expected = pool[0].copy()
    write_back(shape, resets, control[0], state[0], fresh[0], losses[0], places[0], expected)
    np.testing.assert_array_equal(got[0], pool_words(expected))
    np.testing.assert_array_equal(got[1], before[1])


RATES = FaultRates(1 << 30, 1 << 29, listed=1)
FAULTY = [replace(shape, faults=RATES) for shape in SHAPES]
KEYS = np.random.default_rng(8).integers(0, 2**32, (M, 2, 2), dtype=np.uint32)


def put_faults(r: Rig, shape: Shape) -> np.ndarray:
    listed = np.zeros(shape.cells_per_grid, dtype=np.uint32)
    listed[:2] = 2, 1
    r.put("fault_keys", KEYS)
    r.put("listed", listed)
    return listed


@pytest.mark.parametrize("shape", FAULTY, ids=str)
def test_faults_of_states_and_of_their_adjoints(device: GpuDevice, shape: Shape) -> None:
    rng = np.random.default_rng(9)
    state = rng.random((M, shape.channels, shape.cells), dtype=np.float32)
    with rig(device, circuits(shape), shape) as r:
        listed = put_faults(r, shape)
        r.put_cells(r.work.state(2), state)
        given = rng.random((M, 9 * shape.channels, shape.cells), dtype=np.float32)
        r.put_cells(r.work.d_patches(2), given)
        r.run(*r.work._damage(2), *r.work._d_events(2))
        got = r.get_cells(r.work.state(2), *state.shape[1:])
        d_patches = r.get_cells(r.work.d_patches(2), *given.shape[1:])
        assert_matches_reference(got, lambda m, state: faults(shape, 2, KEYS[m, 1], listed, state), state)
        for m in range(M):
            expected = given[m].copy()
            d_faults(shape, 2, KEYS[m, 1], listed, expected)
            assert (expected < 0).any()
            np.testing.assert_array_equal(d_patches[m], expected)


@pytest.mark.parametrize("probes", [1, 40])
@pytest.mark.parametrize("shape", FAULTY, ids=str)
def test_hard_faults(device: GpuDevice, shape: Shape, probes: int) -> None:
    """Evaluation grids have faults by their key, the batch by its own, except at step 0: the soft pass made those."""
    rng = np.random.default_rng(10)
    with rig(device, circuits(shape), shape, probes=probes, hard_batch=shape.batch) as r:
        first = r.plan.probe_groups * shape.cells_per_grid
        words = rng.integers(0, 2**32, (M, shape.channels, r.hard_shape.cells), dtype=np.uint32)
        listed = put_faults(r, shape)
        for step in (0, 1):
            r.put_cells(r.work.words(step), words)
            r.run(*r.work._damage(step, hard=True))
            got = r.get_cells(r.work.words(step), *words.shape[1:], dtype=np.uint32)

            def reference(m: int, words: np.ndarray, step: int = step) -> None:
                for whose, part in enumerate((words[:, :first], words[:, first:])):
                    groups = replace(shape, batch=part.shape[1] // shape.cells_per_grid)
                    if step or not whose:
                        hard_faults(groups, step, KEYS[m, whose], listed, part)

            assert_matches_reference(got, reference, words)


def test_the_key_of_faults(device: GpuDevice) -> None:
    with rig(device, circuits(FAULTY[0]), FAULTY[0]) as r:
        r.put("control", CONTROL)
        r.put("fault_keys", KEYS)
        r.run(*r.work.corners)
        got = r.get("fault_keys", 2, 2, dtype=np.uint32)
    assert_matches_reference(got[:, 1], lambda m, key: draw_faults(CONTROL[m], key))
    np.testing.assert_array_equal(got[:, 0], KEYS[:, 0])


@pytest.mark.parametrize(
    "shape", [Shape(2, 16, 16, 8, 1), Shape(1, 3, 3, 1, 2), Shape(17, 5, 7, 3, 1), Shape(33, 3, 4, 2, 1)], ids=str
)
def test_start_grids(device: GpuDevice, shape: Shape) -> None:
    control = control_words((23, 24))
    drawn = [random_circuit(np.random.default_rng(0), shape.channels)] * 2
    with rig(device, drawn, shape) as r:
        r.put("control", control)
        r.run(*r.work.seed)
        got = r.get_cells(r.work.state(0), shape.channels, shape.cells)
        np.testing.assert_array_equal(r.get("control", 8, dtype=np.uint32), control)
    assert_matches_reference(got, lambda m, state: seed_grid(shape, control[m], state))


@pytest.mark.parametrize("fire_rate", [0.1, 0.6])
@pytest.mark.parametrize("shape", [Shape(2, 14, 14, 1, 50), Shape(1, 3, 3, 1, 1), Shape(3, 5, 7, 1, 6)], ids=str)
def test_fire_masks(device: GpuDevice, shape: Shape, fire_rate: float) -> None:
    control = control_words((23, 24))
    with rig(device, [random_circuit(np.random.default_rng(0), 1)] * 2, shape, fire_rate=fire_rate) as r:
        r.put("control", control)
        r.run(r.work.dispatch("fire_mask"))
        got = r.get("masks", shape.steps, shape.cells_per_grid)
    assert_matches_reference(got, lambda m, masks: fire_mask(shape, fire_rate, control[m], masks))
    assert len(np.unique(got)) == 2
