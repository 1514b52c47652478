"""The wiring that the fused kernels get where perception begins with trees. No device is needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.gpu.trees import Wiring, are_trees
from difflogic.layout import flat_layout
from tests.random_circuits import random_circuit

DEPTHS = ((8, 4, 2), (8, 4, 2, 1))


def tree_circuit(seed: int = 0, perceive: tuple[int, ...] = (8, 4, 2, 1), **options: int) -> Circuit:
    return random_circuit(np.random.default_rng(seed), perceive=perceive, per_kernel=True, trees=True, **options)


@pytest.mark.parametrize("name", tuple(presets.PRESETS))
def test_every_preset_has_trees(name: str) -> None:
    config = presets.get(name)
    for own in (False, True):
        model = config.with_(model={"wiring_per_kernel": own}).model
        assert are_trees(flat_layout(Circuit.initial(model, 3)))


@pytest.mark.parametrize("widths", [(8, 4), (8, 4, 3), (4, 2), (8,)])
def test_other_widths_have_none(widths: tuple[int, ...]) -> None:
    assert not are_trees(flat_layout(random_circuit(np.random.default_rng(1), perceive=widths)))


def test_other_wires_have_none() -> None:
    circuit = tree_circuit()
    leaves, pairs, *rest = circuit.perceive_wires
    assert are_trees(flat_layout(circuit))
    beside = np.where(leaves == 4, 5, leaves)
    assert not are_trees(flat_layout(replace(circuit, perceive_wires=(beside, pairs, *rest))))
    twice = np.zeros_like(pairs)
    assert not are_trees(flat_layout(replace(circuit, perceive_wires=(leaves, twice, *rest))))


@given(st.integers(0, 9), st.sampled_from(DEPTHS), st.integers(1, 3), st.integers(1, 3))
def test_a_tree_is_found_again_from_its_root(seed: int, perceive: tuple[int, ...], channels: int, kernels: int) -> None:
    """Going down by gates, as kernels do, reaches the instances that the layout's wires name."""
    layout = flat_layout(tree_circuit(seed, perceive, channels=channels, kernels=kernels))
    wiring = Wiring(layout, trees=True)
    for level in (2, 1):
        here, below = layout.levels[level], layout.levels[level - 1]
        for instance in range(here.first_instance, here.first_instance + here.count):
            channel = (instance - here.first_instance) % channels
            found = below.first_instance + (wiring.wires[instance] - below.first_gate) * channels + channel
            np.testing.assert_array_equal(layout.patch_nodes + found, layout.wires[instance])


def test_a_tree_sends_to_the_cell_itself_once() -> None:
    layout = flat_layout(tree_circuit(channels=2, kernels=3))
    wiring = Wiring(layout, trees=True)
    leaves = layout.levels[0]
    sends = wiring.sends[: leaves.count]
    assert sends[:, 0].all()
    assert sends[:, 1].sum() == leaves.count / 4 == layout.levels[2].count
