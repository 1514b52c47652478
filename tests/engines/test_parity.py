"""Every engine against what the authors' own code computed."""

import numpy as np
import pytest

from difflogic.engine.api import Engine
from tests import parity, tolerances
from tests.closeness import STATES, assert_gradients_close
from tests.parity import SmallModel


@pytest.fixture(params=parity.SMALL_MODELS)
def model(request: pytest.FixtureRequest) -> SmallModel:
    return parity.small_model(request.param)


@pytest.mark.parametrize(("mode", "tolerance"), [("soft", STATES), ("hard", {"rtol": 0, "atol": 0})])
def test_states(any_engine: Engine, model: SmallModel, mode, tolerance) -> None:
    states = any_engine.rollout(model.circuit, model.x, model.steps, mode, model.masks)
    assert states.dtype == np.float32
    np.testing.assert_array_equal(states[0], model.x)
    np.testing.assert_allclose(states[1], model.arrays[f"{mode}/y_T1"], **tolerance)
    np.testing.assert_allclose(states[-1], model.arrays[f"{mode}/y_T{model.steps}"], **tolerance)
    if model.masks is None:
        np.testing.assert_allclose(states[1:], model.arrays[f"{mode}/states"], **tolerance)


def test_loss_and_gradients(any_engine: Engine, model: SmallModel) -> None:
    loss, gradients = any_engine.loss_and_gradients(model.circuit, model.batch)
    assert loss == pytest.approx(float(model.arrays["opt0/loss_soft"]), rel=tolerances.LOSS_RTOL)
    assert_gradients_close(gradients, parity.layers(model.arrays, "opt0/grad/"))
    assert_gradients_close(gradients, parity.layers(model.arrays, "f64/grad/"))


def test_three_steps(any_engine: Engine, model: SmallModel) -> None:
    """Losses and gradients before each step, logits after it, every step from our own last one."""
    circuit, state = model.circuit, None
    for step in range(3):
        at = f"opt{step}/"
        _, gradients = any_engine.loss_and_gradients(circuit, model.batch)
        assert_gradients_close(gradients, parity.layers(model.arrays, at + "grad/"))

        hard = any_engine.rollout(circuit, model.x, model.steps, "hard", model.masks)[-1]
        wrong = np.sum((hard - model.y)[..., : model.loss_channels] ** 2)
        assert wrong == model.arrays[at + "loss_hard"]

        circuit, state, metrics = any_engine.train_step(circuit, state, model.batch)
        soft_loss = float(model.arrays[at + "loss_soft"])
        assert metrics == {"soft_loss": pytest.approx(soft_loss, rel=tolerances.LOSS_RTOL), "skipped": False}
        assert state.step == step + 1
        for network, layers in parity.layers(model.arrays, at + "params_after/").items():
            for ours, theirs in zip(circuit.logits[network], layers, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerances.STEP_ATOL_OWN_GRADIENTS)
