"""The flat layout: the same function as the definition, and slots that never collide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, flat_layout, slot_places
from tests import naive, tolerances
from tests.experiments import GATES, MODELS
from tests.random_circuits import circuits, random_circuit


@given(circuits())
def test_every_wire_reads_an_earlier_level(circuit: Circuit) -> None:
    layout = flat_layout(circuit)
    for level in layout.levels:
        span = slice(level.first_instance, level.first_instance + level.count)
        assert layout.wires[span].max() < layout.patch_nodes + level.first_instance


@given(circuits())
def test_levels_tile_the_instances_and_the_gates(circuit: Circuit) -> None:
    layout = flat_layout(circuit)
    instance = gate = 0
    for level in layout.levels:
        assert (level.first_instance, level.first_gate) == (instance, gate)
        assert level.count % level.replicas == 0
        instance, gate = instance + level.count, gate + level.count // level.replicas
    assert (instance, gate) == (layout.instances, layout.gates) == (len(layout.instance_gates), circuit.gates)
    assert layout.levels[-1].count == layout.channels == circuit.channels
    uses = np.bincount(layout.instance_gates, minlength=layout.gates)
    in_perception = sum(layer.shape[0] * layer.shape[1] for layer in circuit.perceive)
    assert (uses[:in_perception] == circuit.channels).all()
    assert (uses[in_perception:] == 1).all()


def evaluate(layout: Layout, logits: np.ndarray, patches: list[np.ndarray]) -> list[np.ndarray]:
    """Every node of one step, gate by gate."""
    nodes = list(patches)
    for (a, b), gate in zip(layout.wires, layout.instance_gates, strict=True):
        nodes.append(naive.soft_gate(logits[gate], nodes[a], nodes[b]))
    return nodes


@given(circuits(), st.integers(0, 2**32 - 1))
def test_the_flat_circuit_computes_the_definition(circuit: Circuit, seed: int) -> None:
    state = np.random.default_rng(seed).random((2, 3, 4, circuit.channels))
    patches = [naive.patch(state[..., c], f, circuit.periodic) for c in range(circuit.channels) for f in range(9)]
    nodes = evaluate(flat_layout(circuit), circuit.flat_logits(), patches)
    expected = naive.step(circuit, state, naive.soft_gate)
    got = np.stack(nodes[-circuit.channels :], axis=-1)
    np.testing.assert_allclose(got, expected, rtol=tolerances.STATE_RTOL, atol=tolerances.STATE_ATOL)


def backward_through_slots(layout: Layout, sent: np.ndarray) -> np.ndarray:
    """Each node's sum of what its readers sent, `sent [instances, 2]`, level by level through the slots.

    Fails where a slot is written while it still waits to be read, or is read without having been written.
    The instances of a level run in any order, so what one of them reads no other may write.
    """
    waiting: dict[int, float] = {}
    sums = np.zeros(layout.nodes)

    def collect(node: int) -> range:
        slots = range(*map(int, layout.fanout[node]))
        sums[node] = sum(waiting.pop(slot) for slot in slots)
        return slots

    for level in reversed(layout.levels):
        span = range(level.first_instance, level.first_instance + level.count)
        reading = {slot for instance in span for slot in collect(layout.patch_nodes + instance)}
        for instance in span:
            for side in (0, 1):
                slot = int(layout.slots[instance, side])
                assert slot not in waiting, "two live adjoints share a slot"
                assert slot not in reading, "a level writes where it reads"
                assert slot < layout.slot_count
                waiting[slot] = sent[instance, side]
    for node in range(layout.patch_nodes):
        collect(node)
    assert not waiting, "an adjoint was sent and never read"
    return sums


def check_slots(circuit: Circuit) -> None:
    layout = flat_layout(circuit)
    sent = np.random.default_rng(0).integers(-1000, 1000, layout.wires.shape).astype(float)
    expected = np.zeros(layout.nodes)
    np.add.at(expected, layout.wires.astype(int), sent)
    np.testing.assert_array_equal(backward_through_slots(layout, sent), expected)


@given(circuits())
def test_slots_deliver_what_a_scatter_would(circuit: Circuit) -> None:
    check_slots(circuit)


@pytest.mark.parametrize("experiment", MODELS)
def test_the_papers_circuits_fit(experiment: str) -> None:
    circuit = Circuit.initial(MODELS[experiment], seed=23)
    assert MODELS[experiment].gates == circuit.gates == flat_layout(circuit).gates == GATES[experiment]
    check_slots(circuit)


def test_levels_reuse_their_slots() -> None:
    """A deep circuit needs the slots of the patches and of its two widest neighbours, not of all levels."""
    shallow = random_circuit(np.random.default_rng(0), hidden=(20,) * 3)
    deep = random_circuit(np.random.default_rng(0), hidden=(20,) * 30)
    assert flat_layout(deep).slot_count <= flat_layout(shallow).slot_count + 2 * 20


def test_gate_evaluations_per_cell_are_the_papers() -> None:
    published = {"gol": 2543, "checkerboard": 4608, "checkerboard_async": 5632, "lizard": 12160, "colored_g": 8128}
    counted = {name: flat_layout(Circuit.initial(model, 23)).instances for name, model in MODELS.items()}
    assert counted == published


def test_the_example_of_slot_places() -> None:
    slots, fanout = slot_places(np.array([0, 1, 1, 1, 2, 3, 4, 4, 5, 5]), 2, [2, 4, 5, 6, 7])
    assert slots.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5]
    assert fanout.tolist() == [[0, 1], [1, 4], [4, 5], [5, 6], [6, 8], [4, 6], [6, 6]]
