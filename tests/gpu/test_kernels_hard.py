"""Hard kernels against their references: every bit."""

import dataclasses

import numpy as np
import pytest

from difflogic.engine.shape import Shape
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import LaunchConfig
from difflogic.reference.kernels.hard_forward import hard_forward
from difflogic.reference.kernels.hard_loss import hard_loss
from difflogic.reference.kernels.pack import pack
from tests.gpu.rig import LAUNCHES, POISON, SAMPLE, rig
from tests.random_circuits import bits, random_circuit
from tests.sampled import sampled

M = 2

SHAPES = {
    "zero": (Shape(3, 5, 7, 2, steps=3), 1.0, 40),
    "periodic": (Shape(33, 3, 3, 3, steps=2, periodic=True), 1.0, 1),
    "asynchronous": (Shape(17, 4, 6, 1, steps=2), 0.5, 32),
}


@pytest.mark.parametrize("launch", sampled(LAUNCHES, SAMPLE), ids=str)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("trees", [False, True])
def test_hard_forward(device: GpuDevice, name: str, launch: LaunchConfig, trees: bool) -> None:
    shape, fire_rate, probes = SHAPES[name]
    rng = np.random.default_rng(6)
    at = shape.steps - 1
    options = {"channels": shape.channels, "periodic": shape.periodic, "trees": trees}
    drawn = [random_circuit(np.random.default_rng(m), **options) for m in range(M)]
    ids = rng.integers(0, 16, (M, drawn[0].gates), dtype=np.uint32)
    masks = (rng.random((M, shape.steps, shape.cells_per_grid)) <= fire_rate).astype(np.float32)
    options = {"launch": launch, "fire_rate": fire_rate, "probes": probes, "hard_batch": shape.batch}
    with rig(device, drawn, shape, **options) as r:
        assert r.plan.wirings[0].trees is trees
        cells = r.hard_shape.cells
        words = rng.integers(0, 2**32, (M, shape.channels, cells), dtype=np.uint32)
        r.put("gate_ids", ids)
        r.put("hard_masks", masks)
        r.put_cells(r.work.words(at), words)
        r.run(r.work.hard_forward()[at])
        got = r.get_cells(r.work.words(at + 1), *words.shape[1:], dtype=np.uint32)
        for m in range(M):
            nodes = np.empty((r.layouts[m].nodes, cells), dtype=np.uint32)
            masked = masks[m] if fire_rate < 1 else None
            expected = np.empty_like(words[m])
            hard_forward(r.hard_shape, at, r.layouts[m], ids[m], masked, words[m], expected, nodes)
            np.testing.assert_array_equal(got[m], expected)


@pytest.mark.parametrize("probes", [1, 32, 40])
@pytest.mark.parametrize("batch", [1, 17, 32, 33, 64])
def test_pack(device: GpuDevice, batch: int, probes: int) -> None:
    shape = Shape(batch, 3, 5, 2, steps=1)
    rng = np.random.default_rng(7)
    grids = bits(rng, M, *(batch, 3, 5, 2))
    drawn = [random_circuit(rng)] * M
    with rig(device, drawn, shape, probes=probes, hard_batch=batch) as r:
        state = grids.reshape(M, -1, 2).swapaxes(1, 2).astype(np.float32)
        targets = bits(rng, M, 1, shape.cells)
        r.put_cells(r.work.state(0), state)
        r.put_cells("targets", targets)
        r.run(r.work.evaluation[0])
        words = r.get_cells(r.work.words(0), 2, r.hard_shape.cells, dtype=np.uint32)
        hard_targets = r.get("hard_targets", 1, 1, r.hard_shape.cells, 2, dtype=np.uint32)
        assert not r.get("counts", r.plan.groups, 2, dtype=np.uint32).any()
    for m in range(M):
        expected = np.full_like(words[m], POISON)
        of_targets = np.full_like(hard_targets[m], POISON)
        pack(shape, state[m], targets[m][None], expected, of_targets, np.empty((len(expected), 2)))
        np.testing.assert_array_equal(words[m], expected)
        np.testing.assert_array_equal(hard_targets[m], of_targets)


@pytest.mark.parametrize("loss_channels", [1, 3])
@pytest.mark.parametrize(("probes", "batch"), [(1, 1), (32, 2), (40, 17), (64, 33), (5, 64)])
def test_hard_loss(device: GpuDevice, probes: int, batch: int, loss_channels: int) -> None:
    """Mismatches with the targets of this step are added to earlier ones, for evaluation grids and batch separately."""
    shape = Shape(batch, 3, 4, 3, steps=3, loss_channels=loss_channels, loss_steps=(2, 3), targets=2)
    rng = np.random.default_rng(8)
    with rig(device, [random_circuit(rng, 3)] * M, shape, probes=probes, hard_batch=batch) as r:
        groups, first = r.plan.groups, r.plan.probe_groups
        words = rng.integers(0, 2**32, (M, 3, r.hard_shape.cells), dtype=np.uint32)
        r.put_cells(r.work.words(shape.steps), words)
        targets = rng.integers(0, 2**32, (M, 2, r.hard_shape.cells, loss_channels, 2), dtype=np.uint32)
        before = rng.integers(0, 1000, (M, groups, 2), dtype=np.uint32)
        r.put("hard_targets", targets)
        r.put("counts", before)
        r.run(*r.work._event("hard_loss", 3, (2, 3), r.work._hard_state(3)))
        counts = r.get("counts", groups, 2, dtype=np.uint32)
    for m in range(M):
        for part in (slice(0, first), slice(first, groups)):
            cells = slice(12 * part.start, 12 * part.stop)
            expected = before[m, part].copy()
            packed = dataclasses.replace(shape, batch=len(expected))
            hard_loss(packed, 1, words[m][:, cells], targets[m, :, cells].swapaxes(1, 2), expected)
            np.testing.assert_array_equal(counts[m, part], expected)
