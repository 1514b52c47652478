"""Test that the flat layout computes the circuit, and that slots never collide."""

import numpy as np
import pytest
from hypothesis import given

from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout, slot_places
from tests.experiments import GATES, MODELS
from tests.random_circuits import circuits, random_circuit


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


@pytest.mark.parametrize("experiment", MODELS)
def test_circuits_of_the_paper_have_their_sizes(experiment: str) -> None:
    circuit = Circuit.initial(MODELS[experiment], seed=23)
    assert MODELS[experiment].gates == circuit.gates == flat_layout(circuit).gates == GATES[experiment]


def test_levels_reuse_their_slots() -> None:
    """A deep circuit needs the slots of the patches and of its two widest neighbours, not of all levels."""
    shallow = random_circuit(np.random.default_rng(0), hidden=(20,) * 3)
    deep = random_circuit(np.random.default_rng(0), hidden=(20,) * 30)
    assert flat_layout(deep).slot_count <= flat_layout(shallow).slot_count + 2 * 20


def test_gate_evaluations_per_cell_are_the_papers() -> None:
    published = {"gol": 2543, "checkerboard": 4608, "checkerboard_async": 5632, "lizard": 12160, "colored_g": 8128}
    counted = {name: flat_layout(Circuit.initial(model, 23)).instances for name, model in MODELS.items()}
    assert counted == published


def test_slot_places_of_its_documented_example() -> None:
    slots, fanout = slot_places(np.array([0, 1, 1, 1, 2, 3, 4, 4, 5, 5]), 2, [2, 4, 5, 6, 7])
    assert slots.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5]
    assert fanout.tolist() == [[0, 1], [1, 4], [4, 5], [5, 6], [6, 8], [4, 6], [6, 6]]
