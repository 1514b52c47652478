"""The wiring that the fused kernels get: trees in perception, and a slot for every input. No device is needed."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.config import presets
from difflogic.gpu.wiring import Wiring, are_trees
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, Level, flat_layout
from tests.random_circuits import circuits, random_circuit

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


def unique_circuit(seed: int, hidden: tuple[int, ...], trees: bool) -> Circuit:
    return random_circuit(np.random.default_rng(seed), hidden=hidden, per_kernel=True, trees=trees, unique=True)


anything = st.one_of(
    circuits(),
    st.builds(tree_circuit, st.integers(0, 9)),
    st.builds(unique_circuit, st.integers(0, 9), st.sampled_from([(7, 5), (10, 20, 9), (40,), ()]), st.booleans()),
)


@given(anything)
def test_what_is_sent_arrives(circuit: Circuit) -> None:
    """Taken as the kernel does, from the last level to the patch: no gate's adjoint is lost, and none comes twice."""
    layout = flat_layout(circuit)
    wiring = Wiring(layout, are_trees(layout))
    rng, slots = np.random.default_rng(0), np.full(wiring.slot_count, np.nan)
    expected, sent = np.zeros(wiring.nodes), rng.random((layout.instances, 2))

    def arrived(first: int, count: int) -> list[float]:
        return [slots[start:end].sum() for start, end in wiring.fanout[first : first + count]]

    def send(first: int, last: int) -> None:
        sends = wiring.sends[first:last]
        slots[wiring.slots[first:last][sends]] = sent[first:last][sends]
        np.add.at(expected, wiring.wires[first:last][sends], sent[first:last][sends])

    for level in reversed(layout.levels[wiring.tree_levels :]):
        first = layout.patch_nodes + level.first_instance - wiring.inner
        np.testing.assert_allclose(arrived(first, level.count), expected[first : first + level.count])
        send(level.first_instance, level.first_instance + level.count)
    if wiring.trees:
        roots = layout.levels[wiring.tree_levels - 1]
        at_roots = expected[layout.patch_nodes :][: roots.count]
        np.testing.assert_allclose(arrived(layout.patch_nodes, roots.count), at_roots)
        send(0, roots.first_instance + roots.count)
    np.testing.assert_allclose(arrived(0, layout.patch_nodes), expected[: layout.patch_nodes])


@given(anything)
def test_a_level_stays_in_one_piece(circuit: Circuit) -> None:
    layout = flat_layout(circuit)
    wiring = Wiring(layout, are_trees(layout))
    for index, level in enumerate(layout.levels):
        own = np.arange(level.first_instance, level.first_instance + level.count)
        taken = wiring.order[own]
        np.testing.assert_array_equal(taken if index < wiring.tree_levels else np.sort(taken), own)


@pytest.mark.parametrize("name", ["checkerboard", "checkerboard-async", "lizard", "colored-g"])
def test_what_a_gate_reads_is_mostly_at_hand(name: str) -> None:
    """The `unique` connections of a level with as many gates as inputs: two or three are not unique, at offset 2."""
    model = presets.get(name).model
    layout = flat_layout(Circuit.initial(model, 3))
    wires = Wiring(layout, are_trees(layout))
    widths = model.update.widths
    equal = [index for index, (n_in, n_out) in enumerate(itertools.pairwise(widths)) if n_in == n_out > 8]
    assert equal
    for index in equal:
        level = layout.levels[index - len(widths) + 1]
        a, b = wires.wires[wires.order[level.first_instance : level.first_instance + level.count]].T
        assert (a[1:] == b[:-1]).sum() >= level.count - 3


def test_the_worked_example() -> None:
    """The example in `Wiring`: two gates that share the cell itself, and one that reads both."""
    wires = np.array([[0, 4], [4, 8], [9, 10]], dtype=np.uint32)
    wiring = Wiring(Layout(1, 3, (Level(0, 2, 0, 1), Level(2, 1, 2, 1)), wires, 0, perception_levels=0), trees=False)
    assert wiring.slots.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert wiring.fanout[[0, 4, 8, 9, 10]].tolist() == [[0, 1], [1, 3], [3, 4], [4, 5], [5, 6]]


@given(anything)
def test_near_places_hold_what_a_level_reads(circuit: Circuit) -> None:
    layout = flat_layout(circuit)
    wiring = Wiring(layout, are_trees(layout))
    if not wiring.reads_near:
        return
    near = np.full(wiring.near_nodes, -1)
    near[: layout.patch_nodes] = range(layout.patch_nodes)
    for number, level in enumerate(layout.levels):
        span = slice(level.first_instance, level.first_instance + level.count)
        if number >= wiring.tree_levels:
            np.testing.assert_array_equal(near[wiring.near_wires[span]], wiring.wires[span])
        if number >= wiring.tree_levels - 1:
            place = layout.patch_nodes + number % 2 * wiring.near_odd
            near[place : place + level.count] = layout.patch_nodes + np.arange(span.start, span.stop) - wiring.inner
