"""The CPU engine against the reference on circuits that no one designed, and against exact derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.batch import Batch
from difflogic.circuit import Circuit
from difflogic.cpu.engine import CpuEngine
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.gpu.closeness import assert_first_step_close, assert_gradients_close
from tests.gpu.test_random_circuits import CASES, REFERENCE, assert_engines_agree, drawn, work
from tests.random_circuits import circuits, random_circuit

OWN_CASES: dict[str, tuple[Circuit, tuple[int, int, int], int, int, bool]] = {
    "one tile exactly": (drawn(21, channels=1), (2, 4, 4), 3, 1, False),
    "one cell more": (drawn(22, channels=2), (1, 3, 11), 3, 1, True),
    "narrower than a tile, periodic": (drawn(23, channels=2, periodic=True), (3, 20, 3), 3, 1, True),
    "wider than a tile": (drawn(24, channels=1), (2, 3, 70), 2, 1, False),
    "wider than a tile, periodic": (drawn(25, channels=1, periodic=True), (2, 3, 70), 2, 1, False),
    "more tiles than blocks, shared unevenly": (drawn(27, channels=1, kernels=1), (3, 27, 27), 2, 1, True),
    "more than 64 samples": (drawn(26, channels=1, kernels=1), (130, 3, 3), 2, 1, False),
}


@pytest.fixture(params=[*CASES, *OWN_CASES])
def case(request: pytest.FixtureRequest) -> tuple[Circuit, dict[str, Any]]:
    """A circuit, and the arguments that `loss_and_gradients` and `train_step` share."""
    circuit, grid, steps, loss_channels, masked = (CASES | OWN_CASES)[request.param]
    return circuit, work(circuit, grid, steps, loss_channels, masked, seed=11)


def test_engines_agree(engine: CpuEngine, case: tuple[Circuit, dict[str, Any]]) -> None:
    assert_engines_agree(engine, *case)


def test_a_step_agrees(engine: CpuEngine, case: tuple[Circuit, dict[str, Any]]) -> None:
    circuit, given = case
    (ours, state, metrics), (theirs, expected, _) = (
        each.train_step(circuit, None, Batch(**given), lr=0.1) for each in (engine, REFERENCE)
    )
    assert (metrics["skipped"], state.step) == (False, 1)
    assert_first_step_close(ours.flat_logits(), theirs.flat_logits(), expected.mu, lr=0.1)
    assert np.abs(state.mu - expected.mu).max() <= tolerances.GRADIENT_SHARE * np.abs(expected.mu).max()
    assert np.abs(state.nu - expected.nu).max() <= 2 * tolerances.GRADIENT_SHARE * np.abs(expected.nu).max()


@settings(max_examples=60)
@given(
    circuits(),
    st.tuples(st.integers(1, 3), st.integers(3, 6), st.integers(3, 6)),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_any_circuit_agrees(
    engine: CpuEngine, circuit: Circuit, grid: tuple[int, int, int], steps: int, masked: bool, seed: int
) -> None:
    assert_engines_agree(engine, circuit, work(circuit, grid, steps, circuit.channels, masked, seed))


@settings(max_examples=60)
@given(circuits(), st.integers(0, 2**32 - 1))
def test_any_decided_circuit_agrees(engine: CpuEngine, circuit: Circuit, seed: int) -> None:
    """Constants, pass-through gates and gates with one input twice: what the hard program leaves out."""
    rng = np.random.default_rng(seed)
    logits = np.zeros((circuit.gates, 16), dtype=np.float32)
    logits[np.arange(circuit.gates), rng.choice([0, 3, 5, 6, 12, 15, 1], circuit.gates)] = 1
    given = work(circuit, (2, 3, 4), 3, 1, bool(seed % 2), seed)
    rollout = {name: given[name] for name in ("x", "steps", "masks")} | {"mode": "hard"}
    decided = circuit.with_logits(logits)
    np.testing.assert_array_equal(engine.rollout(decided, **rollout), REFERENCE.rollout(decided, **rollout))


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_derivatives(engine: CpuEngine, masked: bool) -> None:
    """Central differences of the float64 reference's loss, for every logit of a tiny model."""
    circuit = random_circuit(np.random.default_rng(3), 1, 1, (4, 2), (3,), dtype=np.float64)
    given = work(circuit, (2, 3, 3), 2, 1, masked, seed=4)
    exact = ReferenceEngine(np.float64)
    logits = circuit.flat_logits()

    def loss_at(index: tuple[int, int], step: float) -> float:
        moved = logits.copy()
        moved[index] += step
        last = exact.rollout(circuit.with_logits(moved), given["x"], 2, masks=given["masks"])[-1]
        return float(np.sum((last - given["y"]) ** 2))

    h = tolerances.DIFFERENCE_STEP
    slopes = [(loss_at(index, h) - loss_at(index, -h)) / (2 * h) for index in np.ndindex(logits.shape)]
    _, gradients = engine.loss_and_gradients(circuit, Batch(**given))
    assert_gradients_close(gradients, circuit.unflatten(np.array(slopes).reshape(logits.shape)))
