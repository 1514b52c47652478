"""In which order the backward kernel takes gates, and which adjoints it finds where. No device is needed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.gpu.trails import ENDS, Trails
from difflogic.gpu.trees import Wiring, are_trees
from difflogic.layout import Level, flat_layout
from tests.gpu.test_trees import tree_circuit
from tests.random_circuits import circuits, random_circuit


def unique_circuit(seed: int, hidden: tuple[int, ...], trees: bool) -> Circuit:
    return random_circuit(np.random.default_rng(seed), hidden=hidden, per_kernel=True, trees=trees, unique=True)


anything = st.one_of(
    circuits(),
    st.builds(tree_circuit, st.integers(0, 9)),
    st.builds(unique_circuit, st.integers(0, 9), st.sampled_from([(7, 5), (10, 20, 9), (40,), ()]), st.booleans()),
)


def ways(circuit: Circuit) -> list[Trails]:
    layout = flat_layout(circuit)
    wiring = Wiring(layout, are_trees(layout))
    return [wiring.apart, wiring.trails]


def after_trees(trails: Trails) -> tuple[Level, ...]:
    return trails.wiring.layout.levels[trails.wiring.tree_levels :]


@given(anything)
def test_trails_join_at_nodes_that_no_other_gate_reads(circuit: Circuit) -> None:
    for trails in ways(circuit):
        wires = trails.wiring.wires
        readers = np.bincount(wires[trails.wiring.sends], minlength=trails.wiring.nodes)
        np.testing.assert_array_equal(np.sort(trails.order), np.arange(len(wires)))
        np.testing.assert_array_equal(trails.places[trails.order], np.arange(len(wires)))
        ends = trails.gates >= ENDS
        assert trails.long or ends.all()
        for level in after_trees(trails):
            taken = trails.order[level.first_instance : level.first_instance + level.count]
            assert set(taken) == set(range(level.first_instance, level.first_instance + level.count))
            assert ends[taken[-1]]
            for one, next_one in itertools.pairwise(taken):
                if not ends[one]:
                    assert wires[one, 1] == wires[next_one, 0]
                    assert readers[wires[one, 1]] == 2


@given(anything)
def test_what_is_sent_arrives(circuit: Circuit) -> None:
    """Taken as the kernel does, from the last level to the patch: no gate's adjoint is lost, and none comes twice."""
    for trails in ways(circuit):
        wiring, layout = trails.wiring, trails.wiring.layout
        rng, slots = np.random.default_rng(0), np.full(trails.slot_count, np.nan)
        expected = np.zeros(wiring.nodes)
        sent = rng.random((layout.instances, 2))

        def arrived(first: int, count: int, trails: Trails = trails, slots: np.ndarray = slots) -> list[float]:
            return [slots[start:end].sum() for start, end in trails.fanout[first : first + count]]

        for level in reversed(after_trees(trails)):
            first = layout.patch_nodes + level.first_instance - wiring.inner
            np.testing.assert_allclose(arrived(first, level.count), expected[first : first + level.count])
            carried = 0.0
            for instance in trails.order[level.first_instance : level.first_instance + level.count]:
                np.add.at(expected, wiring.wires[instance], sent[instance])
                slots[trails.slots[instance, 0]] = carried + sent[instance, 0]
                carried = sent[instance, 1]
                if trails.gates[instance] >= ENDS:
                    slots[trails.slots[instance, 1]] = carried
                    carried = 0.0
        if wiring.trees:
            roots = layout.levels[wiring.tree_levels - 1]
            np.testing.assert_allclose(
                arrived(layout.patch_nodes, roots.count), expected[layout.patch_nodes :][: roots.count]
            )
            sends = trails.sends[: roots.first_instance + roots.count]
            slots[trails.slots[: len(sends)][sends]] = sent[: len(sends)][sends]
            np.add.at(expected, wiring.wires[: len(sends)][sends], sent[: len(sends)][sends])
        np.testing.assert_allclose(arrived(0, layout.patch_nodes), expected[: layout.patch_nodes])


@pytest.mark.parametrize("name", ["checkerboard", "checkerboard-async", "lizard", "colored-g"])
def test_wide_levels_are_one_trail(name: str) -> None:
    """Of `unique` connections, where a level has as many gates as inputs: two or three, with the pair of offset 2."""
    model = presets.get(name).model
    trails = ways(Circuit.initial(model, 3))[1]
    widths = model.update.widths
    equal = [index for index, (n_in, n_out) in enumerate(itertools.pairwise(widths)) if n_in == n_out > 8]
    assert equal
    levels = trails.wiring.layout.levels[-len(widths) + 1 :]
    for index in equal:
        level = levels[index]
        ends = trails.gates[level.first_instance : level.first_instance + level.count] >= ENDS
        assert ends.sum() <= 3
