"""A training model on every engine: exact round trips and continuation, evaluation, and skipped steps."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine.api import Engine
from difflogic.engine.batch import Batch
from difflogic.engine.job import Job, OptimizerState
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests.jobs import C, assert_same, assert_same_state, make_job, midway, start, train
from tests.random_circuits import bits, random_circuit


@pytest.fixture(params=[1.0, 0.6], ids=["synchronous", "asynchronous"])
def job(request: pytest.FixtureRequest) -> Job:
    return make_job(fire_rate=request.param)


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_training_lowers_the_loss(any_engine: Engine, fire_rate: float) -> None:
    job = make_job(fire_rate=fire_rate, lr=0.2)
    job = replace(job, target=np.ones_like(job.target))
    _, rows, _ = train(any_engine, job, start(job, noise=0.0), 60)
    losses = [row.soft_loss for row in rows]
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])


def test_a_state_comes_back_as_it_went(any_engine: Engine, job: Job) -> None:
    state = midway(job)
    before = copy.deepcopy(state)
    model = any_engine.open([job], [state])
    given = model.states()[0]
    assert_same_state(given, before)
    model.train(2)
    after = model.states()[0]
    assert (after.epoch, after.optimizer.step, after.skipped) == (135, 132, 3)
    assert_same_state(given, before)
    assert_same_state(state, before)
    model.close()


def test_a_model_can_be_closed_at_once(any_engine: Engine, job: Job) -> None:
    any_engine.open([job], [start(job)]).close()
    model = any_engine.open([job], [start(job)])
    model.train(3)
    model.close()
    assert len(train(any_engine, job, start(job), 1)[1]) == 1


@pytest.mark.parametrize("begin", [start, midway])
def test_four_epochs_are_two_and_two(any_engine: Engine, job: Job, begin: Any) -> None:
    whole = train(any_engine, job, begin(job), 4)
    state, first, _ = train(any_engine, job, begin(job), 2)
    state, second, evaluation = train(any_engine, job, state, 1, 1)
    assert_same(whole, (state, [*first, *second], evaluation))
    assert [row.epoch - begin(job).epoch for row in whole[1]] == [1, 2, 3, 4]
    assert state.epoch - begin(job).epoch == state.optimizer.step - begin(job).optimizer.step == 4


def test_no_epochs_change_nothing(any_engine: Engine, job: Job) -> None:
    after, rows, _ = train(any_engine, job, start(job), 0)
    assert rows == []
    assert_same_state(after, start(job))


def test_metrics_come_once_in_order(any_engine: Engine, job: Job) -> None:
    model = any_engine.open([job], [start(job)])
    assert model.fetch_metrics()[0] == []
    model.train(3)
    model.train(1)
    assert [row.epoch for row in model.fetch_metrics()[0]] == [1, 2, 3, 4]
    assert model.fetch_metrics()[0] == []
    assert model.epochs_per_call() >= 1
    model.close()


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
@pytest.mark.parametrize(
    ("batch", "probes", "loss_channels"), [(1, 32, 1), (17, 40, 2), (33, 1, 1), (32, 33, 2), (70, 65, 1)]
)
def test_evaluation_is_the_references(engine: Engine, fire_rate, batch, probes, loss_channels) -> None:
    """Compare both on the same logits and batch: with a learning rate of 0 logits do not change."""
    job = make_job(fire_rate=fire_rate, batch=batch, probes=probes, loss_channels=loss_channels, lr=0.0)
    reference, model = (each.open([job], [start(job)]) for each in (ReferenceEngine(), engine))
    first, judged = reference.evaluate()[0], model.evaluate()[0]
    assert (judged.hard_loss, judged.wrong_probes, judged.values) == (first.hard_loss, first.wrong_probes, first.values)
    for each in (reference, model):
        each.train(3)
    expected = reference.evaluate()[0]
    assert model.evaluate()[0] == expected == model.evaluate()[0]
    assert 0 < expected.hard_loss < expected.values
    assert expected.train_hard_loss > 0
    assert_same_state(model.states()[0], replace(reference.states()[0], optimizer=model.states()[0].optimizer))
    model.close()


def test_evaluating_changes_no_state(any_engine: Engine, job: Job) -> None:
    model = any_engine.open([job], [start(job)])
    model.train(2)
    before = model.states()[0]
    assert model.evaluate()[0] == model.evaluate()[0]
    assert_same_state(model.states()[0], before)
    model.train(2)
    outcome = model.states()[0], model.fetch_metrics()[0], model.evaluate()[0]
    model.close()
    assert_same(outcome, train(any_engine, job, start(job), 4))


@pytest.mark.parametrize(
    ("spoiled", "finite_loss"),
    [
        ("a gate that no other reads", True),  # its own gradient is NaN, the loss is not
        ("a gate of the output", False),
        ("infinite logit", False),
        ("target", False),  # the square of 1e30 is infinite, its gradient is not
    ],
)
def test_a_step_that_is_not_finite_is_skipped(any_engine: Engine, spoiled: str, finite_loss: bool) -> None:
    job = make_job(seed=6)
    good, *_ = train(any_engine, job, start(job), 3)
    bad = replace(good, logits=good.logits.copy(), skipped=4)
    if spoiled == "target":
        job = replace(job, target=np.full_like(job.target, 1e30))
    elif spoiled == "a gate that no other reads":
        bad.logits[unread_gate(job.circuit), 6] = np.nan
    else:
        bad.logits[-C, 6] = np.inf if spoiled == "infinite logit" else np.nan
    with np.errstate(invalid="ignore"):  # the reference's softmax subtracts infinities
        state, rows, _ = train(any_engine, job, bad, 2)
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


def test_training_goes_on_after_a_skipped_step(any_engine: Engine) -> None:
    """One epoch's batch overflows, the later ones do not."""
    job = make_job()
    overflowing = replace(job, target=np.full_like(job.target, 1e30))
    state, *_ = train(any_engine, overflowing, start(job), 1)
    state, (row,), _ = train(any_engine, job, state, 1)
    assert (state.epoch, state.skipped, state.optimizer.step, row.skipped) == (2, 1, 1, False)
    assert (state.logits != start(job).logits).any()


@pytest.mark.parametrize("steps_before", [0, 1])
def test_the_engines_step_skips_too(any_engine: Engine, steps_before: int) -> None:
    rng = np.random.default_rng(1)
    circuit, state = random_circuit(rng), None
    x, y = bits(rng, 3, 5, 7, C), bits(rng, 3, 5, 7, C)
    for _ in range(steps_before):
        circuit, state, metrics = any_engine.train_step(circuit, state, Batch(x, y, 3))
        assert (metrics["skipped"], state.step) == (False, 1)
    after, kept, metrics = any_engine.train_step(circuit, state, Batch(x * np.float32(1e30), y, 3))
    assert metrics["skipped"]
    assert not np.isfinite(metrics["soft_loss"])
    assert kept.step == steps_before
    np.testing.assert_array_equal(after.flat_logits(), circuit.flat_logits())
    state = state or OptimizerState.fresh(circuit)
    np.testing.assert_array_equal(kept.mu, state.mu)
    np.testing.assert_array_equal(kept.nu, state.nu)


def test_the_engines_step_leaves_its_arguments_alone(any_engine: Engine) -> None:
    rng = np.random.default_rng(2)
    circuit = random_circuit(rng)
    state, before = OptimizerState.fresh(circuit), circuit.flat_logits()
    batch = Batch(bits(rng, 3, 5, 7, C), bits(rng, 3, 5, 7, C), 3)
    after, moved, _ = any_engine.train_step(circuit, state, batch)
    np.testing.assert_array_equal(circuit.flat_logits(), before)
    assert not state.mu.any()
    assert moved.mu.any()
    assert (after.flat_logits() != before).any()
