"""Every engine against the reference on circuits that no one designed, and against exact derivatives."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.config.model import ModelConfig
from difflogic.config.train import InitialConfig
from difflogic.engine.api import Engine
from difflogic.engine.batch import Batch
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.closeness import STATES, assert_first_step_close, assert_gradients_close
from tests.jobs import random_network
from tests.random_circuits import bits, circuits, random_circuit

REFERENCE, EXACT = ReferenceEngine(), ReferenceEngine(np.float64)


def random_wiring(kernels: int, channels: int, per_kernel: bool) -> Circuit:
    """The scheme `random`, and the start of a training run but for some noise."""
    update = random_network(channels + 2 * channels * kernels, 16, 8, channels)
    model = ModelConfig(channels, kernels, random_network(9, 8, 4, 2), update, wiring_per_kernel=per_kernel)
    circuit = Circuit.initial(model, 5, InitialConfig(logit=3.0))
    noise = np.random.default_rng(1).standard_normal((circuit.gates, 16)).astype(np.float32)
    return circuit.with_logits(circuit.flat_logits() + noise)


def deep(layers: int, channels: int = 2) -> Circuit:
    """Return a circuit of mostly converged gates, so that signals pass through all layers."""
    return random_circuit(np.random.default_rng(2), channels, hidden=(12,) * layers, scale=5.0)


def drawn(seed: int, **options: Any) -> Circuit:
    return random_circuit(np.random.default_rng(seed), **options)


line, hexagons = partial(drawn, neighbourhood="line"), partial(drawn, channels=2, neighbourhood="hex", trees=True)

# circuit, grid [B, H, W], steps, loss channels, masked
CASES: dict[str, tuple[Circuit, tuple[int, int, int], int, int, bool]] = {
    "3x3": (drawn(1, channels=1, kernels=1), (1, 3, 3), 1, 1, False),
    "3x3 periodic": (drawn(2, channels=2, kernels=3, periodic=True), (17, 3, 3), 3, 2, False),
    "5x7": (drawn(3, channels=3, kernels=3), (17, 5, 7), 2, 3, False),
    "5x7 periodic masked": (drawn(4, channels=3, kernels=1, periodic=True), (2, 5, 7), 3, 1, True),
    "16x4": (drawn(5, channels=2, kernels=2), (33, 16, 4), 2, 2, False),
    "16x4 masked": (drawn(6, channels=1, kernels=3, per_kernel=True), (3, 16, 4), 4, 1, True),
    "trees": (drawn(10, channels=3, kernels=3, perceive=(8, 4, 2, 1), trees=True), (3, 5, 7), 3, 2, False),
    "trees masked": (drawn(11, channels=2, periodic=True, per_kernel=True, trees=True), (2, 6, 5), 3, 1, True),
    "own wiring": (drawn(7, channels=2, kernels=3, per_kernel=True, periodic=True), (4, 4, 5), 3, 2, False),
    "random scheme": (random_wiring(3, 2, False), (5, 6, 6), 3, 1, False),
    "random scheme per kernel": (random_wiring(2, 3, True), (5, 6, 6), 3, 1, False),
    "deep": (deep(24), (2, 5, 5), 2, 2, False),
    "single layers": (drawn(8, channels=2, kernels=2, perceive=(1,), hidden=()), (2, 3, 4), 3, 2, False),
    "wide": (drawn(9, channels=4, kernels=4, perceive=(9, 6), hidden=(90,)), (2, 3, 5), 2, 4, True),
    # one row: above and below it there is nothing to read, whatever the boundary
    "a line": (line(31, channels=2, trees=True), (3, 1, 5), 3, 2, True),
    "a line, periodic": (line(32, channels=2, periodic=True, per_kernel=True, trees=True), (17, 1, 3), 3, 2, False),
    "a line of several tiles": (line(33, channels=1, periodic=True), (2, 1, 70), 2, 1, True),
    "hexagons": (hexagons(34), (2, 5, 7), 3, 2, True),
    "hexagons, periodic": (hexagons(35, periodic=True), (3, 4, 5), 3, 2, False),
    "four neighbours": (drawn(36, channels=2, neighbourhood="von-neumann", per_kernel=True), (2, 5, 7), 3, 2, False),
    # around the CPU engine's tiles of 32 cells, blocks of tiles and words of 64 samples
    "one tile exactly": (drawn(21, channels=1), (2, 4, 4), 3, 1, False),
    "one cell more": (drawn(22, channels=2), (1, 3, 11), 3, 1, True),
    "narrower than a tile, periodic": (drawn(23, channels=2, periodic=True), (3, 20, 3), 3, 1, True),
    "wider than a tile": (drawn(24, channels=1), (2, 3, 70), 2, 1, False),
    "wider than a tile, periodic": (drawn(25, channels=1, periodic=True), (2, 3, 70), 2, 1, False),
    "more tiles than blocks, shared unevenly": (drawn(27, channels=1, kernels=1), (3, 27, 27), 2, 1, True),
    "more than 64 samples": (drawn(26, channels=1, kernels=1), (130, 3, 3), 2, 1, False),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Circuit, dict[str, Any]]:
    """A circuit, and the arguments that `loss_and_gradients` and `train_step` share."""
    circuit, grid, steps, loss_channels, masked = CASES[request.param]
    return circuit, work(circuit, grid, steps, loss_channels, masked, seed=11)


def work(
    circuit: Circuit, grid: tuple[int, int, int], steps: int, loss_channels: int, masked: bool, seed: int
) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, y = (bits(rng, *grid, circuit.channels) for _ in range(2))
    masks = bits(rng, steps, *grid[1:], 1) if masked else None
    return {"x": x, "y": y, "steps": steps, "loss_channels": loss_channels, "masks": masks}


def assert_engines_agree(engine: Engine, circuit: Circuit, given: dict[str, Any]) -> None:
    rollout = {name: given[name] for name in ("x", "steps", "masks")}
    soft = [each.rollout(circuit, **rollout) for each in (engine, REFERENCE)]
    np.testing.assert_allclose(*soft, **STATES)
    hard = [each.rollout(circuit, **rollout, mode="hard") for each in (engine, REFERENCE)]
    np.testing.assert_array_equal(*hard)
    assert_gradients_agree(engine, circuit, given)


def assert_gradients_agree(engine: Engine, circuit: Circuit, given: dict[str, Any]) -> None:
    """Tolerance from exact gradients and the reference's float32 error: in some circuits all gradients of a layer are
    small differences of large moments."""
    (loss, ours), (expected_loss, theirs), (_, exact) = (
        each.loss_and_gradients(circuit, Batch(**given)) for each in (engine, REFERENCE, EXACT)
    )
    assert loss == pytest.approx(expected_loss, rel=tolerances.LOSS_RTOL)
    for network, layers in exact.items():
        for layer, right in enumerate(layers):
            error, usual = (np.abs(each[network][layer] - right).max() for each in (ours, theirs))
            assert error <= tolerances.GRADIENT_SHARE * np.abs(right).max() + 10 * usual, f"{network} {layer}"


def test_engines_agree(engine: Engine, case: tuple[Circuit, dict[str, Any]]) -> None:
    assert_engines_agree(engine, *case)


def test_a_step_agrees(engine: Engine, case: tuple[Circuit, dict[str, Any]]) -> None:
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
@pytest.mark.exhaustive
def test_any_circuit_agrees(engine, circuit, grid, steps, masked, seed) -> None:
    assert_engines_agree(engine, circuit, work(circuit, grid, steps, circuit.channels, masked, seed))


@settings(max_examples=60)
@given(circuits(), st.integers(0, 2**32 - 1))
@pytest.mark.exhaustive
def test_any_decided_circuit_agrees(engine: Engine, circuit: Circuit, seed: int) -> None:
    """Constants, pass-through gates and gates with one input twice: what the hard program leaves out."""
    rng = np.random.default_rng(seed)
    logits = np.zeros((circuit.gates, 16), dtype=np.float32)
    logits[np.arange(circuit.gates), rng.choice([0, 3, 5, 6, 12, 15, 1], circuit.gates)] = 1
    given = work(circuit, (2, 3, 4), 3, 1, bool(seed % 2), seed)
    rollout = {name: given[name] for name in ("x", "steps", "masks")} | {"mode": "hard"}
    decided = circuit.with_logits(logits)
    np.testing.assert_array_equal(engine.rollout(decided, **rollout), REFERENCE.rollout(decided, **rollout))


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_derivatives(engine: Engine, masked: bool) -> None:
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
    _, gradients = engine.loss_and_gradients(circuit.with_logits(logits.astype(np.float32)), Batch(**given))
    assert_gradients_close(gradients, circuit.unflatten(np.array(slopes).reshape(logits.shape)))
