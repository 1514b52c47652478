"""Every fast engine against what the authors' own code computed."""

from __future__ import annotations

import numpy as np
import pytest

from difflogic.engine import Engine
from tests import parity, tolerances
from tests.gpu.closeness import STATES, assert_gradients_close
from tests.parity import SmallModel


@pytest.fixture(params=parity.SMALL_MODELS)
def model(request: pytest.FixtureRequest) -> SmallModel:
    return parity.small_model(request.param)


def test_soft_states(engine: Engine, model: SmallModel) -> None:
    states = engine.rollout(model.circuit, model.x, model.steps, masks=model.masks)
    assert states.dtype == np.float32
    np.testing.assert_array_equal(states[0], model.x)
    np.testing.assert_allclose(states[1], model.arrays["soft/y_T1"], **STATES)
    np.testing.assert_allclose(states[-1], model.arrays[f"soft/y_T{model.steps}"], **STATES)
    if model.masks is None:
        np.testing.assert_allclose(states[1:], model.arrays["soft/states"], **STATES)


def test_hard_states_exactly(engine: Engine, model: SmallModel) -> None:
    states = engine.rollout(model.circuit, model.x, model.steps, "hard", model.masks)
    assert states.dtype == np.float32
    np.testing.assert_array_equal(states[0], model.x)
    np.testing.assert_array_equal(states[1], model.arrays["hard/y_T1"])
    np.testing.assert_array_equal(states[-1], model.arrays[f"hard/y_T{model.steps}"])
    if model.masks is None:
        np.testing.assert_array_equal(states[1:], model.arrays["hard/states"])


def test_loss_and_gradients(engine: Engine, model: SmallModel) -> None:
    loss, gradients = engine.loss_and_gradients(model.circuit, model.batch)
    assert loss == pytest.approx(float(model.arrays["opt0/loss_soft"]), rel=tolerances.LOSS_RTOL)
    assert_gradients_close(gradients, parity.layers(model.arrays, "opt0/grad/"))
    assert_gradients_close(gradients, parity.layers(model.arrays, "f64/grad/"))


def test_three_steps(engine: Engine, model: SmallModel) -> None:
    circuit, state = model.circuit, None
    for step in range(3):
        circuit, state, metrics = engine.train_step(circuit, state, model.batch)
        assert (metrics["skipped"], state.step) == (False, step + 1)
        assert metrics["soft_loss"] == pytest.approx(
            float(model.arrays[f"opt{step}/loss_soft"]), rel=tolerances.LOSS_RTOL
        )
        for network, layers in parity.layers(model.arrays, f"opt{step}/params_after/").items():
            for ours, theirs in zip(circuit.logits[network], layers, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerances.STEP_ATOL_OWN_GRADIENTS)
