"""Questions to a SAT solver about the nodes of a graph (Tseitin's encoding, python-sat's solvers)."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from difflogic.circuits.graph import Graph


class Solver:
    """Holds the clauses of the gates asked about so far; variable `node` is the node's value.

    `solver`: a name python-sat knows. `conflicts` bounds each answer, None does not.
    """

    def __init__(self, graph: Graph, conflicts: int | None = None) -> None:
        from pysat.solvers import Solver as Engine

        self._graph = graph
        self._conflicts = conflicts
        # Glucose can be told when to give up, CaDiCaL is the stronger of the two.
        self._engine = Engine(name="cadical195" if conflicts is None else "glucose4")
        self._encoded = bytearray(graph.size)
        self._spare = graph.size
        self._engine.add_clause([-self._spare])  # variables count from 1, and node 0 is FALSE

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.delete()

    def differ(self, one: int, other: int) -> tuple[int, ...] | bool | None:
        """Inputs on which two literals differ, False where there are none, None where it gave up.

        Two that never differ are known to the solver from then on.
        """
        self._encode(one >> 1)
        self._encode(other >> 1)
        x, y = self._variable(one), self._variable(other)
        for assumptions in ([x, -y], [-x, y]):
            answer = self._solve(assumptions)
            if answer is None:
                return None
            if answer:
                model = self._engine.get_model()
                assert model is not None
                return self._inputs(model)
        self._engine.add_clause([-x, y])
        self._engine.add_clause([x, -y])
        return False

    def _solve(self, assumptions: list[int]) -> bool | None:
        if self._conflicts is None:
            answer: bool | None = self._engine.solve(assumptions=assumptions)
        else:
            self._engine.conf_budget(self._conflicts)
            answer = self._engine.solve_limited(assumptions=assumptions)
        return answer

    def _inputs(self, model: list[int]) -> tuple[int, ...]:
        """The values of the inputs; 0 for those the question does not touch."""
        true = {variable for variable in model if 0 < variable <= self._graph.inputs}
        return tuple(int(node in true) for node in range(1, self._graph.first))

    def _variable(self, literal: int) -> int:
        variable = literal >> 1 or self._spare
        return -variable if literal & 1 else variable

    def _encode(self, node: int) -> None:
        first = self._graph.first
        stack = [node]
        while stack:
            node = stack.pop()
            if node < first or self._encoded[node]:
                continue
            self._encoded[node] = 1
            xor, a, b = self._graph.gates[node - first]
            stack += [a >> 1, b >> 1]
            x, y = self._variable(a), self._variable(b)
            clauses = [[-node, x, y], [-node, -x, -y], [node, -x, y], [node, x, -y]]
            for clause in clauses if xor else [[-node, x], [-node, y], [node, -x, -y]]:
                self._engine.add_clause(clause)
