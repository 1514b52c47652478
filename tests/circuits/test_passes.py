"""Every pass leaves the automaton what it is, and never makes it larger."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic import netlist_json, wiring
from difflogic.circuits import merge, resynthesis
from difflogic.circuits.care import Possible, Recorded
from difflogic.circuits.convert import gate_count, to_graph, to_netlist
from difflogic.circuits.counting import rebuilt_by_counting
from difflogic.circuits.graph import Builder, Graph
from difflogic.circuits.merge import differ_anywhere, merged
from difflogic.circuits.prove import prove
from difflogic.circuits.resubstitution import improved
from difflogic.circuits.sat import Solver
from difflogic.circuits.simplify import FUNCTIONAL, STRUCTURAL, simplified
from difflogic.circuits.truth import Samples, Tables
from difflogic.netlist import Netlist
from tests.circuits.test_graph import values
from tests.random_circuits import bits
from tests.random_netlists import netlists, random_netlist, same

PASSES = STRUCTURAL | FUNCTIONAL


@pytest.fixture(autouse=True)
def short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a walk finds is checked as well after ten moves as after a thousand."""
    monkeypatch.setattr(resynthesis, "WALKS", 2)
    monkeypatch.setattr(resynthesis, "MOVES", 10)


def shows_the_same(one: Netlist, other: Netlist, seed: int) -> bool:
    """The visible channels of both over three steps from a random start, matched by the channels' names."""
    count = 1 + max(*one.origin, *other.origin)
    start = bits(np.random.default_rng(seed), 2, 7, 6, count)
    shown = [each.rollout(start[..., list(each.origin)], 3)[..., : each.visible] for each in (one, other)]
    return np.array_equal(*shown)


@pytest.mark.parametrize("name", PASSES)
@given(netlist=netlists(most=60), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_a_pass_changes_nothing_and_never_grows(name: str, netlist: Netlist, seed: int) -> None:
    before = gate_count(netlist), len(netlist.gates)
    found = PASSES[name](netlist)
    assert shows_the_same(netlist, found, seed)
    assert gate_count(found) <= before[0]
    assert (gate_count(netlist), len(netlist.gates)) == before, "a pass is a pure function"
    assert same(PASSES[name](netlist), found), "and always gives the same"


@given(netlist=netlists(most=60), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_all_passes_together_prove_what_they_did(netlist: Netlist, seed: int) -> None:
    found = simplified(netlist)
    assert found.verdict.equal is True
    assert shows_the_same(netlist, found.netlist, seed)
    gates = [gate_count(netlist), *(step.gates[1] for step in found.steps)]
    assert gates == sorted(gates, reverse=True)
    assert gates[-1] == gate_count(found.netlist)
    again = simplified(found.netlist)
    assert gate_count(again.netlist) <= gate_count(found.netlist)


def test_unseen_channels_are_dropped() -> None:
    """0 reads 2, 2 reads itself; 1 reads everything and is read by itself alone."""
    netlist = Netlist.build(3, False, [1, 6], [[9 * 2 + 3, 9 * 2 + 5], [0, 9]], [27, 28, 9 * 2 + 4], visible=1)
    found = STRUCTURAL["channels that are never seen dropped"](netlist)
    assert found.origin == (0, 2)
    assert gate_count(found) == 1
    assert shows_the_same(netlist, found, 3)
    assert STRUCTURAL["channels that are never seen dropped"](found) is found


def wide_with_twins(seed: int, kept_inputs: int) -> Graph:
    """A random circuit beside itself made of other gates, on so many inputs that random words must do."""
    netlist = random_netlist(np.random.default_rng(seed), 60, channels=3, reach=30)
    graph = to_graph(netlist)
    builder = Builder(graph.inputs, share=False)
    outputs = []
    for rewrite in (False, True):
        literals = [2 * node if node <= kept_inputs else 2 * (1 + node % kept_inputs) for node in range(graph.first)]
        literals[0] = 0
        for gate in graph.gates:
            a, b = literals[gate.a >> 1] ^ (gate.a & 1), literals[gate.b >> 1] ^ (gate.b & 1)
            if rewrite and gate.xor:
                literals.append(builder.or_(builder.and_(a, b ^ 1), builder.and_(a ^ 1, b)))
            elif rewrite:
                literals.append(builder.xor(builder.or_(a, b), builder.xor(a, b)))
            else:
                literals.append(builder.copy(gate, literals[gate.a >> 1], literals[gate.b >> 1]))
        outputs += literals[-8:]
    return builder.finish(outputs)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("inputs", [9, 27])
def test_twins_made_of_other_gates_are_found(seed: int, inputs: int) -> None:
    graph = wide_with_twins(seed, inputs)
    found = merged(graph)
    assert found.outputs[:8] == found.outputs[8:]
    words = np.random.default_rng(seed).integers(0, 2**64, (graph.inputs, 8), dtype=np.uint64)
    assert np.array_equal(values(found, words), values(graph, words))


def test_what_random_words_cannot_tell_apart_is_not_merged() -> None:
    """An AND of 27 inputs is 0 on every random sample, but it is not FALSE."""
    builder = Builder(27)
    every = 2
    for index in range(1, 27):
        every = builder.and_(every, 2 * (1 + index))
    graph = builder.finish([every, builder.and_(every, 3)])
    found = merged(graph)
    assert found.outputs[0] > 1
    assert found.outputs[1] == 0
    assert len(found.gates) == 26


@given(netlists(most=30), st.data())
def test_exhaustion_and_sat_agree(netlist: Netlist, data: st.DataObject) -> None:
    graph = to_graph(netlist)
    literals = st.integers(0, 2 * graph.size - 1)
    one, other = data.draw(literals), data.draw(literals)
    if (graph.supports[one >> 1] | graph.supports[other >> 1]).bit_count() > 12:
        return
    exhaustive = differ_anywhere(graph, one, other)
    with Solver(graph) as solver:
        by_sat = solver.differ(one, other)
        assert solver.differ(one, other) == by_sat or by_sat is not False
    assert (exhaustive is False) == (by_sat is False)
    for answer in (exhaustive, by_sat):
        if isinstance(answer, tuple):
            nodes = graph.evaluate(np.array(answer, dtype=np.uint64)[:, None])[:, 0]
            ends = [int(nodes[literal >> 1] & np.uint64(1)) ^ (literal & 1) for literal in (one, other)]
            assert ends[0] != ends[1]


def test_a_solver_that_gives_up_says_so() -> None:
    """Two multipliers' middle bits, the factors exchanged: hard for SAT, and one conflict is not enough."""
    builder = Builder(24)
    products = [_product(builder, list(range(2, 26, 2)), list(range(26, 50, 2)), swap) for swap in (False, True)]
    graph = builder.finish(products)
    with Solver(graph, conflicts=1) as solver:
        assert solver.differ(*products) is None


def _product(builder: Builder, x: list[int], y: list[int], swap: bool) -> int:
    """The middle bit of a product, row after row."""
    x, y = (y, x) if swap else (x, y)
    total = [0] * (len(x) + len(y))
    for shift, factor in enumerate(y):
        carry = 0
        for index, other in enumerate(x):
            bit, place = builder.and_(factor, other), shift + index
            half = builder.xor(total[place], bit)
            overflow = builder.or_(builder.and_(total[place], bit), builder.and_(half, carry))
            total[place], carry = builder.xor(half, carry), overflow
        total[shift + len(x)] = carry
    return total[len(x)]


def life_graph() -> Graph:
    """Life as it is usually told, with inputs counted by adders and compared."""
    builder = Builder(wiring.PATCH)
    tables = Tables(builder.finish([]))
    alive = 0
    for sample in range(512):
        around = (sample & ~(1 << wiring.CENTRE)).bit_count()
        alive |= (around == 3 or (around == 2 and sample >> wiring.CENTRE & 1)) << sample
    minterms = builder.finish([_sum_of_products(builder, alive)])
    assert Tables(minterms).literal(minterms.outputs[0]) == alive
    assert tables.ones == (1 << 512) - 1
    return minterms


def _sum_of_products(builder: Builder, table: int) -> int:
    result = 0
    for sample in range(512):
        if table >> sample & 1:
            product = 1
            for index in range(9):
                product = builder.and_(product, 2 * (1 + index) ^ (1 - (sample >> index & 1)))
            result = builder.or_(result, product)
    return result


def test_counting_finds_adders() -> None:
    graph = life_graph()
    found = rebuilt_by_counting(graph)
    assert len(graph.gates) > 500
    assert len(found.gates) < 40
    assert Tables(found).literal(found.outputs[0]) == Tables(graph).literal(graph.outputs[0])


@given(netlists(most=25), st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_on_samples_alone_only_these_stay(netlist: Netlist, seed: int) -> None:
    graph = to_graph(netlist)
    words = np.random.default_rng(seed).integers(0, 2**64, (graph.inputs, 1), dtype=np.uint64)
    samples = Samples(64, tuple(int(row[0]) for row in words))
    found = improved(graph, walks=1, moves=5, samples=samples)
    assert np.array_equal(values(found, words), values(graph, words))
    assert len(found.gates) <= len(graph.gates)


@given(netlists(most=60), st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_windows_are_right_where_they_are_cared_for(netlist: Netlist, seed: int) -> None:
    """On samples that were recorded; and on all inputs on which two clauses hold, of which few are samples."""
    graph = to_graph(netlist)
    words = np.random.default_rng(seed).integers(0, 2**64, (graph.inputs, 4), dtype=np.uint64)
    found = resynthesis.window_by_window(graph, Recorded(words[:, :1]))
    assert np.array_equal(values(found, words[:, :1]), values(graph, words[:, :1]))
    assert len(found.gates) <= len(graph.gates)
    words[0] |= words[1]  # in[0][0] OR in[0][1]
    words[2] &= ~words[3]  # not both of in[0][2] and in[0][3]
    care = Possible(words[:, :1], [(2, 4), (7, 9)])
    found = resynthesis.window_by_window(graph, care)
    care.close()
    assert np.array_equal(values(found, words), values(graph, words))


def test_a_large_circuit_ends_after_the_structural_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    wires = random_netlist(np.random.default_rng(5), 20_000, channels=4, reach=400).wires
    netlist = Netlist.build(4, False, np.full(20_000, 6), wires, np.arange(20_032, 20_036))
    monkeypatch.setattr("difflogic.circuits.simplify.MOST_GATES", 1000)
    monkeypatch.setitem(FUNCTIONAL, "resynthesis", lambda netlist: pytest.fail("not for this"))
    found = simplified(netlist)
    assert gate_count(found.netlist) > 1000
    assert found.note.startswith("Only structural passes")


def test_windows_share_nothing_wrong() -> None:
    """A graph too wide to be taken whole goes through windows, and stays what it is."""
    netlist = random_netlist(np.random.default_rng(8), 400, channels=3, reach=60)
    graph = merge.merged(to_graph(netlist))
    found = resynthesis.resynthesised(graph)
    assert len(found.gates) < len(graph.gates)
    assert prove(netlist, to_netlist(found, netlist), ["difflogic"])[0].equal


def test_a_million_gates_are_read_and_simplified() -> None:
    """Random gates: most of what the outputs read is constant, as it turns out."""
    netlist = random_netlist(np.random.default_rng(1), 1_000_000, channels=4, reach=500)
    found = simplified(netlist_json.from_json(netlist_json.to_json(netlist)))
    assert found.verdict.equal is True
    assert shows_the_same(netlist, found.netlist, 1)
