"""Every pass keeps the automaton equivalent, and never makes it larger."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial, reduce
from types import SimpleNamespace
from typing import NoReturn
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis import large, resubstitution, resynthesis, sweep
from difflogic.circuits.synthesis.cell import Cell
from difflogic.circuits.synthesis.convert import gate_count, to_netlist, to_xag
from difflogic.circuits.synthesis.large import rewritten
from difflogic.circuits.synthesis.matching import matched
from difflogic.circuits.synthesis.products import with_shared_products
from difflogic.circuits.synthesis.prove import prove
from difflogic.circuits.synthesis.resubstitution import improved, resubstituted
from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.simplify import FUNCTIONAL, Search, simplified
from difflogic.circuits.synthesis.sweep import differ_anywhere, swept
from difflogic.circuits.synthesis.symmetric import rebuilt_symmetric
from difflogic.circuits.synthesis.truth_tables import all_patterns, output_tables
from difflogic.circuits.synthesis.xag import (
    FALSE,
    TRUE,
    XAG,
    Builder,
    Interrupted,
    Node,
    input_literal,
    mapped,
    rebuilt,
)
from difflogic.core import wiring
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import NamedNetlist, gate_arrays
from tests.circuits.test_xag import values
from tests.export_cases import CASES
from tests.random_circuits import bits
from tests.random_netlists import netlists, random_netlist, same
from tests.sampled import sampled

WORK = resubstitution.WORK
PASSES: dict[str, Callable[[Search], None]] = {
    "structural": Search.drop_structure,
    "unseen channels": Search.drop_unseen_channels,
    **{name: partial(Search.apply, name=name, change=change) for name, change in FUNCTIONAL.items()},
}


@pytest.fixture(autouse=True)
def short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """End walks after few moves, whose results are tested as well as those of thousands."""
    monkeypatch.setattr(resubstitution, "WORK", 10_000)


def after(netlist: CellNetlist, name: str) -> CellNetlist:
    search = Search(Cell.of(netlist))
    PASSES[name](search)
    return search.cell.netlist(netlist)


def shows_the_same(one: CellNetlist, other: CellNetlist, seed: int) -> bool:
    """Return if the visible channels of both are equal in three steps from a random state, matched by name."""
    count = 1 + max(*one.origin, *other.origin)
    start = bits(np.random.default_rng(seed), 2, 7, 6, count)
    shown = [each.rollout(start[..., list(each.origin)], 3)[..., : each.visible] for each in (one, other)]
    return np.array_equal(*shown)


@pytest.mark.parametrize("name", PASSES)
@given(netlist=netlists(most=60), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_pass_keeps_functions_and_never_grows(name: str, netlist: CellNetlist, seed: int) -> None:
    before = gate_count(netlist), len(netlist.gates)
    found = after(netlist, name)
    assert shows_the_same(netlist, found, seed)
    assert gate_count(found) <= before[0]
    assert (gate_count(netlist), len(netlist.gates)) == before, "a pass is a pure function"
    assert same(after(netlist, name), found), "and always gives the same"


@given(netlist=netlists(most=60), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_all_passes_together_are_proved(netlist: CellNetlist, seed: int) -> None:
    found = simplified(netlist)
    assert found.verdict.equal is True
    assert shows_the_same(netlist, found.netlist, seed)
    gates = [gate_count(netlist), *(step.gates[1] for step in found.steps)]
    assert gates == sorted(gates, reverse=True)
    assert gates[-1] == gate_count(found.netlist)
    assert not any(step.gained for step in simplified(found.netlist).steps), "again it gains nothing"


def test_passes_repeat_until_all_gain_nothing() -> None:
    """A pass is not repeated after its own gain, only the others are."""
    calls: list[str] = []

    def fewer(name: str, steps: dict[int, int]) -> Callable[[XAG], XAG]:
        def change(graph: XAG) -> XAG:
            calls.append(name)
            return XAG(9, graph.gates[: steps.get(len(graph.gates))], [])

        return change

    search = Search(Cell(XAG(9, [Node(True, 2, 4)] * 4, []), (0,), 1))
    search.to_fixpoint({"a": fewer("a", {4: 3, 2: 1}), "b": fewer("b", {}), "c": fewer("c", {3: 2})})
    assert "".join(calls) == "abcabc"
    assert (search.cell.size, len(search.steps)) == ((1, 1), 6)


@pytest.mark.parametrize("born", sampled(({3}, {3, 6}), ({3, 6},)))
def test_channel_of_few_inputs_is_resynthesized(born: set[int]) -> None:
    """Rules of Life as 500 gates and more, alone, and next to a channel with too many inputs for a table."""
    alone = life_graph(born)
    assert len(simplified(to_netlist(alone, random_netlist(np.random.default_rng(1), 0))).netlist.gates) <= 27
    builder = Builder(27)
    (rule,) = builder.embed(alone, range(2, 20, 2))
    both = builder.finish([rule, reduce(builder.xor, range(20, 56, 2))])
    found = resynthesis.by_channel(both)
    assert len(found.gates) <= 17 + 27
    words = np.random.default_rng(1).integers(0, 2**64, (27, 8), dtype=np.uint64)
    assert np.array_equal(values(found, words), values(both, words))


@pytest.mark.parametrize("method", ["windows", "products", "samples"])
@given(netlist=netlists(most=60), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_replacements_keep_values_and_never_grow(method: str, netlist: CellNetlist, seed: int) -> None:
    graph = to_xag(netlist) if method == "samples" else rebuilt(to_xag(netlist))
    words = np.random.default_rng(seed).integers(0, 2**64, (graph.inputs, 8), dtype=np.uint64)
    if method == "samples":
        words = words[:, :1]
        found = improved(graph, words, work=0)
    elif method == "products":
        found = with_shared_products(graph)
    else:
        found = resubstitution.walked_in_windows(graph, rounds=2)
        again = resubstitution.walked_in_windows(found, rounds=2)
        assert (again.gates, again.outputs) == (found.gates, found.outputs)
    assert np.array_equal(values(found, words), values(graph, words))
    assert len(found.gates) <= len(graph.gates)


def test_windows_find_a_common_factor_in_a_graph_of_many_inputs() -> None:
    """The XOR of `x AND y` for each of twenty y needs one AND."""
    builder = Builder(21)
    graph = builder.finish([reduce(builder.xor, [builder.and_(2, literal) for literal in range(4, 44, 2)])])
    assert len(graph.gates) == 39
    assert len(resubstitution.walked_in_windows(graph, rounds=2).gates) == 20


def test_multiplexers_of_one_address_share_products() -> None:
    """Each selects from four words: nine gates as a tree, seven next to the four shared products of both bits."""
    builder, trees = Builder(2 + 4 * 5), 5
    s, t, *words = range(2, 2 * (builder.inputs + 1), 2)

    def chosen(select: int, one: int, other: int) -> int:
        return builder.or_(builder.and_(select, one), builder.and_(select ^ 1, other))

    made = [chosen(s, chosen(t, a, b), chosen(t, c, d)) for a, b, c, d in zip(*[iter(words)] * 4, strict=True)]
    graph = builder.finish(made)
    assert len(graph.gates) == 9 * trees
    assert len(with_shared_products(graph).gates) == 7 * trees + 4


def interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_ctrl_c_in_a_proof_leaves_the_circuit_unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflogic.circuits.synthesis.simplify.prove", interrupt)
    found = simplified(CASES["published"], lambda step: None)
    assert (found.stopped, found.verdict.equal) == (True, None)
    assert found.steps[-1].name == "proof"


def test_ctrl_c_in_resubstitution_returns_proved_replacements(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = to_xag(random_netlist(np.random.default_rng(8), 400, channels=3, reach=60), share=True)
    solve, proofs = Solver.solve, iter(range(20))

    def solved(solver: Solver, assumptions: list[int]) -> bool | None:
        if next(proofs, None) is None:
            raise KeyboardInterrupt
        return solve(solver, assumptions)

    monkeypatch.setattr(Solver, "solve", solved)
    words = np.random.default_rng(1).integers(0, 2**64, (graph.inputs, 4), dtype=np.uint64)
    with pytest.raises(Interrupted) as stopped:
        resubstituted(graph, words)
    assert len(stopped.value.graph.gates) < len(rebuilt(graph).gates)
    assert np.array_equal(values(stopped.value.graph, words), values(graph, words))


def test_graph_of_one_output_does_not_replace_an_interrupted_cell() -> None:
    """A pass searches outputs one by one, and Ctrl-C returns the graph of one of them."""
    cell = Cell.of(random_netlist(np.random.default_rng(8), 40, channels=2, reach=60))
    partial_graph = XAG(cell.graph.inputs, cell.graph.gates, cell.graph.outputs[:1])
    search = Search(cell, lambda step: None)
    search.apply("stopped", Mock(side_effect=Interrupted(partial_graph)))
    assert search.stopped
    assert search.cell.graph is cell.graph


def test_undecided_replacement_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = rebuilt(to_xag(random_netlist(np.random.default_rng(8), 400, channels=3, reach=60), share=True))
    asked = Mock(return_value=None)
    monkeypatch.setattr(Solver, "solve", asked)
    monkeypatch.setattr(resubstitution, "PROVED_MOVES", 0)
    words = np.random.default_rng(1).integers(0, 2**64, (graph.inputs, 4), dtype=np.uint64)
    resubstituted(graph, words)
    assert 10 < asked.call_count <= len(graph.gates)


def test_ctrl_c_in_the_solver_is_keyboard_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver raises an error of its own for it."""
    with Solver(Builder(1).finish([2]), conflicts=10) as solver:
        engine = SimpleNamespace(delete=lambda: None, conf_budget=lambda budget: None)
        engine.solve_limited = Mock(side_effect=[Exception("Caught keyboard interrupt"), Exception("another")])
        monkeypatch.setattr(solver, "_engine", engine)
        with pytest.raises(KeyboardInterrupt):
            solver.solve([])
        with pytest.raises(Exception, match="another"):
            solver.solve([])


def test_smallest_graph_stays() -> None:
    """An AND of nine inputs needs eight gates; a constant none."""
    builder = Builder(9)
    graph = builder.finish([reduce(builder.and_, range(2, 20, 2)), 0, 4])
    assert len(resynthesis.resynthesised(graph).gates) == 8
    assert resynthesis.resynthesised(Builder(9).finish([1])).outputs == (1,)


def test_walk_in_few_gates_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of moves counts for any budget, since all replacements were tried many times by then."""
    moves = []
    walk = resubstitution._State.walk
    monkeypatch.setattr(resubstitution._State, "walk", lambda state, most: (moves.append(most), walk(state, most)))
    builder = Builder(3)
    carry = builder.xor(builder.and_(builder.xor(2, 4), builder.xor(2, 6)), 2)
    assert len(improved(builder.finish([carry]), work=10**12).gates) == 4
    assert moves
    assert max(moves) <= 4 * resubstitution.MOST_MOVES


def test_smallest_graph_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small rule must not wait until the search is compiled."""
    monkeypatch.delattr(resubstitution, "_State")
    builder = Builder(4)
    outputs = [builder.and_(builder.and_(2, 4), 7), builder.xor(2, 4), builder.and_(2, 4) ^ 1, 8]
    assert len(resynthesis.resynthesised(builder.finish(outputs)).gates) == 3


def test_unseen_channels_are_removed() -> None:
    """Channel 0 reads 2, 2 reads itself; 1 reads everything and is read only by itself."""
    netlist = CellNetlist.build(3, False, [1, 6], [[9 * 2 + 3, 9 * 2 + 5], [0, 9]], [27, 28, 9 * 2 + 4], visible=1)
    found = after(netlist, "unseen channels")
    assert found.origin == (0, 2)
    assert gate_count(found) == 1
    assert shows_the_same(netlist, found, 3)
    assert after(found, "unseen channels").origin == (0, 2)


def wide_with_twins(seed: int, kept_inputs: int) -> XAG:
    """Return a random circuit twice, the second time of other gates, with too many inputs for exhaustion."""
    netlist = random_netlist(np.random.default_rng(seed), 60, channels=3, reach=30)
    graph = to_xag(netlist)
    builder = Builder(graph.inputs, share=False)
    outputs = []
    for rewrite in (False, True):
        literals = [2 * node if node <= kept_inputs else 2 * (1 + node % kept_inputs) for node in range(graph.first)]
        literals[0] = 0
        for gate in graph.gates:
            a, b = mapped(gate.a, literals), mapped(gate.b, literals)
            if rewrite and gate.xor:
                literals.append(builder.or_(builder.and_(a, b ^ 1), builder.and_(a ^ 1, b)))
            elif rewrite:
                literals.append(builder.xor(builder.or_(a, b), builder.xor(a, b)))
            else:
                literals.append(builder.xor(a, b) if gate.xor else builder.and_(a, b))
        outputs += literals[-8:]
    return builder.finish(outputs)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("inputs", [9, 27])
def test_equal_nodes_of_other_gates_are_merged(seed: int, inputs: int) -> None:
    graph = wide_with_twins(seed, inputs)
    found = swept(graph)
    assert found.outputs[:8] == found.outputs[8:]
    words = np.random.default_rng(seed).integers(0, 2**64, (graph.inputs, 8), dtype=np.uint64)
    assert np.array_equal(values(found, words), values(graph, words))


def test_nodes_equal_on_samples_only_are_not_merged() -> None:
    """An AND of 27 inputs is 0 on every random sample, but it is not FALSE."""
    builder = Builder(27)
    every = 2
    for index in range(1, 27):
        every = builder.and_(every, 2 * (1 + index))
    graph = builder.finish([every, builder.and_(every, 3)])
    found = swept(graph)
    assert found.outputs[0] > 1
    assert found.outputs[1] == 0
    assert len(found.gates) == 26


@given(netlists(most=30), st.data())
def test_exhaustion_and_sat_agree(netlist: CellNetlist, data: st.DataObject) -> None:
    graph = to_xag(netlist)
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


def test_undecided_query_is_reported() -> None:
    """The middle bits of two multipliers with exchanged factors are hard for SAT: one conflict is not enough."""
    builder = Builder(24)
    products = [_product(builder, list(range(2, 26, 2)), list(range(26, 50, 2)), swap) for swap in (False, True)]
    graph = builder.finish(products)
    with Solver(graph, conflicts=1) as solver:
        assert solver.differ(*products) is None


def test_two_multipliers_are_swept_in_topological_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """With each XOR in three gates the outputs alone are far too hard, and each sum by itself is easy."""
    monkeypatch.setattr("difflogic.circuits.synthesis.prove.EASY", 1)
    builder, like = Builder(27), CellNetlist.build(3, False, [], [], [0, 1, 2], visible=1)
    product = builder.finish([_product(builder, list(range(2, 26, 2)), list(range(26, 50, 2)), False)] * 3)
    gates, wires, place = list[int](), list[tuple[int, int]](), list(range(27))
    one = to_netlist(product, like)
    for gate, (a, b) in zip(one.gates.tolist(), one.wires.tolist(), strict=True):
        pair, new = (place[a], place[b]), 27 + len(gates)
        gates += [7, 14, {6: 1, 9: 14}[gate]] if gate in (6, 9) else [gate]
        wires += [pair, pair, (new, new + 1)] if gate in (6, 9) else [pair]
        place.append(26 + len(gates))
    other = one.with_gates(gates, wires, [place[output] for output in one.outputs])
    (verdict,) = prove(one, other, ["difflogic"])
    assert (verdict.equal, verdict.how) == (True, "outputs: 3 by SAT sweeping")
    gates[other.outputs[0] - 27] ^= 15
    (verdict,) = prove(one, one.with_gates(gates, wires, other.outputs.tolist()), ["difflogic"])
    assert verdict.equal is False
    assert verdict.counterexample is not None


def _product(builder: Builder, x: list[int], y: list[int], swap: bool) -> int:
    """Return the middle bit of a product, row by row."""
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


def life_graph(born: Collection[int] = (3,)) -> XAG:
    """Return a rule of Life as a sum of products; cells survive with 2 or 3 neighbours."""
    builder = Builder(wiring.PATCH)
    alive = 0
    for sample in range(512):
        around = (sample & ~(1 << wiring.CENTRE)).bit_count()
        alive |= (around in {2, 3} if sample >> wiring.CENTRE & 1 else around in born) << sample
    minterms = builder.finish([_sum_of_products(builder, alive, wiring.PATCH)])
    assert output_tables(minterms) == [alive]
    return minterms


def _sum_of_products(builder: Builder, table: int, inputs: int) -> int:
    result = 0
    for sample in range(1 << inputs):
        if table >> sample & 1:
            product = 1
            for index in range(inputs):
                product = builder.and_(product, 2 * (1 + index) ^ (1 - (sample >> index & 1)))
            result = builder.or_(result, product)
    return result


def test_symmetric_resynthesis_finds_adders() -> None:
    graph = life_graph()
    found = rebuilt_symmetric(graph)
    assert len(graph.gates) > 500
    assert len(found.gates) <= 31
    assert output_tables(found) == output_tables(graph)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", ["sum of products", "learned life"])
def test_life_simplifies_to_24_gates(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resubstitution, "WORK", WORK)
    learned = CASES["learned life"]
    given = learned if start == "learned life" else to_netlist(life_graph(), learned)
    assert gate_count(simplified(given).netlist) == 24


@pytest.mark.parametrize(("inputs", "gates"), [(2, 2), (3, 5), (4, 9), (5, 11), (6, 16), (7, 19), (8, 25), (9, 27)])
def test_counter_takes_the_fewest_known_gates(inputs: int, gates: int) -> None:
    """It takes about 4.5 gates a bit; full adders alone take five."""
    builder = Builder(inputs)
    outputs = []
    for bit in range(inputs.bit_length()):
        table = sum((sample.bit_count() >> bit & 1) << sample for sample in range(1 << inputs))
        outputs.append(_sum_of_products(builder, table, inputs))
    graph = builder.finish(outputs)
    found = improved(rebuilt_symmetric(graph), work=0)
    assert len(found.gates) <= gates
    assert output_tables(found) == output_tables(graph)


@given(netlists(most=60), st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_replacements_are_right_where_clauses_hold(netlist: CellNetlist, seed: int) -> None:
    """Values are equal on all inputs on which two clauses hold, few of which are samples."""
    graph = to_xag(netlist)
    words = np.random.default_rng(seed).integers(0, 2**64, (graph.inputs, 4), dtype=np.uint64)
    words[0] |= ~words[1]  # in[0][0] OR in[0][1]
    words[2] &= ~words[3]  # not both of in[0][2] and in[0][3]
    found = resubstituted(graph, words[:, :1], [(2, 4), (7, 9)])
    assert len(found.gates) <= len(graph.gates)
    assert np.array_equal(values(found, words), values(graph, words))


def test_unobservable_gate_is_removed() -> None:
    """One gate of 30 inputs is observable only if 20 of them are 1, which no sample shows."""
    builder = Builder(30)
    every = reduce(builder.and_, range(2, 42, 2))
    x, y, z = 42, 44, 46
    seldom = builder.and_(every, builder.xor(x, builder.and_(y, z)))
    never = builder.and_(builder.and_(x, y), builder.or_(y, z))  # the OR is 1 where the AND in front of it is
    graph = builder.finish([seldom, never])
    found = resubstituted(graph, sweep.random_words(30))
    assert len(found.gates) == len(graph.gates) - 2 == 19 + 3 + 1
    assert prove(to_netlist(graph, ends := like(30, 2)), to_netlist(found, ends), ["difflogic"])[0].equal


def like(inputs: int, outputs: int) -> NamedNetlist:
    """Return a netlist without gates, with these numbers of inputs and outputs."""
    names = tuple(f"x{index}" for index in range(inputs)), tuple(f"y{index}" for index in range(outputs))
    return NamedNetlist(named_inputs=names[0], named_outputs=names[1], **gate_arrays([], [], [0] * outputs))


def test_large_circuit_gets_structural_passes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    wires = random_netlist(np.random.default_rng(5), 20_000, channels=4, reach=400).wires
    netlist = CellNetlist.build(4, False, np.full(20_000, 6), wires, np.arange(20_032, 20_036))
    monkeypatch.setattr("difflogic.circuits.synthesis.simplify.MOST_GATES", 1000)
    monkeypatch.setitem(FUNCTIONAL, "resubstitution", lambda netlist: pytest.fail("not for this"))
    found = simplified(netlist)
    assert gate_count(found.netlist) > 1000
    assert found.note.startswith("Only structural passes")


def test_wide_graph_stays_equivalent() -> None:
    """Replacements in a graph too wide to be simulated whole are proved one by one."""
    netlist = random_netlist(np.random.default_rng(8), 400, channels=3, reach=60)
    graph = sweep.swept(to_xag(netlist))
    found = resynthesis.resynthesised(graph)
    assert len(found.gates) < len(graph.gates)
    assert prove(netlist, to_netlist(found, netlist), ["difflogic"])[0].equal


@pytest.mark.parametrize("count", sampled((100_000, 1_000_000), {100_000}))
def test_very_many_gates_are_read_and_simplified(count: int) -> None:
    """Most nodes that the outputs read turn out to be constant."""
    netlist = random_netlist(np.random.default_rng(1), count, channels=4, reach=500)
    found = simplified(netlist_json.from_json(netlist_json.to_json(netlist)))
    assert found.verdict.equal is True
    assert shows_the_same(netlist, found.netlist, 1)


def test_large_graph_is_rewritten_part_by_part() -> None:
    random = np.random.default_rng(5)
    builder = Builder(12)
    literals = [input_literal(index) for index in range(12)]
    while len(literals) < 160:
        a, b = (literals[-1 - k] ^ int(random.integers(2)) for k in random.integers(0, 24, 2) % len(literals))
        literals.append(builder.xor(a, b) if random.integers(3) == 0 else builder.and_(a, b))
    graph = rebuilt(builder.finish(literals[-12:]))
    found = rewritten(graph, size=30)
    assert len(found.gates) < len(graph.gates)
    assert output_tables(found) == output_tables(graph)


def test_part_that_is_not_proved_equal_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def inverted(graph: XAG, **_: object) -> XAG:
        return replace(graph, outputs=[output ^ 1 for output in graph.outputs])

    monkeypatch.setattr(large, "walked_in_windows", inverted)
    builder = Builder(12)
    graph = rebuilt(builder.finish(_counter(builder, [input_literal(index) for index in range(12)], builder.xor)))
    assert output_tables(rewritten(graph, size=30)) == output_tables(graph)


def _counter(builder: Builder, bits: list[int], xor: Callable[[int, int], int]) -> list[int]:
    """Return the number of ones in binary, bit by bit."""
    count = list[int]()
    for carry in bits:
        for place, bit in enumerate(count):
            count[place], carry = xor(bit, carry), builder.and_(bit, carry)
        count.append(carry)
    return count[:4]


@pytest.mark.parametrize("is_equal", [True, False])
def test_miter_of_large_counters_is_matched(is_equal: bool) -> None:
    builder = Builder(40)
    inputs = [input_literal(index) for index in range(40)]

    def other_xor(a: int, b: int) -> int:
        return builder.and_(builder.or_(a, b), builder.and_(a, b) ^ 1)

    one = _counter(builder, inputs, builder.xor)
    inputs[20] ^= not is_equal
    joint = builder.finish([*one, *_counter(builder, inputs, other_xor)])
    found = matched(joint, sweep.biased_words(40)).outputs
    assert (found[:4] == found[4:]) == is_equal


@pytest.mark.parametrize("constant", [FALSE, TRUE])
@pytest.mark.parametrize("is_first", [True, False])
def test_constant_gates_of_either_circuit_are_matched_with_false(constant: int, is_first: bool) -> None:
    builder = Builder(3)
    x, y, z = (input_literal(index) for index in range(3))
    never = builder.and_(builder.and_(x, y), builder.and_(x ^ 1, z))
    circuits = [never ^ constant], [constant]
    joint = builder.finish([*circuits[not is_first], *circuits[is_first]])
    assert list(matched(joint, all_patterns(3)).outputs) == [constant, constant]


def test_budgeted_sweep_merges_equal_nodes_and_leaves_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "LARGE", 0)
    builder = Builder(40)
    inputs = [input_literal(index) for index in range(40)]
    forward, backward = (reduce(builder.and_, order) for order in (inputs, reversed(inputs)))
    graph = builder.finish([forward, backward, reduce(builder.or_, inputs)])
    words = sweep.biased_words(40)
    found = sweep.swept_by_proof(graph, words)
    assert (found.outputs[0] == found.outputs[1], found.outputs[0] == found.outputs[2]) == (True, False)
    assert len(found.gates) == 78
    monkeypatch.setattr(sweep, "LARGE_WORK", 0)
    assert len(sweep.swept_by_proof(graph, words).gates) == len(graph.gates)
