"""Test circuits from arrays: their fields, checks and initial logits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflogic.config import own_task
from difflogic.config.train import InitialConfig
from difflogic.core import gates, wiring
from difflogic.cpu.engine import CpuEngine
from difflogic.engine.batch import Batch
from difflogic.errors import CircuitError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import ArraysByNetwork, Circuit
from difflogic.reference.engine import ReferenceEngine
from tests.experiments import MODELS
from tests.random_circuits import random_circuit

Parts = dict[str, Any]
Change = Callable[[np.ndarray], Any]


def parts(**changes: Any) -> Parts:
    """The arguments of a valid circuit with C 2, K 2: perception 9-8-4, update 18-5-2."""
    circuit = random_circuit(np.random.default_rng(0), perceive=(8, 4), hidden=(5,), per_kernel=True)
    return {"logits": circuit.logits, "wires": circuit.wires, "channels": 2, "periodic": True, **changes}


def spoil(array: np.ndarray, value: float) -> np.ndarray:
    spoiled = array.copy()
    spoiled.flat[0] = value
    return spoiled


def assert_refused(arguments: Parts, change: Callable[[Parts], Any], message: str) -> None:
    Circuit.from_arrays(**arguments)
    change(arguments)
    with pytest.raises(CircuitError) as raised:
        Circuit.from_arrays(**arguments)
    assert str(raised.value) == message


BOTH = 'must have the keys "perceive" and "update"'
MORE = "update needs one or more layers with logits and wires"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given["logits"].pop("update"), f"logits {BOTH}, got ['perceive']."),
        (lambda given: given["wires"].pop("perceive"), f"wires {BOTH}, got ['update']."),
        (lambda given: given["wires"]["update"].pop(), f"{MORE}, got 2 logits and 1 wires."),
        (
            lambda given: [given[table]["update"].clear() for table in ("logits", "wires")],
            f"{MORE}, got 0 logits and 0 wires.",
        ),
        (
            lambda given: given["logits"]["perceive"].append(given["logits"]["perceive"].pop()[:1]),
            "Expected 2 kernels (K) in all perception layers, got 1 in perceive layer 1.",
        ),
        (lambda given: given.update(channels=3), "The last update layer must have 3 gates, one per channel, got 2."),
        (lambda given: given.update(channels=0), "channels must be at least 1, got 0."),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: Callable[[Parts], Any], message: str) -> None:
    assert_refused(parts(), change, message)


@pytest.mark.parametrize(
    ("table", "network", "layer", "change", "expected"),
    [
        ("logits", "update", 1, lambda a: a.astype(int), "be float32 or float64, got int64."),
        ("logits", "perceive", 0, lambda a: a[0], "have shape [K, out, 16], got [8, 16]."),
        ("logits", "update", 0, lambda a: a[None], "have shape [out, 16], got [1, 5, 16]."),
        ("logits", "update", 0, lambda a: a[:, :15], "have shape [out, 16], got [5, 15]."),
        ("logits", "update", 0, lambda a: a[:0], "have shape [out, 16], got [0, 16]."),
        ("logits", "perceive", 1, lambda a: spoil(a, np.nan), "be finite, got NaN or infinity."),
        ("logits", "update", 1, lambda a: spoil(a, -np.inf), "be finite, got NaN or infinity."),
        ("wires", "update", 0, lambda a: a * 1.0, "be integers, got float64."),
        ("wires", "perceive", 0, lambda a: a[:, :, :7], "have shape [2, 8] or [2, 2, 8], got [2, 2, 7]."),
        ("wires", "update", 1, lambda a: a.T[:1], "have shape [2, 2], got [1, 2]."),
        ("wires", "update", 1, lambda a: np.array([[0, -1], [4, 2]]), "be between 0 and 4, got -1 to 4."),
        ("wires", "perceive", 0, lambda a: np.full_like(a, 9), "be between 0 and 8, got 9 to 9."),
        ("wires", "update", 0, lambda a: np.full_like(a, 18), "be between 0 and 17, got 18 to 18."),
    ],
)
def test_array_that_does_not_fit_is_refused(table, network, layer, change, expected) -> None:
    def put(given: Parts) -> None:
        given[table][network][layer] = change(given[table][network][layer])

    assert_refused(parts(), put, f"The {table} of {network} layer {layer} must {expected}")


@pytest.mark.parametrize(("table", "what"), [("logits", "logits"), ("wires", "wires")])
def test_ragged_rows_are_refused(table: str, what: str) -> None:
    arguments = parts()
    arguments[table]["update"][0] = [[0, 1], [0]]
    with pytest.raises(CircuitError, match=f"^The {what} of update layer 0 must be one array: "):
        Circuit.from_arrays(**arguments)


def test_a_circuit_keeps_its_arrays_and_sizes() -> None:
    arguments = parts()
    circuit = Circuit.from_arrays(**arguments)
    for table, kept in (("logits", circuit.logits), ("wires", circuit.wires)):
        for network in ("perceive", "update"):
            for given_layer, kept_layer in zip(arguments[table][network], kept[network], strict=True):
                np.testing.assert_array_equal(given_layer, kept_layer)
    assert (circuit.channels, circuit.kernels, circuit.gates, circuit.periodic) == (2, 2, 2 * 12 + 7, True)


def test_circuit_copies_its_arrays() -> None:
    arguments = parts()
    circuit = Circuit.from_arrays(**arguments)
    before = circuit.flat_logits()
    arguments["logits"]["update"][0][:] = 0
    arguments["wires"]["update"][0][:] = 0
    np.testing.assert_array_equal(circuit.flat_logits(), before)
    assert circuit.update_wires[0].any()


def test_circuit_accepts_plain_lists() -> None:
    circuit = Circuit.from_arrays(**parts())
    as_lists = Circuit.from_arrays(
        logits={name: [layer.tolist() for layer in layers] for name, layers in circuit.logits.items()},
        wires={name: [layer.tolist() for layer in layers] for name, layers in circuit.wires.items()},
        channels=2,
    )
    np.testing.assert_array_equal(as_lists.flat_logits(), circuit.flat_logits())
    assert not as_lists.periodic


def test_flat_logits_are_kernel_then_gate() -> None:
    circuit = Circuit.from_arrays(**parts())
    flat = circuit.flat_logits()
    np.testing.assert_array_equal(flat[8 + 3], circuit.perceive[0][1, 3])
    np.testing.assert_array_equal(flat[16 + 4 + 2], circuit.perceive[1][1, 2])
    np.testing.assert_array_equal(flat[16 + 8 + 4], circuit.update[0][4])
    np.testing.assert_array_equal(flat[-1], circuit.update[1][-1])


def test_with_logits_changes_logits_and_nothing_else() -> None:
    circuit = Circuit.from_arrays(**parts())
    other = circuit.with_logits(circuit.flat_logits() + 1)
    np.testing.assert_array_equal(other.flat_logits(), circuit.flat_logits() + 1)
    assert other.perceive_wires is circuit.perceive_wires
    assert other.update_wires is circuit.update_wires
    assert (other.channels, other.periodic) == (circuit.channels, circuit.periodic)


def test_shared_and_own_wires_of_the_same_values_compute_the_same() -> None:
    rng = np.random.default_rng(1)
    shared = random_circuit(rng, kernels=3)
    pairs = [layer[0] for layer in shared.perceive_wires]
    own = [np.stack([layer] * 3) for layer in pairs]
    states = []
    for perceive in (pairs, own):
        wires: ArraysByNetwork = {"perceive": perceive, "update": list(shared.update_wires)}
        circuit = Circuit.from_arrays(shared.logits, wires, 2)
        assert [layer.shape[:2] for layer in circuit.perceive_wires] == [(3, 2)] * 3
        states.append(ReferenceEngine().rollout(circuit, np.eye(5)[None, :, :, None].repeat(2, axis=3), steps=3))
    np.testing.assert_array_equal(states[0], states[1])


def test_every_gate_starts_as_the_pass_through() -> None:
    circuit = Circuit.initial(MODELS["checkerboard"], seed=23)
    expected = np.where(np.arange(16) == gates.PASS_THROUGH, 10, 0)
    flat = circuit.flat_logits()
    assert flat.dtype == np.float32
    np.testing.assert_array_equal(flat, np.broadcast_to(expected, (3040, 16)))
    assert (circuit.channels, circuit.kernels, circuit.periodic) == (8, 16, False)


def test_narrow_layers_can_start_lower() -> None:
    """Those of the update network after its widest: 64, 32, ... 1 of game of life."""
    model = MODELS["gol"]
    circuit = Circuit.initial(model, 23, InitialConfig(logit=6, narrow_drop=2.5))
    starts = [np.unique(layer[:, gates.PASS_THROUGH]).tolist() for layer in circuit.update]
    assert starts == [[6]] * 17 + [[3.5]] * 7
    assert {float(layer.max()) for layer in circuit.perceive} == {6}
    plain = Circuit.initial(model, seed=23)
    assert all((a == b).all() for a, b in zip(circuit.update_wires, plain.update_wires, strict=True))


def test_input_wise_gates_begin_with_the_same_shares_of_ones() -> None:
    """Each number is the start logit, or less it, and its sigmoid is the gate's output in that row."""
    model = replace(MODELS["checkerboard"], input_wise=True, wiring_per_kernel=True, all_round=True)
    begun = Circuit.initial(model, 23, InitialConfig(6.0))
    plain = Circuit.initial(replace(model, input_wise=False), 23, InitialConfig(6.0))
    numbers = 6 * (2 * gates.TRUTH[plain.flat_logits().argmax(axis=1)] - 1)
    np.testing.assert_array_equal(begun.flat_logits(), numbers @ gates.INPUT_WISE.T)


@pytest.mark.parametrize("input_wise", [False, True])
def test_initial_logits_can_have_noise(input_wise: bool) -> None:
    model = replace(MODELS["checkerboard"], input_wise=input_wise)
    plain, moved, again, other = (
        Circuit.initial(model, seed, InitialConfig(6.0, 1.5, noise))
        for seed, noise in ((23, 0.0), (23, 0.9), (23, 0.9), (24, 0.9))
    )
    noise = (moved.flat_logits() - plain.flat_logits()).astype(np.float64)
    assert noise.mean() == pytest.approx(0, abs=4 * 0.9 / np.sqrt(noise.size))
    assert noise.std() == pytest.approx(0.9, rel=0.01)
    assert (np.abs(noise) > 2 * 0.9).mean() == pytest.approx(0.0455, abs=0.005)
    assert (np.abs(noise) > 3 * 0.9).mean() == pytest.approx(0.0027, abs=0.001)
    assert moved.flat_logits().tobytes() == again.flat_logits().tobytes() != other.flat_logits().tobytes()
    assert all((a == b).all() for a, b in zip(moved.update_wires, plain.update_wires, strict=True))


def test_wiring_per_kernel_differs_between_kernels() -> None:
    model = replace(MODELS["checkerboard"], wiring_per_kernel=True)
    shared, own = Circuit.initial(MODELS["checkerboard"], 23), Circuit.initial(model, 23)
    first = own.perceive_wires[0]
    assert len({tuple(first[k, 0].tolist()) for k in range(16)}) == 16
    for pairs in first:
        assert sorted(pairs[0].tolist()) == [f for f in range(9) if f != wiring.CENTRE]
        assert (pairs[1] == wiring.CENTRE).all()
    for ours, theirs in zip(own.update_wires, shared.update_wires, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("periodic", [False, True])
def test_fixed_channels_keep_their_values_and_are_not_learned(periodic: bool) -> None:
    model = replace(own_task.circuit(8, kernels=2, hidden=(12, 10), periodic=periodic), held=(2, 5))
    initial = InitialConfig(noise=0.5)
    held, free = Circuit.initial(model, 7, initial), Circuit.initial(replace(model, held=()), 7, initial)
    start = np.random.default_rng(1).integers(0, 2, (2, 6, 5, 8)).astype(np.float32)
    learned = np.random.default_rng(2).normal(0, 3, held.flat_logits().shape).astype(np.float32)
    fixed = held.flat_logits().max(axis=1) > 1e5
    assert fixed.sum() == 6  # two gates in each of three layers
    circuit = held.with_logits(np.where(fixed[:, None], held.flat_logits(), learned))
    for mode in ("soft", "hard"):
        states = ReferenceEngine().rollout(circuit, start, 4, mode)
        np.testing.assert_array_equal(states[..., [2, 5]], np.broadcast_to(start[..., [2, 5]], (5, 2, 6, 5, 2)))
    np.testing.assert_array_equal(held.update_wires[0][:, :10], free.update_wires[0][:, :10])
    for engine in (ReferenceEngine(), CpuEngine()):
        after, _, _ = engine.train_step(circuit, None, Batch(start, 1 - start, 4), lr=0.1)
        # Weight decay alone moves them: learning rate 0.1, decay 0.01.
        decayed = np.float32(0.999) * circuit.flat_logits()
        np.testing.assert_allclose(after.flat_logits()[fixed], decayed[fixed], rtol=1e-6)
        assert (abs(after.flat_logits() - decayed)[~fixed] > 0.01).any()


def beginning(circuit: Circuit, kernel: int) -> np.ndarray:
    """`[3, 3]`: from which cells of a patch the kernel's first output begins with a signal, by the hard circuit."""
    patch = np.eye(9, dtype=np.uint8)
    bits = list(patch.T)
    for logits, wires in zip(circuit.perceive, circuit.perceive_wires, strict=True):
        a, b = wires[kernel]
        ids = logits[kernel].argmax(axis=-1)
        bits = [gates.TRUTH[gate, 2 * bits[i] + bits[j]] for gate, i, j in zip(ids, a, b, strict=True)]
    return bits[0].reshape(3, 3)


@pytest.mark.parametrize("seed", range(12))
def test_all_round_begins_with_each_diagonal_and_a_side(seed: int) -> None:
    """Three kernels with a diagonal neighbour each, the second one with the fourth OR the side next to it."""
    model = replace(MODELS["lizard"], wiring_per_kernel=True, all_round=True)
    plain, circuit = Circuit.initial(replace(model, all_round=False), seed), Circuit.initial(model, seed)
    cells = np.array([beginning(circuit, kernel) for kernel in range(4)])
    assert cells.sum(axis=(1, 2)).tolist() == [1, 2, 1, 1]
    corners = cells[:, ::2, ::2]
    assert corners.sum(axis=0).tolist() == [[1, 1], [1, 1]]
    assert corners.sum(axis=(1, 2)).tolist() == [1, 1, 1, 1]
    (corner,), (side,) = np.argwhere(corners[1]) * 2, np.argwhere(cells[1] * [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert abs(corner - side).sum() == 1
    for ours, drawn in zip(circuit.perceive_wires[0], plain.perceive_wires[0], strict=True):
        assert sorted(ours[0]) == sorted(drawn[0])
        assert (ours[1] == drawn[1]).all()
    assert all((a == b).all() for a, b in zip(circuit.perceive_wires[1:], plain.perceive_wires[1:], strict=True))
    ours, drawn = (np.sort(each.update_wires[0], axis=0).T.tolist() for each in (circuit, plain))
    assert sorted(ours) == sorted(drawn)
    assert all((a == b).all() for a, b in zip(circuit.update_wires[1:], plain.update_wires[1:], strict=True))
    assert (circuit.flat_logits() != plain.flat_logits()).sum() == 2


@pytest.mark.parametrize(("preset", "seed"), [("lizard", 0), ("lizard", 1), ("checkerboard", 2), ("colored_g", 3)])
def test_all_round_connects_half_of_the_channels_directly(preset: str, seed: int) -> None:
    """Four by four, each in the direction of a kernel: after ten steps the signal is ten cells further."""
    model = replace(MODELS[preset], wiring_per_kernel=True, all_round=True, periodic=False)
    circuit, side, steps = Circuit.initial(model, seed), 31, 10
    netlist, half = CellNetlist.from_circuit(circuit), model.channels // 2
    start = np.zeros((1, side, side, model.channels), np.uint8)
    start[0, side // 2, side // 2] = 1
    end = netlist.rollout(start, steps)[-1, 0]
    straight = []
    for channel in range(half):
        kernel = channel // wiring.STRAIGHT % wiring.ALL_ROUND_KERNELS
        expected = np.zeros((side, side), np.uint8)
        [*cells] = np.argwhere(beginning(circuit, kernel)) - 1
        if len(cells) > 1:  # a diagonal and a side: the signal becomes a line of cells
            continue
        # A cell takes what its neighbour has, so that the signal moves the other way.
        expected[tuple(side // 2 - steps * cells[0])] = 1
        straight.append(np.array_equal(end[..., channel], expected))
    # Here and there two channels hand on the same bit from the start, and one of them stays as it was drawn.
    assert np.mean(straight) > 0.8


def test_all_round_is_turned_and_mirrored_by_the_seed() -> None:
    model = replace(MODELS["lizard"], wiring_per_kernel=True, all_round=True)
    circuits = [Circuit.initial(model, seed) for seed in range(40)]
    assert len({beginning(circuit, 1).tobytes() for circuit in circuits}) == 8


def test_another_seed_is_another_wiring() -> None:
    one, two = (Circuit.initial(MODELS["checkerboard"], seed) for seed in (23, 24))
    assert all((a != b).any() for a, b in zip(one.update_wires, two.update_wires, strict=True))
