"""Queries to a SAT solver about the nodes of a graph (Tseitin encoding, solvers from python-sat)."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from difflogic.circuits.synthesis.xag import XAG

Clause = Sequence[int]
"""Input literals of a graph, at least one of which is true."""


class Solver(AbstractContextManager["Solver"]):
    """SAT solver with the clauses of all gates queried so far; variable `node` is the value of that node.

    `conflicts` is the maximum number of conflicts per query, None for no limit. All queries assume `clauses`.
    """

    def __init__(self, graph: XAG, conflicts: int | None = None, clauses: Iterable[Clause] = ()) -> None:
        from pysat.solvers import Solver as Engine

        self._graph = graph
        self._conflicts = conflicts
        # Only Glucose can limit conflicts; CaDiCaL is the stronger solver.
        # A worked example: node 3 = AND(2, 5), x AND NOT y, with the variables 1, 2 and 3 for the nodes 1, 2 and 3.
        #     clauses      (-3 or 1) (-3 or -2) (3 or -1 or 2)       "3 is true if and only if 1 is and 2 is not"
        #     differ(6, 2) assumes 3 and not 1, which the first clause forbids; then not 3 and 1: satisfied, with 2.
        self._engine = Engine(name="cadical195" if conflicts is None else "glucose4")
        self._encoded = bytearray(graph.size)
        self._last = graph.size
        # Variables are numbered from 1, so node 0, FALSE, has the variable after that of the last node.
        self.add([-graph.size])
        for clause in clauses:
            self.add([self._of(literal) for literal in clause])

    def __exit__(self, *_: object) -> None:
        self._engine.delete()  # frees its memory

    def differ(self, one: int, other: int) -> tuple[int, ...] | bool | None:
        """Return input values for which two literals differ, False if there are none, or None if undecided.

        If the literals never differ, their equality is added to the clauses.
        """
        x, y = self.variable(one), self.variable(other)
        for assumptions in ([x, -y], [-x, y]):
            answer = self.solve(assumptions)
            if answer is None:
                return None
            if answer:
                true = self.true()
                return tuple(int(node in true) for node in range(1, self._graph.first))
        # A proved equality makes later proofs short, since they need not reach below these two nodes.
        self.add([-x, y])
        self.add([x, -y])
        return False

    def variable(self, literal: int) -> int:
        """Encode the cone of a literal, and return its variable, negative if inverted."""
        first, stack = self._graph.first, [literal >> 1]
        while stack:
            node = stack.pop()
            if node < first or self._encoded[node]:
                continue
            self._encoded[node] = 1
            xor, a, b = self._graph.gates[node - first]
            stack += [a >> 1, b >> 1]
            self.gate(node, xor, self._of(a), self._of(b))
        return self._of(literal)

    def new(self) -> int:
        """Return a new variable that belongs to no node."""
        self._last += 1
        return self._last

    def add(self, clause: Sequence[int]) -> None:
        """Add a clause: at least one of these variables (inverted if negative) is true."""
        self._engine.add_clause(list(clause))

    def gate(self, z: int, xor: bool, x: int, y: int, *otherwise: int) -> None:
        """Add the Tseitin clauses for `z` = `x` AND (or XOR) `y`; they have no effect if one of `otherwise` is true."""
        clauses = [[-z, x, y], [-z, -x, -y], [z, -x, y], [z, x, -y]]
        for clause in clauses if xor else [[-z, x], [-z, y], [z, -x, -y]]:
            self.add([*clause, *otherwise])

    def solve(self, assumptions: list[int]) -> bool | None:
        """Return whether the clauses are satisfiable under `assumptions`, variables set to true; None if undecided."""
        try:
            if self._conflicts is None:
                answer: bool | None = self._engine.solve(assumptions=assumptions)
            else:
                self._engine.conf_budget(self._conflicts)
                answer = self._engine.solve_limited(assumptions=assumptions)
        except Exception as error:  # solvers raise their own exception for Ctrl-C
            if "keyboard interrupt" in str(error):
                raise KeyboardInterrupt from error
            raise
        return answer

    @property
    def work(self) -> int:
        """Number of propagations in all queries so far, about three million per second."""
        return int(self._engine.accum_stats()["propagations"])

    def true(self) -> set[int]:
        """Return the variables that are true in the last model; nodes that were not encoded are missing."""
        model = self._engine.get_model()
        assert model is not None
        return {variable for variable in model if variable > 0}

    def _of(self, literal: int) -> int:
        # A negative number is an inverted variable, so no variable may be 0.
        variable = literal >> 1 or self._graph.size
        return -variable if literal & 1 else variable
