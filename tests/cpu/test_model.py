"""A training run on the processor: exact round trips and continuation, evaluation, and skipped steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflogic import prng
from difflogic.batch import Batch
from difflogic.circuit import Circuit
from difflogic.cpu.engine import CpuEngine
from difflogic.engine import Job, TrainState, Weighed
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.gpu.closeness import assert_first_step_close
from tests.gpu.jobs import C, Outcome, assert_same, assert_same_state, make_job, midway, start


@pytest.fixture(params=[1.0, 0.6], ids=["synchronous", "asynchronous"])
def job(request: pytest.FixtureRequest) -> Job:
    return make_job(fire_rate=request.param)


def train(engine: CpuEngine, job: Job, state: TrainState, *calls: int) -> Outcome:
    """What becomes of `state`: afterwards, the epochs' metrics, and the evaluation."""
    model = engine.open_model(job, state)
    for epochs in calls:
        model.train(epochs)
    result = model.to_cpu(), model.drain(), model.evaluate()
    model.close()
    return result


def test_a_model_weighs_at_least_what_it_trains(engine: CpuEngine, job: Job) -> None:
    model = engine.open_model(job, midway(job))
    assert isinstance(model, Weighed)
    state = model.to_cpu()
    assert model.nbytes > state.logits.nbytes + state.optimizer.mu.nbytes + state.optimizer.nu.nbytes
    assert model.nbytes < 10 << 20


def test_a_state_comes_back_as_it_went(engine: CpuEngine, job: Job) -> None:
    state = midway(job)
    model = engine.open_model(job, state)
    copy = model.to_cpu()
    assert_same_state(copy, state)
    model.train(2)
    after = model.to_cpu()
    assert (after.epoch, after.optimizer.step, after.skipped) == (135, 132, 3)
    assert_same_state(copy, state)


@pytest.mark.parametrize("begin", [start, midway])
def test_four_epochs_are_two_and_two(engine: CpuEngine, job: Job, begin: Any) -> None:
    whole = train(engine, job, begin(job), 4)
    state, first, _ = train(engine, job, begin(job), 2)
    state, second, evaluation = train(engine, job, state, 1, 1)
    assert_same(whole, (state, [*first, *second], evaluation))
    assert [row.epoch - begin(job).epoch for row in whole[1]] == [1, 2, 3, 4]


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_no_bit(engine: CpuEngine, job: Job, threads: int) -> None:
    """However many share a step, and whoever of them does what."""
    expected = train(engine, job, start(job), 30)
    assert_same(train(CpuEngine(threads), job, start(job), 30), expected)


def test_threads_change_no_bit_where_tiles_share_a_block(engine: CpuEngine) -> None:
    job = make_job(batch=3, grid=(27, 27), steps=2, probes=1)
    expected = train(engine, job, start(job), 3)
    assert_same(train(CpuEngine(1), job, start(job), 3), expected)


def test_metrics_come_once_in_order(engine: CpuEngine) -> None:
    model = engine.open_model(make_job(), start(make_job()))
    model.train(3)
    model.train(1)
    assert [row.epoch for row in model.drain()] == [1, 2, 3, 4]
    assert model.drain() == []


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
@pytest.mark.parametrize(
    ("batch", "probes", "loss_channels"), [(1, 32, 1), (17, 40, 2), (33, 1, 1), (32, 33, 2), (70, 65, 1)]
)
def test_evaluation_is_the_references(
    engine: CpuEngine, fire_rate: float, batch: int, probes: int, loss_channels: int
) -> None:
    """Of the same logits on the same batch: with a learning rate of 0 both keep theirs."""
    job = make_job(fire_rate=fire_rate, batch=batch, probes=probes, loss_channels=loss_channels, lr=0.0)
    reference, model = (each.open_model(job, start(job)) for each in (ReferenceEngine(), engine))
    assert model.evaluate() == reference.evaluate()
    for each in (reference, model):
        each.train(3)
    expected = reference.evaluate()
    assert model.evaluate() == expected == model.evaluate()
    assert 0 < expected.hard_loss < expected.values
    assert expected.train_hard_loss > 0
    assert_same_state(model.to_cpu(), replace(reference.to_cpu(), optimizer=model.to_cpu().optimizer))


def test_evaluating_changes_no_state(engine: CpuEngine, job: Job) -> None:
    model = engine.open_model(job, start(job))
    model.train(2)
    before = model.to_cpu()
    model.evaluate()
    assert_same_state(model.to_cpu(), before)
    model.train(2)
    assert_same((model.to_cpu(), model.drain(), model.evaluate()), train(engine, job, start(job), 4))


def test_an_epoch_is_the_references(engine: CpuEngine, job: Job) -> None:
    """Keys, and with them start grids and fire masks, to the bit."""
    reference, model = (each.open_model(job, start(job)) for each in (ReferenceEngine(), engine))
    for each in (reference, model):
        each.train(1)
    ours, theirs = model.to_cpu(), reference.to_cpu()
    ((row,), (expected,)) = model.drain(), reference.drain()
    assert row.soft_loss == pytest.approx(expected.soft_loss, rel=tolerances.LOSS_RTOL)
    assert (row.epoch, row.skipped) == (1, False)
    assert_first_step_close(ours.logits, theirs.logits, theirs.optimizer.mu, job.config.train.lr)
    for name in ("mu", "nu"):
        expected_moment = getattr(theirs.optimizer, name)
        error = np.abs(getattr(ours.optimizer, name) - expected_moment).max()
        assert error <= 2 * tolerances.GRADIENT_SHARE * np.abs(expected_moment).max()
    same = replace(theirs, logits=ours.logits, optimizer=replace(ours.optimizer, step=theirs.optimizer.step))
    assert_same_state(ours, same)


@pytest.mark.parametrize(
    ("spoiled", "finite_loss"),
    [
        ("a gate that no other reads", True),  # its own gradient is NaN, the loss is not
        ("a gate of the output", False),
        ("infinite logit", False),
        ("target", False),  # the square of 1e30 is infinite, its gradient is not
    ],
)
def test_a_step_that_is_not_finite_is_skipped(engine: CpuEngine, spoiled: str, finite_loss: bool) -> None:
    """Nothing moves but keys and counters."""
    job = make_job(seed=6)
    good, *_ = train(engine, job, start(job), 3)
    bad = replace(good, logits=good.logits.copy(), skipped=4)
    if spoiled == "target":
        job = replace(job, target=np.full_like(job.target, 1e30))
    elif spoiled == "a gate that no other reads":
        bad.logits[unread_gate(job.circuit), 6] = np.nan
    else:
        bad.logits[-C, 6] = np.inf if spoiled == "infinite logit" else np.nan
    state, rows, _ = train(engine, job, bad, 2)
    assert [(row.epoch, row.skipped) for row in rows] == [(4, True), (5, True)]
    assert [bool(np.isfinite(row.soft_loss)) for row in rows] == [finite_loss] * 2
    keys = {"data_key": good.data_key, "train_key": good.train_key}
    for _ in range(2):
        keys = {name: prng.split(key)[0] for name, key in keys.items()}
    assert_same_state(state, replace(bad, epoch=5, skipped=6, **keys))


def unread_gate(circuit: Circuit) -> int:
    """A perception gate whose output no gate reads: of the first layer's, as that has one wiring for all kernels."""
    read = set(circuit.perceive_wires[1].reshape(-1).tolist())
    return min(set(range(circuit.perceive[0].shape[1])) - read)


def test_training_goes_on_after_a_skipped_step(engine: CpuEngine) -> None:
    """One epoch's batch overflows, the later ones do not."""
    job = make_job()
    overflowing = replace(job, target=np.full_like(job.target, 1e30))
    state, *_ = train(engine, overflowing, start(job), 1)
    state, (row,), _ = train(engine, job, state, 1)
    assert (state.epoch, state.skipped, state.optimizer.step, row.skipped) == (2, 1, 1, False)
    assert (state.logits != start(job).logits).any()


def test_the_engines_step_skips_too(engine: CpuEngine) -> None:
    job = make_job()
    x = np.full((1, 5, 7, C), 1e30, dtype=np.float32)
    circuit, state, metrics = engine.train_step(job.circuit, None, Batch(x, np.zeros_like(x), 3))
    assert metrics["skipped"]
    assert not np.isfinite(metrics["soft_loss"])
    assert state.step == 0
    np.testing.assert_array_equal(circuit.flat_logits(), job.circuit.flat_logits())
    assert not state.mu.any()


def test_calls_are_short_enough_for_signals(engine: CpuEngine) -> None:
    model = engine.open_model(make_job(), start(make_job()))
    assert model.max_epochs_per_call() == 1
    model.train(1)
    assert model.max_epochs_per_call() >= 1


def test_what_ran(engine: CpuEngine) -> None:
    info = engine.open_model(make_job(), start(make_job())).info
    assert info == engine.info
    assert (info.engine, info.software, info.variant) == ("cpu", True, {"threads": 3})
    assert info.adapter
    assert info.driver.startswith("Numba ")
