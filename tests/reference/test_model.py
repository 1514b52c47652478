"""A training run in the reference: exact continuation, the notebook's order of keys, evaluation, and refusal
of a gradient that is not finite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflogic import prng
from difflogic.batch import Batch
from difflogic.circuit import Circuit
from difflogic.config import Config, ModelConfig, NetworkConfig, TaskConfig, TrainConfig
from difflogic.engine import Job, OptimizerState, TrainState
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.fire_mask import draw_masks
from difflogic.shape import Hyper, Shape
from tests import naive, tolerances
from tests.experiments import checkerboard_target
from tests.random_circuits import bits, random_circuit

H, W, C, T, B = 5, 7, 2, 3, 3


def make_job(fire_rate: float = 1.0, loss_channels: int = 1, **train: Any) -> Job:
    """A model of 37 gates on 5x7 cells."""
    config = Config(
        name="tiny",
        model=ModelConfig(C, 2, NetworkConfig((9, 8, 2), ("first_kernel", "unique")), network(10, 8, 6, 3, C)),
        task=TaskConfig("checkerboard", H, W, T, loss_channels=loss_channels),
        train=TrainConfig(epochs=9, batch=B, fire_rate=fire_rate, initial_logit=2.0, **train),
    )
    target = np.repeat(checkerboard_target(H, W), loss_channels, axis=2)
    probes = bits(np.random.default_rng(8), 17, H, W, C).astype(np.uint8)
    circuit = Circuit.initial(config.model, config.seed, config.train.initial_logit)
    masks = draw_masks(Shape(1, H, W, C, T), fire_rate, prng.key_from_seed(77)).reshape(T, H, W, 1)
    return Job(config, circuit, target, probes, masks if fire_rate < 1 else None)


def network(*widths: int) -> NetworkConfig:
    return NetworkConfig(widths, ("random",) * (len(widths) - 1))


def start(job: Job) -> TrainState:
    """The initial state with logits that have left the pass-through start."""
    state = TrainState.initial(job)
    noise = np.random.default_rng(3).standard_normal(state.logits.shape).astype(np.float32)
    return replace(state, logits=state.logits + noise)


def arrays(state: TrainState) -> dict[str, np.ndarray]:
    return {
        "logits": state.logits,
        "mu": state.optimizer.mu,
        "nu": state.optimizer.nu,
        "data_key": state.data_key,
        "train_key": state.train_key,
        "counters": np.array([state.optimizer.step, state.epoch, state.skipped]),
    }


def assert_same_bits(one: TrainState, two: TrainState) -> None:
    for name, array in arrays(one).items():
        other = arrays(two)[name]
        assert array.dtype == other.dtype, name
        assert array.tobytes() == other.tobytes(), name


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_four_epochs_are_two_and_two(fire_rate: float) -> None:
    job = make_job(fire_rate)
    straight = ReferenceEngine().open_model(job, start(job))
    straight.train(4)
    first = ReferenceEngine().open_model(job, start(job))
    first.train(2)
    second = ReferenceEngine().open_model(job, first.to_cpu())
    second.train(2)
    assert_same_bits(straight.to_cpu(), second.to_cpu())
    assert straight.drain() == first.drain() + second.drain()
    assert straight.evaluate() == second.evaluate()
    assert straight.to_cpu().epoch == straight.to_cpu().optimizer.step == 4


def test_to_cpu_is_the_state_that_came_in_and_a_copy() -> None:
    job = make_job()
    state = replace(start(job), epoch=7, skipped=2, optimizer=replace(start(job).optimizer, step=5))
    model = ReferenceEngine().open_model(job, state)
    copy = model.to_cpu()
    assert_same_bits(copy, state)
    before = {name: array.copy() for name, array in arrays(state).items()}
    model.train(1)
    for name, array in before.items():
        np.testing.assert_array_equal(arrays(copy)[name], array)
        np.testing.assert_array_equal(arrays(state)[name], array)


def epoch_data(job: Job, state: TrainState) -> tuple[np.ndarray, np.ndarray | None, prng.Key, prng.Key]:
    """The next epoch's grids and masks by the notebook's key discipline, and both chains after it."""
    data_key, sub = prng.split(state.data_key)
    x = prng.randint_power_of_two(sub, (B, H, W, C), 2).astype(np.float32)
    train_key, k1 = prng.split(state.train_key)
    masks = []
    for _ in range(T):
        k1, sub = prng.split(k1)
        masks.append((prng.uniform(sub, (H, W, 1)) <= job.config.train.fire_rate).astype(np.float32))
    return x, np.stack(masks) if job.config.train.asynchronous else None, data_key, train_key


@pytest.mark.parametrize(("fire_rate", "loss_channels"), [(1.0, 1), (0.6, 2)])
def test_an_epoch_is_one_engine_step_on_the_notebooks_data(fire_rate: float, loss_channels: int) -> None:
    job = make_job(fire_rate, loss_channels)
    state = start(job)
    model = ReferenceEngine().open_model(job, state)
    circuit, optimizer = job.circuit.with_logits(state.logits), None
    for epoch in (1, 2, 3):
        x, masks, data_key, train_key = epoch_data(job, state)
        y = np.zeros_like(x)
        y[..., :loss_channels] = job.target
        circuit, optimizer, metrics = ReferenceEngine().train_step(
            circuit, optimizer, Batch(x, y, T, loss_channels, masks)
        )
        model.train(1)
        state = model.to_cpu()
        assert_same_bits(state, TrainState(circuit.flat_logits(), optimizer, data_key, train_key, epoch))
        (row,) = model.drain()
        assert (row.epoch, row.skipped, row.soft_loss) == (epoch, False, float(np.float32(metrics["soft_loss"])))


@pytest.mark.parametrize("loss_channels", [1, 2])
def test_evaluation_counts_what_a_direct_rollout_gets_wrong(loss_channels: int) -> None:
    job = make_job(loss_channels=loss_channels)
    state = start(job)
    model = ReferenceEngine().open_model(job, state)
    x, *_ = epoch_data(job, state)
    model.train(1)
    circuit = job.circuit.with_logits(model.to_cpu().logits)

    def wrong(grids: np.ndarray) -> np.ndarray:
        last = naive.rollout(circuit, grids, T, naive.hard_gate)[-1]
        different: np.ndarray = last[..., :loss_channels] != job.target
        return different

    judged = model.evaluate()
    assert judged.hard_loss == wrong(job.probes).sum()
    assert judged.wrong_probes == wrong(job.probes).any(axis=(1, 2, 3)).sum()
    assert judged.train_hard_loss == wrong(x).sum()
    assert judged.values == wrong(job.probes).size
    assert 0 < judged.hard_loss < judged.values


def test_asynchronous_evaluation_fires_by_the_probe_masks() -> None:
    job = make_job(fire_rate=0.6)
    state = start(job)
    _, masks, _, _ = epoch_data(job, replace(state, train_key=prng.key_from_seed(0)))
    model = ReferenceEngine().open_model(replace(job, probe_masks=masks), state)
    circuit = job.circuit.with_logits(state.logits)
    last = naive.rollout(circuit, job.probes, T, naive.hard_gate, masks)[-1]
    synchronous = naive.rollout(circuit, job.probes, T, naive.hard_gate)[-1]
    expected = (last[..., :1] != job.target).sum()
    assert expected != (synchronous[..., :1] != job.target).sum()
    assert model.evaluate().hard_loss == expected


def test_evaluating_changes_no_state() -> None:
    job = make_job(fire_rate=0.6)
    model = ReferenceEngine().open_model(job, start(job))
    model.train(1)
    before = model.to_cpu()
    assert model.evaluate() == model.evaluate()
    assert_same_bits(before, model.to_cpu())


def test_metrics_are_drained_once_and_in_order() -> None:
    job = make_job()
    model = ReferenceEngine().open_model(job, start(job))
    assert model.drain() == []
    model.train(2)
    model.train(1)
    assert [row.epoch for row in model.drain()] == [1, 2, 3]
    assert model.drain() == []
    assert model.max_epochs_per_call() >= 1
    model.close()


def test_the_configurations_optimiser_is_used() -> None:
    job = make_job(lr=0.2, weight_decay=0.3, beta1=0.1, beta2=0.2, epsilon=1e-3, clip=0.01)
    state = start(job)
    model = ReferenceEngine().open_model(job, state)
    model.train(1)
    x, *_ = epoch_data(job, state)
    y = np.zeros_like(x)
    y[..., :1] = job.target
    _, by_layer = ReferenceEngine().loss_and_gradients(job.circuit.with_logits(state.logits), Batch(x, y, T))
    gradient = np.concatenate([layer.reshape(-1, 16) for layers in by_layer.values() for layer in layers])
    assert np.abs(gradient).max() > 0.01
    clipped = gradient.clip(-0.01, 0.01)
    expected = state.logits - 0.2 * (clipped / (np.abs(clipped) + 1e-3) + 0.3 * state.logits)
    np.testing.assert_allclose(model.to_cpu().logits, expected, atol=tolerances.STEP_ATOL_OWN_GRADIENTS)
    assert job.config.train.clip != Hyper().clip


@pytest.mark.parametrize(
    ("spoiled", "finite_loss"),
    [
        ("a gate that no other reads", True),  # its own gradient is NaN, the loss is not
        ("a gate of the output", False),
        ("target", False),  # the square of 1e30 is infinite, its gradient is not
    ],
)
def test_a_model_skips_a_step_that_is_not_finite(spoiled: str, finite_loss: bool) -> None:
    job = make_job()
    state = start(job)
    reference = ReferenceEngine().open_model(job, state)
    reference.train(3)
    trained = replace(reference.to_cpu(), skipped=4)
    if spoiled == "target":
        job = replace(job, target=np.full_like(job.target, 1e30))
    else:
        trained.logits[5 if "no other" in spoiled else -C, 6] = np.nan
    model = ReferenceEngine().open_model(job, trained)
    model.train(2)
    rows = model.drain()
    assert [(row.epoch, row.skipped) for row in rows] == [(4, True), (5, True)]
    assert [np.isfinite(row.soft_loss) for row in rows] == [finite_loss] * 2
    reference.train(2)
    keys = reference.to_cpu()
    assert_same_bits(
        model.to_cpu(), replace(trained, epoch=5, skipped=6, data_key=keys.data_key, train_key=keys.train_key)
    )


def test_training_goes_on_after_a_skipped_step() -> None:
    job = make_job()
    model = ReferenceEngine().open_model(replace(job, target=np.full_like(job.target, 1e30)), start(job))
    model.train(1)
    recovered = ReferenceEngine().open_model(job, model.to_cpu())
    recovered.train(1)
    state = recovered.to_cpu()
    assert (state.epoch, state.skipped, state.optimizer.step) == (2, 1, 1)
    assert (state.logits != model.to_cpu().logits).any()
    assert not recovered.drain()[0].skipped


def test_the_engines_step_skips_atomically() -> None:
    """Grids so large that a gate overflows."""
    rng = np.random.default_rng(1)
    circuit = random_circuit(rng)
    x, y = bits(rng, B, H, W, C), bits(rng, B, H, W, C)
    engine = ReferenceEngine()
    circuit, state, metrics = engine.train_step(circuit, None, Batch(x, y, T))
    assert (metrics["skipped"], state.step) == (False, 1)
    after, after_state, metrics = engine.train_step(circuit, state, Batch(x * np.float32(1e30), y, T))
    assert metrics["skipped"]
    assert not np.isfinite(metrics["soft_loss"])
    assert after_state.step == 1
    np.testing.assert_array_equal(after.flat_logits(), circuit.flat_logits())
    np.testing.assert_array_equal(after_state.mu, state.mu)
    np.testing.assert_array_equal(after_state.nu, state.nu)


def test_the_engines_step_leaves_its_arguments_alone() -> None:
    rng = np.random.default_rng(2)
    circuit = random_circuit(rng)
    state = OptimizerState.fresh(circuit)
    before = circuit.flat_logits()
    after, moved, _ = ReferenceEngine().train_step(
        circuit, state, Batch(bits(rng, B, H, W, C), bits(rng, B, H, W, C), T)
    )
    np.testing.assert_array_equal(circuit.flat_logits(), before)
    assert not state.mu.any()
    assert moved.mu.any()
    assert (after.flat_logits() != before).any()


def test_the_learning_rate_of_a_step_can_be_chosen() -> None:
    rng = np.random.default_rng(3)
    circuit = random_circuit(rng, dtype=np.float64)
    x, y = bits(rng, B, H, W, C), bits(rng, B, H, W, C)
    moved = [
        ReferenceEngine(np.float64).train_step(circuit, None, Batch(x, y, T), lr)[0].flat_logits()
        - circuit.flat_logits()
        for lr in (0.05, 0.1)
    ]
    np.testing.assert_allclose(2 * moved[0], moved[1], rtol=1e-9, atol=1e-12)
