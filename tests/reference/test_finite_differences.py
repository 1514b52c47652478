"""Backward kernels of the reference against central differences of its forward kernels, in float64."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.batch import Batch
from difflogic.engine.events import NO_FAULTS, UNITS, FaultRates, Hardening
from difflogic.engine.shape import Shape
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, flat_layout
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.kernels.coefficients import Parameters
from difflogic.reference.kernels.gate_backward import gate_backward
from difflogic.reference.kernels.gate_forward import gate_forward
from difflogic.reference.kernels.grid import gather
from difflogic.reference.kernels.harden import harden
from difflogic.reference.rollout import RolloutSpec, SoftPass, parameters_of, soft_gradients
from tests import tolerances
from tests.random_circuits import bits, random_circuit


def assert_is_derivative(
    function: Callable[[np.ndarray], np.ndarray | float],
    at: np.ndarray,
    derivative: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Along random directions, which together meet every entry, and along the entry that matters most.

    The function is the sum of the terms that it returns. They say how much its rounding can be where they cancel.
    """
    assert derivative.shape == at.shape
    assert derivative.any()
    steepest = np.zeros_like(at)
    steepest.flat[np.abs(derivative).argmax()] = 1
    for direction in (*rng.standard_normal((5, *at.shape)), steepest):
        step = tolerances.DIFFERENCE_STEP * direction / np.linalg.norm(direction)
        after, before = function(at + step), function(at - step)
        difference = np.sum(after - before) / 2
        terms = derivative * step
        scale = np.linalg.norm(terms)  # their sum may cancel to almost 0
        allowed = tolerances.DIFFERENCE_RTOL * scale + tolerances.difference_atol(after, before)
        assert abs(difference - np.sum(terms)) <= allowed


CONTROL = np.zeros(8, dtype=np.uint32)
"""Nothing here is ever flagged in it."""

Case = tuple[Shape, int, bool, bool, int]
CASES: dict[str, Case] = {
    # batch, height, width, channels, steps, loss channels, periodic; K; own wiring per kernel; masks; candidates
    "3x3, one channel, one kernel": (Shape(1, 3, 3, 1, 3, 1, False), 1, False, False, 1),
    "3x3 periodic": (Shape(1, 3, 3, 2, 2, 2, True), 3, False, False, 1),
    "5x7 asynchronous": (Shape(2, 5, 7, 2, 4, 1, False), 3, False, True, 1),
    "5x7 periodic, own wiring, asynchronous": (Shape(1, 5, 7, 3, 3, 2, True), 3, True, True, 1),
    "own wiring": (Shape(2, 3, 5, 2, 2, 1, False), 2, True, False, 2),
    "batch of 17": (Shape(17, 5, 7, 1, 2, 1, False), 1, False, False, 1),
    "4 candidates, periodic, asynchronous": (Shape(2, 5, 7, 2, 3, 2, True), 3, True, True, 4),
    "16 candidates": (Shape(1, 3, 5, 2, 2, 1, False), 2, False, False, 16),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def make(case: Case, rng: np.random.Generator) -> tuple[Circuit, np.ndarray | None]:
    shape, kernels, per_kernel, masked, candidates = case
    options = {"periodic": shape.periodic, "per_kernel": per_kernel, "candidates": candidates}
    circuit = random_circuit(rng, shape.channels, kernels, scale=1.0, dtype=np.float64, **options)
    return circuit, bits(rng, shape.steps, shape.cells_per_grid) if masked else None


def test_steps_backward_through_time(case: Case) -> None:
    """Derivatives of a linear function of the last state by initial state, coefficients and shares."""
    rng = np.random.default_rng(1)
    shape = case[0]
    circuit, masks = make(case, rng)
    layout = flat_layout(circuit)
    weights = rng.standard_normal((layout.gates, 4)) / 2
    shares = rng.dirichlet(np.ones(layout.candidates), (layout.gates, 2)) if layout.candidates > 1 else None
    start = rng.random((shape.channels, shape.cells))
    towards = rng.standard_normal(start.shape)

    def run(start: np.ndarray, weights: np.ndarray, shares: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        parameters = Parameters(weights, shares)
        states = np.empty((shape.steps + 1, *start.shape))
        states[0] = start
        nodes = np.empty((shape.steps, layout.nodes, shape.cells))
        for step in range(shape.steps):
            gate_forward(shape, step, layout, parameters, masks, states[step], states[step + 1], nodes[step])
        return states, nodes

    _, nodes = run(start, weights, shares)
    parameters = Parameters(weights, shares)
    d_patches = np.zeros((9 * shape.channels, shape.cells))
    d_patches[4::9] = towards
    partials = np.zeros((layout.instances, 4 + (0 if shares is None else shares[0].size)))
    scratch = np.full((layout.slot_count, shape.cells), np.nan)  # scratch: what was in it must not matter
    for step in reversed(range(shape.steps)):
        d_next, d_patches = d_patches, np.empty_like(d_patches)
        gate_backward(shape, step, layout, parameters, masks, nodes[step], d_next, scratch, d_patches, partials)
    moments = np.zeros((layout.gates, partials.shape[1]))
    np.add.at(moments, layout.instance_gates, partials)

    assert_is_derivative(lambda s: towards * run(s, weights, shares)[0][-1], start, gather(shape, d_patches), rng)
    assert_is_derivative(lambda w: towards * run(start, w, shares)[0][-1], weights, moments[:, :4], rng)
    if shares is not None:
        d_shares = moments[:, 4:].reshape(shares.shape)
        assert_is_derivative(lambda s: towards * run(start, weights, s)[0][-1], shares, d_shares, rng)


def hard_or_stuck(
    layout: Layout, logits: np.ndarray, hardening: Hardening, rates: FaultRates, control: np.ndarray
) -> Parameters:
    """The parameters of an epoch in which some gates, and their wires, are hard or stuck."""
    wires = layout.wire_logits(logits)
    made = Parameters(np.empty((layout.gates, 4)), None if wires is None else np.empty(wires.shape))
    harden(hardening, rates, control, logits[: layout.gates], made.coefficients, wires, made.shares)
    return made


def test_hardened_gates_get_the_softmaxs_gradient_at_what_they_compute(case: Case) -> None:
    """The gradient of: the hard coefficients, and beside them, whatever the logits add to the soft ones."""
    rng = np.random.default_rng(8)
    shape = case[0]
    circuit, masks = make(case, rng)
    layout, logits = flat_layout(circuit), circuit.flat_logits()
    control = rng.integers(0, 2**32, 8, dtype=np.uint32)
    hardened = hard_or_stuck(layout, logits, Hardening(0, 1, UNITS // 2), NO_FAULTS, control)
    start, targets = (rng.random((each, shape.cells)) for each in (shape.channels, shape.loss_channels))
    assert 0 < (hardened.coefficients == np.round(hardened.coefficients)).all(axis=1).sum() < layout.gates

    def moved(logits: np.ndarray) -> SoftPass:
        soft, before = (parameters_of(layout, each)[0] for each in (logits, circuit.flat_logits()))
        mixed = Parameters(
            *(
                None if each is None else each + now - then
                for each, now, then in zip(hardened, soft, before, strict=True)
            )
        )
        return soft_gradients(RolloutSpec(shape, layout, masks, hardened=mixed), logits, start, targets, CONTROL.copy())

    assert_is_derivative(lambda at: float(moved(at).loss_partials.sum()), logits, moved(logits).gradients, rng)


def test_a_stuck_gate_gets_no_gradient_and_the_others_get_theirs(case: Case) -> None:
    rng = np.random.default_rng(9)
    circuit, masks = make(case, rng)
    layout, logits = flat_layout(circuit), circuit.flat_logits()
    shape = replace(case[0], faults=FaultRates(gates=2**28))
    start, targets = (rng.random((each, shape.cells)) for each in (shape.channels, shape.loss_channels))

    def with_stuck(logits: np.ndarray) -> SoftPass:
        stuck = hard_or_stuck(layout, logits, Hardening(), shape.faults, CONTROL)
        return soft_gradients(RolloutSpec(shape, layout, masks, hardened=stuck), logits, start, targets, CONTROL.copy())

    gradients = with_stuck(logits).gradients
    stuck = shape.faults.draw_gates(prng.split(CONTROL[c.TRAIN_KEY])[1], layout.gates) > 0
    assert 0 < stuck.sum() < layout.gates
    assert not gradients[: layout.gates][stuck].any()
    assert layout.candidates == 1 or not layout.wire_logits(gradients)[stuck].any()
    assert_is_derivative(lambda at: float(with_stuck(at).loss_partials.sum()), logits, gradients, rng)


def test_the_whole_model(case: Case) -> None:
    rng = np.random.default_rng(4)
    shape = case[0]
    circuit, flat_masks = make(case, rng)
    masks = None if flat_masks is None else flat_masks.reshape(shape.steps, shape.height, shape.width, 1)
    grid = (shape.batch, shape.height, shape.width, shape.channels)
    x, y = bits(rng, *grid), bits(rng, *grid)
    engine = ReferenceEngine(np.float64)

    def value(logits: np.ndarray) -> float:
        last = engine.rollout(circuit.with_logits(logits), x, shape.steps, masks=masks)[-1]
        return float(np.sum((last - y)[..., : shape.loss_channels] ** 2))

    reported, by_layer = engine.loss_and_gradients(circuit, Batch(x, y, shape.steps, shape.loss_channels, masks))
    flat = Circuit.from_arrays(by_layer, circuit.wires, circuit.channels).flat_logits()
    assert reported == pytest.approx(value(circuit.flat_logits()), rel=tolerances.FLOAT64_RTOL)
    assert_is_derivative(value, circuit.flat_logits(), flat, rng)


@pytest.mark.parametrize("every_state", [False, True])
@pytest.mark.parametrize("feed_forward", [False, True])
def test_a_function_of_ones_own(feed_forward: bool, every_state: bool) -> None:
    rng = np.random.default_rng(5)
    if feed_forward:
        circuit, grid, steps = Circuit.feed_forward([5, 8, 3], seed=0, candidates=4 if every_state else 1), (6,), 1
        circuit = circuit.with_logits(2 * rng.standard_normal(circuit.flat_logits().shape))
    else:
        circuit, grid, steps = random_circuit(rng, periodic=every_state, dtype=np.float64), (2, 3, 5), 3
    function = ReferenceEngine(np.float64).open_function(circuit, grid, steps, every_state=every_state)
    x, d_y = rng.random((*grid, circuit.channels)), rng.standard_normal(function.y_shape)
    logits = circuit.flat_logits()
    function.forward(x)
    gradients, d_x = function.backward(d_y)

    def of_logits(values: np.ndarray) -> np.ndarray:
        function.update(values)
        return function.forward(x) * d_y

    assert_is_derivative(of_logits, logits, gradients, rng)
    function.update(logits)
    assert_is_derivative(lambda values: function.forward(values) * d_y, x, d_x, rng)
