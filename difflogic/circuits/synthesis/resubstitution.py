"""Resubstitution: replace one gate at a time by a function of existing nodes that needs no more gates.

The search is compiled (`difflogic.cpu.hard.resubstitution`). In a small graph, a random walk makes replacements that
are correct for all inputs, even if they save no gates, since they enable further ones. In a large graph, a candidate
must equal the gate on all samples in which the gate affects an output. SAT then proves that the replacement changes no
output in the gate's fanout cone. Each counterexample joins the samples.

Example: the XOR of f = (x AND y) XOR (x AND z) may become x AND (y XOR z). That adds two gates and removes three, since
no other gate reads the two ANDs.
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
"""Maximum number of divisors: existing nodes that a replacement may read."""
WORK = 1_000_000
"""Number of evaluated gate words after which a walk without a gain ends: 5,000 moves in 25 gates on 512 samples."""
WALKS = 16
"""Number of walks without a gain after which a search ends; most gains come early in a walk (measured on Life)."""
MOST_MOVES = 300
"""Maximum number of moves per gate in a walk without a gain; in a small graph on few samples, WORK allows far more."""
AT_ONCE = 4
"""Number of long walks that run in parallel, each in a thread."""
AT_A_TIME = 200
"""Number of moves, a few milliseconds, between two checks for Ctrl-C, which compiled code ignores."""
LEAST_MOVES = 2
"""Minimum number of moves per gate in a walk without a gain."""
PROVED_MOVES = 1
"""Number of random replacements per gate that SAT tries to prove; more save no gates after window resubstitution."""
ROUND_GAIN = 200
"""Inverse of the minimum share of gates, 0.5 %, that a round must remove for another round to follow."""
CONFLICTS = 1000
"""Maximum number of conflicts per query; if they do not suffice, the gate is not replaced."""
WINDOWS = ((10, 40), (8, 24), (10, 60))
"""Maximum inputs and gates per window; rounds cycle through the pairs, since each finds gains that others miss."""
WINDOW_ROUND, WINDOW_MOVES = 30, 4
"""Mean number of windows per round that contain a given gate, and of moves for the gate in each window."""
WINDOW_SLACK = 2
"""Number of gates by which a graph may grow in a round, since a gate to be shared costs more at its first use."""
MOST_WINDOWS = 10_000
"""Maximum number of windows in all rounds, which take a minute; a round has 300 windows for a graph of 400 gates."""
WINDOWS_AT_A_TIME = 8
"""Number of windows between two checks for Ctrl-C."""
PROVED_WORK = 300_000_000
"""Maximum number of solver propagations, a minute or two; unlike a time limit, it keeps results reproducible."""
TRIES = 12
"""Number of refuted replacements after which a gate is skipped."""


class _State:
    """Graph in the form of arrays, which the compiled search modifies in place."""

    def __init__(self, graph: XAG, words: Words, seed: int = 0) -> None:
        from difflogic.cpu.hard import replacements, resubstitution

        self.compiled, self.names = resubstitution, replacements
        gates = np.array(graph.gates, dtype=np.int64).reshape(-1, 3)
        self.nodes, self.work = resubstitution.make(graph.inputs, gates, np.array(graph.outputs), words, seed)

    @property
    def order(self) -> list[int]:
        """Nodes of the gates in topological order."""
        order: list[int] = self.nodes.order[: self.count].tolist()
        return order

    @property
    def count(self) -> int:
        """Number of gates in the graph."""
        return int(self.nodes.numbers[self.names.COUNT])

    def walk(self, moves: int) -> None:
        """Make random replacements until `moves` consecutive ones saved no gate."""
        best, idle = self.count, 0
        while idle < moves:
            idle += self.compiled.walk(self.nodes, self.work, best, min(AT_A_TIME, moves - idle), DIVISORS)
            if self.count < best:
                best, idle = self.count, 0


def _graph(nodes: Nodes) -> XAG:
    """Convert arrays of the compiled search to a graph with constants, wires and inverters folded."""
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
    """Return an equivalent graph of at most as many gates, by window resubstitution, which needs no proof.

    The search ends after `effort * rounds` consecutive rounds without a gain, or `effort * most` windows. `shapes` are
    the maximum inputs and gates per window in successive rounds. The result is deterministic. Raises Interrupted.
    """
    from difflogic.cpu.hard import windows
    from difflogic.cpu.hard.replacements import COUNT

    # A round without a gain ends with a different graph of equal or slightly larger size, the start of the next round.
    # The result is the graph before these rounds, so that another call with it gains nothing.
    graph = current = rebuilt(graph)
    idle, left = 0, effort * most
    while len(graph.gates) > 1 and idle < effort * rounds and left > 0:
        inputs, size = shapes[idle % len(shapes)]
        count = 1 + WINDOW_ROUND * len(current.gates) // size
        gates = np.array(current.gates, dtype=np.int64).reshape(-1, 3)
        arrays = windows.make(graph.inputs, gates, np.array(current.outputs), all_patterns(inputs), size, idle)
        best, limit = graph, len(graph.gates) + WINDOW_SLACK
        try:
            for _ in range(0, min(count, left), WINDOWS_AT_A_TIME):
                windows.walk_windows(*arrays, WINDOWS_AT_A_TIME, WINDOW_MOVES, DIVISORS, limit)
                if arrays[0].numbers[COUNT] < len(best.gates):
                    best = _graph(arrays[0])
        except KeyboardInterrupt as error:
            raise Interrupted(best) from error
        current, idle, left = _graph(arrays[0]), idle + 1, left - count
        best = min(best, current, key=lambda graph: len(graph.gates))
        if len(best.gates) < len(graph.gates):
            graph, current, idle = best, best, 0
    return graph


def improved(
    graph: XAG, words: Words | None = None, work: int | None = None, other: XAG | None = None, effort: int = 1
) -> XAG:
    """Return an equivalent graph of at most as many gates, for a graph of at most `MOST_INPUTS` inputs.

    With `words`, samples uint64 `[inputs, N]`, the result is equal only on these, and any number of inputs is allowed.
    The search ends after `effort * WALKS` walks without a gain, each limited by `work`, by default WORK. Every second
    walk starts from `other`, another graph of the same functions. The result is deterministic. Raises Interrupted.
    """
    graph = rebuilt(graph)
    bound = fewest(graph) if words is None else 0
    if words is None:
        words = all_patterns(graph.inputs)
    starts, seed, idle = [graph, other or graph], 0, 0
    while len(graph.gates) > bound and idle < effort * WALKS:
        gates = len(graph.gates)
        least = LEAST_MOVES * gates
        moves = max(least, min(MOST_MOVES * gates, (WORK if work is None else work) // (gates * words.shape[1])))
        # Each walk has a unique seed. The number of walks, and thus the result, does not depend on the machine.
        count = 1 if moves == least else AT_ONCE
        states = [_State(starts[number % 2], words, number) for number in range(seed, seed + count)]
        ends = _walked(states, moves, graph)
        seed, idle = seed + count, idle + count
        smallest = sorted([*ends, *starts], key=lambda end: len(end.gates))[:2]
        if len(smallest[0].gates) < gates:
            (graph, _), starts, idle = smallest, smallest, 0
        elif moves == least:
            break
    return graph


def _walked(states: list[_State], moves: int, best: XAG) -> list[XAG]:
    """Run walks in parallel, and return their final graphs. On Ctrl-C, raises Interrupted with the smallest graph."""
    from difflogic.cpu.codegen.threads import default_threads

    try:
        with ThreadPoolExecutor(default_threads()) as pool:
            list(pool.map(lambda state: state.walk(moves), states))
    except KeyboardInterrupt as error:
        graphs = [best, *(_graph(state.nodes) for state in states)]
        raise Interrupted(min(graphs, key=lambda graph: len(graph.gates))) from error
    return [_graph(state.nodes) for state in states]


def fewest(graph: XAG) -> int:
    """Return a lower bound on the number of gates in any graph of the same functions, at which a search can stop."""
    # A function of n inputs takes at least n - 1 two-input gates. A gate computes only one function or its inverse.
    inputs, ones = graph.inputs, (1 << (1 << graph.inputs)) - 1
    tables = {min(table, table ^ ones) for table in output_tables(graph)}
    tables -= {min(table, table ^ ones) for table in (0, *input_tables(inputs))}
    needed = (sum(cofactor(f, i, 0, inputs) != cofactor(f, i, 1, inputs) for i in range(inputs)) - 1 for f in tables)
    return max([len(tables), *needed])


def resubstituted(graph: XAG, words: Words, clauses: Sequence[Clause] = ()) -> XAG:
    """Return the graph after resubstitution, equal on all inputs that satisfy `clauses`; `words` are such samples.

    Every replacement is proved before the next search; PROVED_WORK limits the proofs. Raises Interrupted.
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
        smaller, before = _graph(state.nodes), len(graph.gates)
        if len(smaller.gates) >= before:
            break
        graph = smaller
        if (before - len(graph.gates)) * ROUND_GAIN < before:
            break
    return graph


def _search(state: _State, prover: _ReplacementProver) -> None:
    """Make replacements that save gates until there are none, then random replacements, which may save no gates."""
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
    """Make replacements that save gates, in one pass from the outputs backward."""
    place, tries = state.count, 0
    while (gate := state.compiled.propose(state.nodes, state.work, place, DIVISORS)) >= 0:
        # After a refutation, the search resumes just above the gate, so that it tries this gate again.
        tries = tries + 1 if gate == place - 1 else 1
        answer = prover.holds()
        if answer:
            state.compiled.replace(state.nodes, state.work)
            prover.accepted()
            # The replacement may remove or add gates before this gate, which changes the gate's place in the order.
            place, tries = min(gate + 1, state.count), 0
        elif answer is False and tries < TRIES:
            place = gate + 1  # again, with the counterexample among the samples
        else:
            place, tries = gate, 0


class _ReplacementProver:
    """Prover that proposed replacements do not change outputs; counterexamples join the samples.

    Each node has a solver variable. Nodes in the fanout cone of a replaced gate may change on don't cares, so they get
    new variables, those of the copy that was proved.
    """

    def __init__(self, state: _State, solver: Solver, work: int, free: bool) -> None:
        """Encode the gates. `free` allows samples near a counterexample, which are valid only without clauses."""
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
        """Return whether the proposed replacement is correct on all valid inputs; None if the solver did not decide."""
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
        # Every clause of the copy contains NOT `_copy`. If the copy is refuted, NOT `_copy` is asserted, so that its
        # clauses do not slow later queries. If it is proved, `_copy` is asserted, which activates the clauses.
        solver.add([-differ])
        solver.add([self._copy if answer is False else -self._copy])
        self._copied = copied
        return None if answer is None else not answer

    def accepted(self) -> None:
        """Switch to the variables of the proved copy after a replacement."""
        for node, variable in self._copied.items():
            self._variables[node] = variable
        best, names = self._state.work.best, self._state.names
        # The gate itself is not inverted, but the edges of its readers are.
        self._variables[best[names.NODE]] = self._result
        if self._inner:
            self._variables[self._state.nodes.b[best[names.NODE]] >> 1] = self._inner

    def _copies(self) -> dict[int, int]:
        """Encode copies of the replaced gate and its fanout cone, and return their variables by node."""
        names, nodes, work = self._state.names, self._state.nodes, self._state.work
        best = work.best.tolist()
        node, self._inner = best[names.NODE], 0
        result = self._literal(best[names.A], {})
        if best[names.GATES]:
            b = self._literal(best[names.B], {})
            if best[names.GATES] == 2:
                inner = (self._literal(best[side], {}) for side in (names.INNER_A, names.INNER_B))
                self._inner = self._gate(bool(best[names.INNER_XOR]), *inner)
                b = -self._inner if best[names.B] else self._inner
            result = self._gate(bool(best[names.XOR]), result, b)
        self._result = result
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
        variable = self._solver.new()
        self._solver.gate(variable, xor, x, y, -self._copy)
        return variable

    def _learn(self, true: set[int]) -> None:
        """Add inputs that refuted a replacement, and similar inputs, to the samples; they overwrite the oldest ones."""
        values = self._state.nodes.values
        inputs = values[1 : self._state.nodes.inputs + 1]
        # Each input has a word of 64 equal samples: -1 is a word of ones.
        word: Words = np.array([-int(node in true) for node in range(1, len(inputs) + 1)]).astype(np.uint64)
        if self._free:
            # In the other samples, an input is inverted if three random bits are 1, one time in eight. Bit 0 is the
            # counterexample itself. With clauses all 64 samples are equal, since others may break them.
            near = self._rng.integers(0, 2**64, (3, len(inputs)), dtype=np.uint64)
            word ^= near[0] & near[1] & near[2] & ~np.uint64(1)
        # The second half of the words is a ring buffer of counterexamples; the first half stays.
        half = max(1, values.shape[1] // 2)
        inputs[:, -1 - self._refuted % half] = word
        self._refuted += 1
        self._state.compiled.begin(self._state.nodes, self._state.work)
