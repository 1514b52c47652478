"""Graphs made smaller by replacing one gate at a time with what is there, or with as many new gates or fewer.

The search is compiled (`difflogic.cpu.hard.resubstitution`). A small graph is walked through at random on all that its
inputs can be: a replacement that saves nothing is made as well, since it opens the way to others. In a large graph a
replacement agrees with its gate on samples, wherever an output notices; whether it does so always the SAT solver says,
for the gate and all that depends on it. An answer of no is a sample that joins the others.

Take f = (x AND y) XOR (x AND z). Its XOR may become x AND (y XOR z): two new gates, and three are freed, for nothing
else reads the two ANDs.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from difflogic.circuits.synthesis.sat import Clause, Solver
from difflogic.circuits.synthesis.truth_tables import all_patterns, cofactor, input_tables, output_tables
from difflogic.circuits.synthesis.xag import XAG, Builder, Interrupted, mapped, rebuilt
from difflogic.core.bits import Words

if TYPE_CHECKING:
    from difflogic.cpu.hard.replacements import Nodes

DIVISORS = 120
"""So many nodes at most are tried as parts of a function."""
WORK = 1_000_000
"""Words of gates that a walk may look at without a gain: five thousand replacements in 25 gates on 512 samples."""
WALKS = 16
"""So many begin at the same graph in vain: a walk that gains does so early, or another one does (measured on Life)."""
MOST_MOVES = 300
"""A walk tries no more replacements for each gate: a small graph on few samples has few, and had tried them all."""
AT_ONCE = 4
"""So many walks are made at once, each in a thread, where each is long."""
AT_A_TIME = 200
"""Moves until Ctrl-C is heard, which compiled code does not hear: some milliseconds."""
LEAST_MOVES = 2
"""A walk tries so many replacements for each gate at least."""
PROVED_MOVES = 1
"""Where each is asked of the solver, so many: after walks in windows five find nothing more, at many times the cost."""
ROUND_GAIN = 200
"""Another round is worth while where the last one saved one gate in so many."""
CONFLICTS = 1000
"""After so many the solver gives up, and the gate stays."""
WINDOWS = ((10, 40), (8, 24), (10, 60))
"""So many nodes a window reads at most, and so many gates it has, in turns: each finds what the others do not."""
WINDOW_ROUND, WINDOW_MOVES = 30, 4
"""In a round each gate is in so many windows in the mean; in each so many replacements are made for a gate."""
WINDOW_SLACK = 2
"""So many gates more than at the beginning of its round a graph may have: what many share costs the first more."""
MOST_WINDOWS = 10_000
"""In all: a minute. A round of a graph of 400 gates has 300."""
WINDOWS_AT_A_TIME = 8
"""Windows until Ctrl-C is heard."""
PROVED_WORK = 300_000_000
"""The solver's work in all, as it counts it: a minute or two. It is no time, so that each run ends alike."""
TRIES = 12
"""So many replacements of a gate are refuted before the next has its turn."""


class _State:
    """A graph in arrays, as the compiled search changes it."""

    def __init__(self, graph: XAG, words: Words, seed: int = 0) -> None:
        from difflogic.cpu.hard import replacements, resubstitution

        self.compiled, self.names = resubstitution, replacements
        gates = np.array(graph.gates, dtype=np.int64).reshape(-1, 3)
        self.nodes, self.work = resubstitution.make(graph.inputs, gates, np.array(graph.outputs), words, seed)

    @property
    def order(self) -> list[int]:
        """The gates' numbers, each after those that it reads."""
        found: list[int] = self.nodes.order[: self.nodes.numbers[self.names.COUNT]].tolist()
        return found

    @property
    def count(self) -> int:
        """Return how many gates there are."""
        return int(self.nodes.numbers[self.names.COUNT])

    def walk(self, moves: int) -> None:
        """Random replacements, until so many in a row saved no gate."""
        best, idle = self.count, 0
        while idle < moves:
            idle += self.compiled.walk(self.nodes, self.work, best, min(AT_A_TIME, moves - idle), DIVISORS)
            if self.count < best:
                best, idle = self.count, 0


def _graph(nodes: Nodes) -> XAG:
    """The graph that stands in the arrays of the compiled search, with everything folded that is not a gate."""
    from difflogic.cpu.hard.replacements import COUNT

    builder = Builder(nodes.inputs)
    literals = list(range(0, 2 * len(nodes.a), 2))
    for node in nodes.order[: nodes.numbers[COUNT]].tolist():
        a, b = (mapped(int(side[node]), literals) for side in (nodes.a, nodes.b))
        literals[node] = builder.xor(a, b) if nodes.xor[node] else builder.and_(a, b)
    return rebuilt(builder.finish(mapped(int(output), literals) for output in nodes.outputs))


def walked_in_windows(
    graph: XAG, rounds: int, effort: int = 1, most: int = MOST_WINDOWS, shapes: Sequence[tuple[int, int]] = WINDOWS
) -> XAG:
    """Return the same functions with as many gates or fewer, by walks in windows, which need no proof.

    It ends after `effort` times `rounds` in a row without a gain, or `effort` times `most` windows. `shapes` are the
    nodes that a window reads at most, and its gates, in turns. The same graph always gives the same result. Raises
    Interrupted.
    """
    from difflogic.cpu.hard import windows
    from difflogic.cpu.hard.replacements import COUNT

    # Walks that gain nothing end at another graph, as small or a little larger, where the next begin. What is returned
    # is the one before them, from where the same walks would gain nothing again.
    graph = current = rebuilt(graph)
    idle, left = 0, effort * most
    while len(graph.gates) > 1 and idle < effort * rounds and left > 0:
        inputs, size = shapes[idle % len(shapes)]
        count = 1 + WINDOW_ROUND * len(current.gates) // size
        gates = np.array(current.gates, dtype=np.int64).reshape(-1, 3)
        made = windows.make(graph.inputs, gates, np.array(current.outputs), all_patterns(inputs), size, idle)
        best, limit = graph, len(graph.gates) + WINDOW_SLACK
        try:
            for _ in range(0, min(count, left), WINDOWS_AT_A_TIME):
                windows.walk_windows(*made, WINDOWS_AT_A_TIME, WINDOW_MOVES, DIVISORS, limit)
                if made[0].numbers[COUNT] < len(best.gates):
                    best = _graph(made[0])
        except KeyboardInterrupt as error:
            raise Interrupted(best) from error
        current, idle, left = _graph(made[0]), idle + 1, left - count
        best = min(best, current, key=lambda each: len(each.gates))
        if len(best.gates) < len(graph.gates):
            graph, current, idle = best, best, 0
    return graph


def improved(
    graph: XAG, words: Words | None = None, work: int | None = None, twin: XAG | None = None, effort: int = 1
) -> XAG:
    """Return the same functions with as many gates or fewer, for a graph of at most `MOST_INPUTS` inputs.

    With `words`, uint64 `[inputs, N]`, the functions stay the same on these samples alone, and there may be any number
    of inputs. `work` is what is done in vain, WORK if it is not told, in `effort` times WALKS. Every other walk begins
    at `twin`, another graph of the same functions. The same graphs always give the same result. Raises Interrupted.
    """
    graph = rebuilt(graph)
    bound = fewest(graph) if words is None else 0
    if words is None:
        words = all_patterns(graph.inputs)
    starts, seed, idle = [graph, twin or graph], 0, 0
    while len(graph.gates) > bound and idle < effort * WALKS:
        gates = len(graph.gates)
        least = LEAST_MOVES * gates
        moves = max(least, min(MOST_MOVES * gates, (WORK if work is None else work) // (gates * words.shape[1])))
        # No walk is made twice: each has a seed of its own. So many at once, whatever the machine, for the same result.
        count = 1 if moves == least else AT_ONCE
        states = [_State(starts[each % 2], words, each) for each in range(seed, seed + count)]
        found = _walked(states, moves, graph)
        seed, idle = seed + count, idle + count
        smallest = sorted([*found, *starts], key=lambda each: len(each.gates))[:2]
        if len(smallest[0].gates) < gates:
            (graph, _), starts, idle = smallest, smallest, 0
        elif moves == least:
            break
    return graph


def _walked(states: list[_State], moves: int, best: XAG) -> list[XAG]:
    """Return what the walks lead to, which may be larger than `best`. Raises Interrupted with the smallest."""
    from difflogic.cpu.codegen.threads import default_threads

    try:
        with ThreadPoolExecutor(default_threads()) as pool:
            list(pool.map(lambda state: state.walk(moves), states))
    except KeyboardInterrupt as error:
        reached = [best, *(_graph(state.nodes) for state in states)]
        raise Interrupted(min(reached, key=lambda each: len(each.gates))) from error
    return [_graph(state.nodes) for state in states]


def fewest(graph: XAG) -> int:
    """So many gates any graph of these functions has, so that nothing is searched, or compiled, for less."""
    # A gate joins two things, so a function of n inputs takes n - 1 gates; and a gate is one function, or its inverse.
    inputs, ones = graph.inputs, (1 << (1 << graph.inputs)) - 1
    made = {min(table, table ^ ones) for table in output_tables(graph)}
    made -= {min(table, table ^ ones) for table in (0, *input_tables(inputs))}
    needed = (sum(cofactor(f, i, 0, inputs) != cofactor(f, i, 1, inputs) for i in range(inputs)) - 1 for f in made)
    return max([len(made), *needed])


def resubstituted(graph: XAG, words: Words, clauses: Sequence[Clause] = ()) -> XAG:
    """Return the same values on the inputs on which the clauses hold, of which `words` are samples.

    Every replacement is proved before the next is looked for, as long as PROVED_WORK lasts. Raises Interrupted.
    """
    graph, work = rebuilt(graph), PROVED_WORK
    while graph.gates and work > 0:
        state = _State(graph, words)
        try:
            with Solver(graph, CONFLICTS, clauses) as solver:
                _search(state, _ReplacementProver(state, solver, work, free=not clauses))
                work -= solver.work
        except KeyboardInterrupt as error:
            raise Interrupted(_graph(state.nodes)) from error
        found, before = _graph(state.nodes), len(graph.gates)
        if len(found.gates) >= before:
            break
        graph = found
        if (before - len(graph.gates)) * ROUND_GAIN < before:
            break
    return graph


def _search(state: _State, prover: _ReplacementProver) -> None:
    """Down as far as it goes, then at random replacements that save nothing or something."""
    while True:
        before = state.count
        _descend(state, prover)
        if state.count == before:
            break
    for _ in range(PROVED_MOVES * state.count):
        if state.count and state.compiled.wander(state.nodes, state.work, DIVISORS) and prover.holds():
            state.compiled.replace(state.nodes, state.work)
            prover.accepted()


def _descend(state: _State, prover: _ReplacementProver) -> None:
    """Whatever saves a gate, once from the outputs backward."""
    place, tries = state.count, 0
    while (found := state.compiled.propose(state.nodes, state.work, place, DIVISORS)) >= 0:
        # After a refusal the search begins one place above the gate: found there again, it is the same gate's next try.
        tries = tries + 1 if found == place - 1 else 1
        answer = prover.holds()
        if answer:
            state.compiled.replace(state.nodes, state.work)
            prover.accepted()
            # The gates in front of it may have gone, and others have come: the order is a new one.
            place, tries = min(found + 1, state.count), 0
        elif answer is False and tries < TRIES:
            place = found + 1  # once more, on the samples that refuted it
        else:
            place, tries = found, 0


class _ReplacementProver:
    """Says whether what was proposed leaves all outputs what they are; what refutes it joins the samples.

    The solver knows each node as a variable. What depends on a replaced gate computes something else from then on where
    no output notices, so it gets new variables, those of the copy that was proved.
    """

    def __init__(self, state: _State, solver: Solver, work: int, free: bool) -> None:
        """`free`: inputs may be anything, so that those near to a refuting one are samples too."""
        self._state = state
        self._solver = solver
        self._work = work
        self._free = free
        self._rng = np.random.default_rng(1)
        self._refuted = 0
        nodes = state.nodes
        self._variables = [solver.variable(2 * node) for node in range(nodes.inputs + 1)]
        self._variables += [0] * (len(nodes.a) - len(self._variables))
        for node in state.order:
            self._variables[node] = solver.variable(2 * node)

    def holds(self) -> bool | None:
        """Return whether the replacement in `best` is right on all inputs, None where the solver gave up."""
        state, solver = self._state, self._solver
        if solver.work >= self._work:
            return None
        self._copy = solver.new()
        copied = self._copies()
        differ = solver.new()
        clause = [-differ]
        for output in {int(output) >> 1 for output in state.nodes.outputs} & set(copied):
            clause.append(self._gate(True, self._variables[output], copied[output]))
        solver.add(clause)
        answer = solver.solve([self._copy, differ])
        if answer:
            self._learn(solver.true())
        # Every clause of the copy has NOT `_copy` in it. To make that true satisfies all of them at once, so that a
        # copy that was refuted costs later answers nothing; a proved one is bound by them for good.
        solver.add([-differ])
        solver.add([self._copy if answer is False else -self._copy])
        self._copied = copied
        return None if answer is None else not answer

    def accepted(self) -> None:
        """The replacement was made: what was copied to prove it is how things are."""
        for node, variable in self._copied.items():
            self._variables[node] = variable
        best, names = self._state.work.best, self._state.names
        # The gate itself is made plain; that it is inverted is said by the edges of those that read it.
        self._variables[best[names.NODE]] = self._made
        if self._inner:
            self._variables[self._state.nodes.b[best[names.NODE]] >> 1] = self._inner

    def _copies(self) -> dict[int, int]:
        """The variables of the gate and of all that depends on it, once it is replaced."""
        names, nodes, work = self._state.names, self._state.nodes, self._state.work
        best = work.best.tolist()
        node, self._inner = best[names.NODE], 0
        result = self._literal(best[names.A], {})
        if best[names.GATES]:
            b = self._literal(best[names.B], {})
            if best[names.GATES] == 2:
                inner = (self._literal(best[each], {}) for each in (names.INNER_A, names.INNER_B))
                self._inner = self._gate(bool(best[names.INNER_XOR]), *inner)
                b = -self._inner if best[names.B] else self._inner
            result = self._gate(bool(best[names.XOR]), result, b)
        self._made = result
        copied = {node: -result if best[names.INVERTED] else result}
        for reader in self._state.order[int(nodes.place[node]) + 1 :]:
            if work.behind[reader]:
                sides = (self._literal(int(side[reader]), copied) for side in (nodes.a, nodes.b))
                copied[reader] = self._gate(bool(nodes.xor[reader]), *sides)
        return copied

    def _literal(self, literal: int, copied: dict[int, int]) -> int:
        variable = copied.get(literal >> 1) or self._variables[literal >> 1]
        return -variable if literal & 1 else variable

    def _gate(self, xor: bool, x: int, y: int) -> int:
        made = self._solver.new()
        self._solver.gate(made, xor, x, y, -self._copy)
        return made

    def _learn(self, true: set[int]) -> None:
        """The inputs that refuted a replacement as samples, in the place of others; near ones beside them."""
        values = self._state.nodes.values
        inputs = values[1 : self._state.nodes.inputs + 1]
        # A row of 64 equal samples for each input: -1 is a word of ones.
        word: Words = np.array([-int(node in true) for node in range(1, len(inputs) + 1)]).astype(np.uint64)
        if self._free:
            # Samples near the refuting one: a bit of three random words is 1 in all of them once in eight times, and is
            # inverted there. Bit 0 stays, so that one sample is the refuting one itself. Where clauses hold, those near
            # it may break them, so all 64 are equal.
            near = self._rng.integers(0, 2**64, (3, len(inputs)), dtype=np.uint64)
            word ^= near[0] & near[1] & near[2] & ~np.uint64(1)
        # The later half of the words is a ring of what refuted something; the first half stays what it was.
        half = max(1, values.shape[1] // 2)
        inputs[:, -1 - self._refuted % half] = word
        self._refuted += 1
        self._state.compiled.begin(self._state.nodes, self._state.work)
