"""Pruned circuits are the same automata, compared on every neighbourhood or in rollouts."""

import numpy as np
import pytest

from difflogic.circuits.synthesis import prune
from difflogic.circuits.synthesis.prune import pruned
from difflogic.core import gates
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.statistics import active_gates
from tests.random_circuits import random_circuit

OR, AND, A, B = (gates.NAMES.index(name) for name in ("OR", "AND", "A", "B"))


def with_gates(circuit: Circuit, hard: list[int]) -> Circuit:
    return circuit.with_logits(np.eye(gates.GATE_COUNT, dtype=np.float32)[hard])


def shown(circuit: Circuit, starts: np.ndarray, visible: int) -> np.ndarray:
    return np.asarray(CellNetlist.from_circuit(circuit).rollout(starts, 5)[..., :visible])


@pytest.mark.parametrize("seed", range(24))
def test_pruned_circuit_shows_the_same_from_every_initial_state(seed: int) -> None:
    """All initial states of a 3x3 grid of one channel are compared; of several channels 500 random ones."""
    rng = np.random.default_rng(seed)
    channels = 1 + seed % 3
    circuit = random_circuit(rng, channels=channels, periodic=bool(seed & 1))
    visible = int(rng.integers(1, channels + 1))
    found = pruned(circuit, visible)
    starts = rng.integers(0, 2, (500, 3, 3, channels))
    if channels == 1:
        starts = (np.arange(512)[:, None] >> np.arange(9) & 1).reshape(512, 3, 3, 1)
    np.testing.assert_array_equal(shown(found, starts, visible), shown(circuit, starts, visible))
    assert active_gates(found.flat_logits()) <= active_gates(circuit.flat_logits())
    # Every gate keeps its sixteen logits, so that what training knew of the other functions is not lost.
    np.testing.assert_array_equal(np.sort(found.flat_logits(), axis=1), np.sort(circuit.flat_logits(), axis=1))


def test_example_of_the_module_is_true() -> None:
    """The cell becomes `(x OR y) AND x`, which is x: both gates become wires."""
    no_wires = [np.zeros((1, 2, 1), dtype=np.int64)] * 2
    logits = {"perceive": [np.zeros((1, 1, 16))] * 2, "update": [np.zeros((2, 16)), np.zeros((1, 16))]}
    # The update network reads the cell, x, and what perception makes of the patch: its first cell, y.
    wires = {"perceive": no_wires, "update": [np.array([[0, 0], [1, 0]]), np.array([[0], [1]])]}
    circuit = with_gates(Circuit.from_arrays(logits, wires, channels=1), [A, A, OR, A, AND])
    found = pruned(circuit, 1).flat_logits().argmax(axis=1)
    assert found.tolist() == [A, A, A, A, B]


def deep(channels: int = 8) -> Circuit:
    """Return a circuit whose channels are ANDs of eight cells of several channels, 1 on very few neighbourhoods."""
    perceive = [np.array([[[0, 2, 4, 6], [1, 3, 5, 7]]]), np.array([[[0, 2], [1, 3]]]), np.array([[[0], [1]]])]
    update = [np.array([[channels + 2 * i for i in range(4)], [channels + 2 * i + 1 for i in range(4)]])]
    update += [np.array([[0, 2], [1, 3]]), np.array([[0] * channels, [1] * channels])]
    wires = {"perceive": perceive, "update": update}
    logits = {
        name: [np.zeros((*layer.shape[:-2], layer.shape[-1], 16), dtype=np.float32) for layer in layers]
        for name, layers in wires.items()
    }
    circuit = Circuit.from_arrays(logits, wires, channels=channels)
    return with_gates(circuit, [AND] * len(circuit.flat_logits()))


def test_rarely_active_gates_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sample shows that this circuit is ever 1: the proof refutes all their wires."""
    circuit, refuted = deep(), []
    proved = prune._refuted

    def noted(*args: object) -> object:
        refuted.append(proved(*args))  # type: ignore[arg-type]
        return refuted[-1]

    monkeypatch.setattr(prune, "_refuted", noted)
    found = pruned(circuit, 1)
    assert refuted[0]
    assert refuted[-1] == []
    # The one neighbourhood that gives 1, as far as it is read, and all that lack a single bit of it.
    starts = np.ones((73, 72), dtype=np.uint8)
    np.fill_diagonal(starts, 0)
    starts = starts.reshape(73, 3, 3, 8)
    next_states = [CellNetlist.from_circuit(each).rollout(starts, 1)[-1, :, 1, 1, 0] for each in (circuit, found)]
    np.testing.assert_array_equal(*next_states)
    assert 0 < next_states[0].sum() < 73


def test_only_refuted_wires_become_gates_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single sample suggests that nearly all gates are wires: proofs refute some, and others stay."""
    circuit, rounds = random_circuit(np.random.default_rng(5), channels=3, periodic=True), []
    proved = prune._refuted

    def counted(*args: object) -> object:
        rounds.append(proved(*args))  # type: ignore[arg-type]
        return rounds[-1]

    many = active_gates(pruned(circuit, 1).flat_logits())
    monkeypatch.setattr(prune, "_refuted", counted)
    monkeypatch.setattr(prune, "_first_samples", lambda inputs, random: np.zeros((inputs, 1), dtype=np.uint8))
    monkeypatch.setattr(prune, "NEAR", 2)
    found = pruned(circuit, 1)
    assert len(rounds) > 2
    assert many <= active_gates(found.flat_logits()) < active_gates(circuit.flat_logits())
    starts = np.random.default_rng(6).integers(0, 2, (500, 3, 3, 3))
    np.testing.assert_array_equal(shown(found, starts, 1), shown(circuit, starts, 1))


def test_unproved_pruning_is_not_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = random_circuit(np.random.default_rng(3), channels=2, periodic=True)
    assert active_gates(pruned(circuit, 1).flat_logits()) < active_gates(circuit.flat_logits())
    monkeypatch.setattr(prune, "_refuted", lambda *_: None)
    assert pruned(circuit, 1) is circuit
