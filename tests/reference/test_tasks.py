"""The reference's tasks against the model's definition, and their gradients against finite differences."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from difflogic.config.schema import Config
from difflogic.core import prng, rules
from difflogic.core.bits import IGNORED, pack_grids
from difflogic.devices.check_gradients import Subject
from difflogic.engine.job import Job, TrainState
from difflogic.engine.shape import Shape
from difflogic.errors import DataError
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.rollout import RolloutSpec, hard_rollout
from tests import naive, tolerances
from tests.jobs import start
from tests.reference.test_finite_differences import assert_is_derivative
from tests.sampled import sampled
from tests.tasks import TASKS, task_job


@pytest.fixture(params=sampled(TASKS, [*TASKS][::4]))
def job(request: pytest.FixtureRequest) -> Job:
    return task_job(request.param)


def words(key: prng.Key, count: int) -> list[int]:
    return [int(word) for word in prng.random_bits(key, count)]


def fresh_starts(job: Job, key: prng.Key) -> np.ndarray:
    """`[B, H, W, C]` by the words of the configuration."""
    task, batch, channels = job.config.task, job.config.train.batch, job.circuit.channels
    grids = np.zeros((batch, task.height, task.width, channels))
    drawn = words(prng.split(key)[1], grids.size if task.start == "random" else batch)
    if task.start == "random":
        grids.flat = [word & 1 for word in drawn]
    elif task.start == "boards":
        for grid, word in zip(grids, drawn, strict=True):
            grid.flat = [int(bit) for bit in f"{word % 2**grid.size:0{grid.size}b}"]
    elif task.start == "seed":
        grids[:, task.height // 2, task.width // 2] = 1
    elif task.start == "picture":
        assert job.start is not None
        grids[:] = job.start
    if job.data is not None:
        grids[..., : job.config.data.channels] = job.data.x[drawn_samples(job, key)]
    return grids


def drawn_samples(job: Job, key: prng.Key) -> list[int]:
    """Return the samples that are learned."""
    assert job.data is not None
    return [word * len(job.data) >> 32 for word in words(prng.fold_in(key, 0x73616D70), job.config.train.batch)]


def missing(codes: np.ndarray) -> np.ndarray:
    """`[J, N, H, W, C]`, NaN where a value does not count."""
    return np.where(codes < 0, np.nan, codes).swapaxes(0, 1)


def squares(job: Job, key: prng.Key) -> naive.Squares:
    """Corner by corner: a 32-bit word is a share of the grid's side."""
    task, batch = job.config.task, job.config.train.batch
    drawn = iter(words(prng.fold_in(key, 0x64616D61), 2 * batch * len(task.damage_steps)))
    return {
        step: (
            task.damage_side,
            [(next(drawn) * task.height >> 32, next(drawn) * task.width >> 32) for _ in range(batch)],
        )
        for step in task.damage_steps
    }


def word_pair(key: prng.Key, index: int, step: int = 0) -> tuple[int, int]:
    x0, x1 = prng.threefry2x32(key, np.array([index], np.uint32), np.array([step], np.uint32))
    return int(x0[0]), int(x1[0])


def stuck_at(job: Job, share: float, key: prng.Key, index: int) -> int | None:
    """The value at which a cell or a gate is stuck."""
    first, second = word_pair(key, index)
    drawn = {"0": 0, "1": 1, "either": second & 1}[job.config.task.stuck_at]
    return drawn if first < share * 2**32 else None


def faults(job: Job, key: prng.Key) -> Callable[[int, np.ndarray], np.ndarray]:
    """Bit by bit and cell by cell."""
    task, flip_key, stuck_key = job.config.task, prng.fold_in(key, 0x666C6970), prng.fold_in(key, 0x73747563)
    listed = {tuple(map(int, cell[:-2].split(","))): int(cell[-1]) for cell in task.stuck_list}

    def changed(step: int, state: np.ndarray) -> np.ndarray:
        found = state.copy()
        for index, place in enumerate(np.ndindex(state.shape)):
            value = listed.get(place[1:3], stuck_at(job, task.stuck_cells, stuck_key, index // state.shape[-1]))
            if value is not None:
                found[place] = value
            elif word_pair(flip_key, index, step)[0] < task.flip * 2**32:
                found[place] = 1 - state[place]
        return found

    return changed if task.flip or task.stuck_cells or task.stuck_list else lambda _, state: state


def with_stuck_gates(job: Job, circuit: Circuit, key: prng.Key) -> Circuit:
    """A stuck gate is one whose constant is certain."""
    logits = circuit.flat_logits()
    for gate, own in enumerate(logits):
        value = stuck_at(job, job.config.task.stuck_gates, prng.fold_in(key, 0x67617465), gate)
        if value is not None:
            own[:], own[15 * value] = 0, 1e9
    return circuit.with_logits(logits)


def fires(job: Job, key: prng.Key) -> np.ndarray | None:
    task, masks = job.config.task, []
    for _ in range(task.steps):
        key, sub = prng.split(key)
        masks.append(prng.uniform(sub, (task.height, task.width, 1)) <= np.float32(job.config.train.fire_rate))
    return np.stack(masks) if job.config.train.asynchronous else None


def wanted(job: Job, grids: np.ndarray, key: prng.Key | None = None) -> np.ndarray:
    """Return targets of a batch with data subkey `key`, or of the evaluation grids; NaN if a value does not count."""
    if job.data is not None and job.held_out is not None:
        return missing(job.held_out.y if key is None else job.data.y[drawn_samples(job, key)])
    if job.config.task.target == "rule":
        table = rules.table(job.config.task.rule)
        patches = [naive.patch(grids[..., 0], f, job.circuit.periodic) for f in range(9)]
        index = np.zeros(grids.shape[:3], dtype=int)
        for values in patches:
            index = 2 * index + values.astype(int)
        return table[index][..., None]
    assert job.target is not None
    return np.broadcast_to(job.target, (*grids.shape[:3], job.config.task.loss_channels))


def test_an_epoch_is_its_definition(job: Job) -> None:
    """Starts, squares, masks, targets, losses and what goes back into the pool, all worked out here once more."""
    config, task, state = job.config, job.config.task, start(job)
    _, data_key = prng.split(state.data_key)
    _, train_key = prng.split(state.train_key)
    grids = fresh = fresh_starts(job, data_key)
    places: list[int] = []
    if state.pool is not None:
        part = config.pool.size // config.train.batch
        drawn = words(prng.split(prng.fold_in(data_key, 0x706F6F6C))[1], config.train.batch)
        places = [sample * part + word % part for sample, word in enumerate(drawn)]
        grids = state.pool[places].astype(float)
    circuit = job.circuit.with_logits(state.logits)
    masks, holes = fires(job, train_key), squares(job, train_key)
    wrong, stuck = faults(job, train_key), with_stuck_gates(job, circuit, train_key)
    states = naive.rollout(stuck, grids, task.steps, naive.soft_gate, masks, holes, damaged=False, faults=wrong)
    errors = (states[list(task.judged_steps)][..., : task.loss_channels] - wanted(job, grids, data_key)) ** 2
    model = ReferenceEngine().open([job], [state])
    model.train(1)
    assert model.fetch_metrics()[0][0].soft_loss == pytest.approx(np.nansum(errors), rel=tolerances.LOSS_RTOL)
    if state.pool is not None:
        pool = state.pool.copy()
        if config.pool.starts:
            np.testing.assert_array_equal(model.states()[0].pool, pool, "starts that are kept stay as they are")
            return
        pool[places] = states[-1] > 0.5
        of_samples = errors[-1].sum(axis=(1, 2, 3))
        for sample in sorted(range(len(grids)), key=lambda b: -of_samples[b])[: config.pool.reset]:
            pool[places[sample]] = fresh[sample]
        np.testing.assert_array_equal(model.states()[0].pool, pool)
    assert_verdict(job, model, model.states()[0], grids, holes, (data_key, train_key))


def assert_verdict(
    job: Job, model: object, state: TrainState, grids: np.ndarray, holes: naive.Squares, keys: tuple[prng.Key, ...]
) -> None:
    """Compare mismatches after each evaluated step: evaluation grids have their own events, the batch the epoch's."""
    task = job.config.task
    circuit = job.circuit.with_logits(state.logits)

    def wrong(x: np.ndarray, where: naive.Squares, fault_key: prng.Key, key: prng.Key | None = None) -> np.ndarray:
        changed = faults(job, fault_key)
        states = naive.rollout(circuit, x, task.steps, naive.hard_gate, job.probe_masks, where, False, changed)
        target, last = wanted(job, x, key), states[list(task.judged_steps)][..., : task.loss_channels]
        different: np.ndarray = np.where(np.isnan(target), np.nan, last != target)
        return different

    corners = job.probe_damage
    of_probes = {} if corners is None else {
        step: (task.damage_side, [tuple(corner) for corner in corners[index]])
        for index, step in enumerate(task.damage_steps)
    }  # fmt: skip
    judged, probes = model.evaluate()[0], wrong(job.probes.astype(float), of_probes, job.probe_fault_key)
    assert judged.hard_loss == np.nansum(probes)
    assert judged.values == np.count_nonzero(~np.isnan(probes))
    assert judged.wrong_probes == (probes == 1).any(axis=(0, 2, 3, 4)).sum()
    assert judged.train_hard_loss == np.nansum(wrong(grids, holes, keys[1], keys[0]))


def test_gradients_are_derivatives(job: Job) -> None:
    """Through damage, faults of states, masks and several losses."""
    subject = Subject.of(job, start(job, noise=0.5))
    batch = subject.batch
    task = job.config.task
    holes = {} if subject.damage is None else {
        step: (subject.damage.side, [tuple(corner) for corner in subject.damage.corners[index]])
        for index, step in enumerate(subject.damage.steps)
    }  # fmt: skip
    y = np.where(subject.y == IGNORED, np.nan, subject.y)

    def value(logits: np.ndarray) -> float:
        return ReferenceEngine(np.float64).loss(subject.circuit.with_logits(logits), batch)

    logits = subject.circuit.flat_logits().astype(np.float64)
    exact = subject.circuit.with_logits(logits)
    changed = faults(job, prng.split(start(job).train_key)[1])
    states = naive.rollout(exact, subject.x, task.steps, naive.soft_gate, subject.masks, holes, False, changed)
    judged = list(task.judged_steps)
    expected = np.nansum((states[judged][..., : task.loss_channels] - y) ** 2)
    loss, by_layer = ReferenceEngine(np.float64).loss_and_gradients(exact, batch)
    assert loss == pytest.approx(expected, rel=tolerances.FLOAT64_RTOL)
    assert value(logits) == pytest.approx(expected, rel=tolerances.FLOAT64_RTOL)
    flat = np.concatenate([layer.reshape(-1, 16) for layers in by_layer.values() for layer in layers])
    assert_is_derivative(value, logits, flat, np.random.default_rng(7))


def test_the_first_losses_of_equals_are_reset() -> None:
    """All samples alike: the first ones go back as fresh starts."""
    job = task_job("a pool of boards")
    config: Config = job.config.with_(pool={"size": 17, "reset": 3})
    state = start(job)
    pool = np.zeros((17, 4, 3, 1), dtype=np.uint8)
    same = replace(state, pool=pool)
    model = ReferenceEngine().open([replace(job, config=config)], [same])
    model.train(1)
    after = model.states()[0].pool
    fresh = fresh_starts(job, prng.split(state.data_key)[1])
    np.testing.assert_array_equal(after[:3], fresh[:3])
    assert len(np.unique(after[3:], axis=0)) == 1


def test_damage_has_a_place() -> None:
    job = task_job("damage")
    spec = RolloutSpec(Shape.training(job.circuit, job.config), flat_layout(job.circuit))
    assert spec.shape.damage_steps
    with pytest.raises(DataError, match="Expected corners of the damage squares"):
        hard_rollout(spec, job.circuit.flat_logits(), pack_grids(job.probes[:1]))
