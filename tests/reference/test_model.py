"""The reference's training run by its definition: the notebook's order of keys, and the optimiser.

What all engines share is in `tests/engines`."""

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine.batch import Batch
from difflogic.engine.job import Job, TrainState
from difflogic.engine.shape import Hyper
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.jobs import C, assert_same_state, make_job, start
from tests.random_circuits import bits, random_circuit

H, W, T, B = 5, 7, 3, 3


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
    job = make_job(fire_rate=fire_rate, loss_channels=loss_channels)
    state = start(job)
    model = ReferenceEngine().open([job], [state])
    circuit, optimizer = job.circuit.with_logits(state.logits), None
    for epoch in (1, 2, 3):
        x, masks, data_key, train_key = epoch_data(job, state)
        y = np.zeros_like(x)
        y[..., :loss_channels] = job.target
        batch = Batch(x, y, T, loss_channels, masks)
        circuit, optimizer, metrics = ReferenceEngine().train_step(circuit, optimizer, batch)
        model.train(1)
        state = model.states()[0]
        assert_same_state(state, TrainState(circuit.flat_logits(), optimizer, data_key, train_key, epoch))
        (row,) = model.fetch_metrics()[0]
        assert (row.epoch, row.skipped, row.soft_loss) == (epoch, False, float(np.float32(metrics["soft_loss"])))


def test_the_configurations_optimiser_is_used() -> None:
    job = make_job(lr=0.2, weight_decay=0.3, beta1=0.1, beta2=0.2, epsilon=1e-3, clip=0.01)
    state = start(job)
    model = ReferenceEngine().open([job], [state])
    model.train(1)
    x, *_ = epoch_data(job, state)
    y = np.zeros_like(x)
    y[..., :1] = job.target
    _, by_layer = ReferenceEngine().loss_and_gradients(job.circuit.with_logits(state.logits), Batch(x, y, T))
    gradient = np.concatenate([layer.reshape(-1, 16) for layers in by_layer.values() for layer in layers])
    assert np.abs(gradient).max() > 0.01
    clipped = gradient.clip(-0.01, 0.01)
    expected = state.logits - 0.2 * (clipped / (np.abs(clipped) + 1e-3) + 0.3 * state.logits)
    np.testing.assert_allclose(model.states()[0].logits, expected, atol=tolerances.STEP_ATOL_OWN_GRADIENTS)
    assert job.config.optimizer.clip != Hyper().clip


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
