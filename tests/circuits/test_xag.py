"""Graphs compute the same as netlists and have the documented normal form; look-up tables cover them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.readers import source
from difflogic.circuits.synthesis import luts, truth_tables
from difflogic.circuits.synthesis.convert import gate_count, to_netlist, to_xag
from difflogic.circuits.synthesis.truth_tables import all_patterns
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder, cut_out, input_literal, rebuilt
from difflogic.core import gates
from difflogic.core.bits import unpack_bits
from difflogic.model.cell_netlist import CellNetlist
from tests.random_netlists import netlists, random_netlist


def values(graph: XAG, words: np.ndarray) -> np.ndarray:
    nodes = graph.evaluate(words)
    inverted = np.array([output & 1 for output in graph.outputs], dtype=bool)[:, None]
    found = nodes[[output >> 1 for output in graph.outputs]]
    return np.where(inverted, ~found, found)


@given(netlists(), st.booleans(), st.integers(0, 2**32 - 1))
def test_netlist_of_a_graph_computes_the_same(netlist: CellNetlist, share: bool, seed: int) -> None:
    words = np.random.default_rng(seed).integers(0, 2**64, (netlist.inputs, 2), dtype=np.uint64)
    wanted = netlist.evaluate(words)
    graph = to_xag(netlist, share)
    assert np.array_equal(values(graph, words), wanted)
    assert np.array_equal(values(rebuilt(graph, share), words), wanted)
    back = to_netlist(graph, netlist)
    assert np.array_equal(back.evaluate(words), wanted)
    assert gate_count(back) == len(graph.gates) <= gate_count(netlist)


@given(netlists())
def test_graph_has_its_normal_form(netlist: CellNetlist) -> None:
    graph = to_xag(netlist, share=True)
    for node, (xor, a, b) in enumerate(graph.gates, graph.first):
        assert 1 < a < b < 2 * node
        assert a >> 1 != b >> 1
        assert not (xor and (a & 1 or b & 1))
    assert len(set(graph.gates)) == len(graph.gates)


@pytest.mark.parametrize("gate", range(16))
def test_every_gate_is_at_most_one_node(gate: int) -> None:
    builder = Builder(2)
    graph = builder.finish([builder.gate(gate, 2, 4)])
    words = np.array([[0b1100], [0b1010]], dtype=np.uint64)  # (a, b) = 00, 01, 10, 11 from the lowest bit on
    truth = int(values(graph, words)[0, 0])
    assert [truth >> row & 1 for row in range(4)] == gates.TRUTH[gate].tolist()
    assert len(graph.gates) == int(gate not in (0, 3, 5, 10, 12, 15))


def test_constant_and_opposite_outputs_take_one_gate() -> None:
    like = CellNetlist.build(3, False, [], [], [0, 0, 0])
    builder = Builder(27)
    both = builder.and_(2, 4)
    netlist = to_netlist(builder.finish([both, both ^ 1, TRUE]), like)
    assert gate_count(netlist) == 1
    assert sorted(netlist.gates.tolist()) == [1, 12, 15]
    netlist = to_netlist(builder.finish([both ^ 1, FALSE, 3]), like)
    assert sorted(netlist.gates.tolist()) == [0, 12, 14], "the gate is built as the output wants it"


def test_gate_on_one_bit_twice_is_not_counted() -> None:
    assert gate_count(CellNetlist.build(1, False, [1, 6, 1], [[3, 3], [4, 4], [3, 4]], [11])) == 1


def test_cut_out_piece_reads_the_border_and_leaves_false_constant() -> None:
    builder = Builder(3)
    both = builder.and_(2, 5)
    differ = builder.xor(both, 6)
    last = builder.and_(both ^ 1, differ)
    piece = cut_out(builder.finish([last]), [differ >> 1, last >> 1], [last ^ 1, FALSE, TRUE, 2])
    assert piece.reads == [1, 3, both >> 1]
    assert truth_tables.output_tables(piece.graph) == [0b11110011, 0, 0b11111111, 0b10101010]


@pytest.mark.parametrize("inputs", [0, 1, 3, 6, 8])
def test_patterns_are_numbered_by_inputs(inputs: int) -> None:
    """Bit `i` of the number of a sample is input `i`; fewer than 64 samples are repeated in the word."""
    samples = unpack_bits(truth_tables.all_patterns(inputs), max(64, 1 << inputs))
    assert np.array_equal(samples, np.arange(samples.shape[1]) >> np.arange(inputs)[:, None] & 1)
    assert truth_tables.first_one(np.array([0, 0, 8, 1], dtype=np.uint64)) == 2 * 64 + 3


@pytest.mark.parametrize(("channels", "reach"), [(1, 9), (2, 12)])
@given(seed=st.integers(0, 2**32 - 1), gates=st.integers(0, 60))
@settings(max_examples=15, deadline=None)
def test_tables_compute_their_nodes(channels: int, reach: int, seed: int, gates: int) -> None:
    graph = rebuilt(to_xag(random_netlist(np.random.default_rng(seed), gates, channels, True, reach=reach)))
    tables = luts.mapping(graph)
    bits = np.unpackbits(graph.evaluate(all_patterns(graph.inputs)).view(np.uint8), axis=1)
    for node, cut in tables.items():
        codes = (1 << np.arange(len(cut))) @ bits[list(cut)].astype(int)
        values = np.full(8, 2)
        values[codes] = bits[node]
        np.testing.assert_array_equal(values[codes], bits[node])
        assert len(cut) <= luts.INPUTS
    read = {leaf for cut in tables.values() for leaf in cut} | {output >> 1 for output in graph.outputs}
    assert {node for node in read if node >= graph.first} == set(tables)


def test_full_adder_takes_two_tables() -> None:
    builder = Builder(3)
    a, b, c = map(input_literal, range(3))
    half = builder.xor(a, b)
    total = builder.xor(half, c)
    assert len(luts.mapping(builder.finish([total, builder.or_(builder.and_(a, b), builder.and_(half, c))]))) == 2
    assert not luts.mapping(Builder(3).finish([a, 1]))


def test_life_takes_twelve_tables() -> None:
    assert luts.lut_count(source.load("life").netlist) == 12
