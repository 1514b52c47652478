"""A circuit as a differentiable function: the same on every engine, exact where it is hard, any adjoint taken back."""

from typing import Any

import numpy as np
import pytest

from difflogic import Device
from difflogic.config.train import InitialConfig
from difflogic.engine.api import Engine
from difflogic.engine.function import CircuitFunction
from difflogic.errors import CircuitError, DataError, DifflogicError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.closeness import STATES, assert_gradients_close
from tests.random_circuits import bits, random_circuit

REFERENCE = ReferenceEngine()


def feed_forward(*widths: int) -> Circuit:
    return Circuit.feed_forward(widths, seed=1, initial=InitialConfig(logit=1.0, noise=2.0))


CASES: dict[str, tuple[Circuit, tuple[int, ...], int, bool]] = {
    "a policy": (feed_forward(28, 32, 32), (70,), 1, False),
    "one gate on one input": (feed_forward(1, 1), (1,), 1, False),
    "more outputs than inputs, samples in a block": (feed_forward(3, 40, 9), (7, 5), 1, False),
    "an automaton": (random_circuit(np.random.default_rng(1)), (2, 4, 5), 3, False),
    "a torus, every state": (random_circuit(np.random.default_rng(2), periodic=True), (3, 5, 7), 4, True),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Circuit, tuple[int, ...], int, bool]:
    return CASES[request.param]


def adjoint_of(function: CircuitFunction) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(function.y_shape).astype(np.float32)


@pytest.mark.parametrize("hard", [False, True])
def test_every_engine_computes_the_reference(any_engine: Engine, case: Any, hard: bool) -> None:
    circuit, grid, steps, every_state = case
    x = bits(np.random.default_rng(0), *grid, circuit.channels)
    ours, theirs = (each.open_function(circuit, grid, steps, hard, every_state) for each in (any_engine, REFERENCE))
    y, expected = ours.forward(x), theirs.forward(x)
    assert y.shape == ours.y_shape
    assert y.dtype == np.float32
    if hard:
        np.testing.assert_array_equal(y, expected)
        assert np.isin(y, (0, 1)).all()
    else:
        np.testing.assert_allclose(y, expected, **STATES)
    d_y = adjoint_of(ours)
    gradients, d_x = ours.backward(d_y)
    assert_gradients_close(circuit.unflatten(gradients), circuit.unflatten(theirs.backward(d_y)[0]))
    expected_d_x = theirs.backward(d_y)[1]
    assert np.abs(d_x - expected_d_x).max() <= tolerances.GRADIENT_SHARE * np.abs(expected_d_x).max()
    # Again from the same buffers, after another input: to the bit.
    ours.forward(1 - x)
    np.testing.assert_array_equal(ours.forward(x), y)
    for again, first in zip(ours.backward(d_y), (gradients, d_x), strict=True):
        np.testing.assert_array_equal(again, first)


def test_hard_is_the_hard_circuit(any_engine: Engine) -> None:
    circuit, grid, steps, _ = CASES["an automaton"]
    x = bits(np.random.default_rng(0), *grid, circuit.channels)
    with any_engine.open_function(circuit, grid, steps, hard=True, every_state=True) as function:
        np.testing.assert_array_equal(function.forward(x), REFERENCE.rollout(circuit, x, steps, "hard")[1:])


def test_hard_gradients_are_those_of_the_soft_circuit(any_engine: Engine, case: Any) -> None:
    circuit, grid, steps, every_state = case
    x = bits(np.random.default_rng(0), *grid, circuit.channels)
    soft, hard = (any_engine.open_function(circuit, grid, steps, each, every_state) for each in (False, True))
    soft.forward(x), hard.forward(x)
    d_y = adjoint_of(soft)
    for ours, theirs in zip(hard.backward(d_y), soft.backward(d_y), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_squared_error_is_the_engines_own_loss(any_engine: Engine) -> None:
    from difflogic import Batch

    circuit, grid, steps, _ = CASES["an automaton"]
    x, y = bits(np.random.default_rng(0), 2, *grid, circuit.channels)
    with any_engine.open_function(circuit, grid, steps) as function:
        gradients, _ = function.backward(2 * (function.forward(x) - y))
    _, expected = any_engine.loss_and_gradients(circuit, Batch(x, y, steps, loss_channels=circuit.channels))
    assert_gradients_close(circuit.unflatten(gradients), expected)


def test_new_logits_take_the_place_of_the_old(any_engine: Engine) -> None:
    circuit = feed_forward(5, 8, 3)
    other = circuit.with_logits(circuit.flat_logits()[::-1].copy())
    x = np.random.default_rng(0).random((40, 5)).astype(np.float32)
    with any_engine.open_function(circuit, [40]) as function, any_engine.open_function(other, [40]) as fresh:
        before = function.forward(x)
        function.update(other.flat_logits())
        np.testing.assert_array_equal(function.circuit.flat_logits(), other.flat_logits())
        with pytest.raises(UsageError, match="call forward first"):
            function.backward(before)
        np.testing.assert_array_equal(function.forward(x), fresh.forward(x))
        assert (function.forward(x) != before).any()
        d_y = adjoint_of(function)
        for ours, theirs in zip(function.backward(d_y), fresh.backward(d_y), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_function_moves_to_the_bit_and_back(any_engine: Engine) -> None:
    circuit = feed_forward(5, 8, 3)
    function = any_engine.open_function(circuit, [4], hard=True)
    here, there = Device(function.selector), Device("reference")
    assert function.to(here) is function
    back = function.to(there).to(here)
    assert (Device(back.selector), back.hard) == (here, True)
    np.testing.assert_array_equal(back.circuit.flat_logits(), circuit.flat_logits())
    with pytest.raises(UsageError, match=r"pass Device\('cpu'\)"):
        function.to("cpu")  # type: ignore[arg-type]


AUTOMATON = CASES["an automaton"][0]


@pytest.mark.parametrize(
    ("circuit", "grid", "arguments", "sentence"),
    [
        (feed_forward(5, 3), (4,), {"steps": 2}, "Expected an automaton, got a feed-forward circuit"),
        (feed_forward(5, 3), (), {}, r"needs at least one cell, got \[\]"),
        (AUTOMATON, (4,), {}, r"An automaton needs a grid \[B, H, W\] of at least 3x3 cells, got \[4\]"),
        (AUTOMATON, (1, 2, 9), {}, r"at least 3x3 cells, got \[1, 2, 9\]"),
        (AUTOMATON, (1, 4, 4), {"steps": 0}, "steps must be at least 1, got 0"),
        (AUTOMATON, (9, 99999, 99999), {"steps": 99}, r"on 89998200009 cells needs at least .* GB for its states, but"),
    ],
)
def test_what_cannot_be_opened(circuit: Circuit, grid: Any, arguments: Any, sentence: str) -> None:
    with pytest.raises(DifflogicError, match=sentence):
        REFERENCE.open_function(circuit, grid, **arguments)


def test_what_cannot_be_computed() -> None:
    function = REFERENCE.open_function(feed_forward(5, 3), [4], hard=True)
    for x, sentence in (
        (np.zeros((5, 4)), r"x must have shape \[4, 5\], got \[5, 4\]"),
        (np.full((4, 5), 0.5), "A hard function expects x of 0 and 1, got other values"),
        (np.full((4, 5), np.nan), "x contains NaN or infinity"),
    ):
        with pytest.raises(DataError, match=sentence):
            function.forward(x)
    function.forward(np.zeros((4, 5)))
    with pytest.raises(DataError, match=r"d_y must have shape \[4, 3\], got \[4, 5\]"):
        function.backward(np.zeros((4, 5)))
    with pytest.raises(DataError, match=r"logits must have shape \[3, 16\]"):
        function.update(np.zeros((3, 4)))


def test_a_feed_forward_circuit_is_no_automaton(any_engine: Engine) -> None:
    circuit = feed_forward(2, 2)
    x = np.zeros((1, 4, 4, 2), dtype=np.float32)
    with pytest.raises(CircuitError, match=r"with 2 inputs and 2 outputs: evaluate it with Engine.open_function"):
        any_engine.rollout(circuit, x, 1)
    with pytest.raises(CircuitError, match="Expected an automaton"):
        CellNetlist.from_circuit(circuit)
