"""Questions to a SAT solver about the nodes of a graph (Tseitin's encoding, python-sat's solvers)."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from difflogic.circuits.synthesis.xag import XAG

Clause = Sequence[int]
"""Literals of a graph's inputs, one of which holds."""


class Solver(AbstractContextManager["Solver"]):
    """Holds the clauses of the gates asked about so far; variable `node` is the node's value.

    `conflicts` bounds each answer, None does not. Only inputs on which all of `given` hold are thought of.
    """

    def __init__(self, graph: XAG, conflicts: int | None = None, given: Iterable[Clause] = ()) -> None:
        from pysat.solvers import Solver as Engine

        self._graph = graph
        self._conflicts = conflicts
        # Glucose can be told when to give up, CaDiCaL is the stronger of the two.
        # A worked example: node 3 = AND(2, 5), x AND NOT y, with the variables 1, 2 and 3 for the nodes 1, 2 and 3.
        #     clauses      (-3 or 1) (-3 or -2) (3 or -1 or 2)       "3 is true exactly where 1 is and 2 is not"
        #     differ(6, 2) asks for 3 and not 1, which the first clause forbids; then for not 3 and 1: yes, with 2.
        self._engine = Engine(name="cadical195" if conflicts is None else "glucose4")
        self._encoded = bytearray(graph.size)
        self._last = graph.size
        # Variables count from 1, and node 0 is FALSE: the variable after the last node stands for it.
        self.add([-graph.size])
        for clause in given:
            self.add([self._of(literal) for literal in clause])

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give its memory back."""
        self._engine.delete()

    def differ(self, one: int, other: int) -> tuple[int, ...] | bool | None:
        """Inputs on which two literals differ, False where there are none, None where it gave up.

        Two that never differ are known to the solver from then on.
        """
        x, y = self.variable(one), self.variable(other)
        for assumptions in ([x, -y], [-x, y]):
            answer = self.solve(assumptions)
            if answer is None:
                return None
            if answer:
                true = self.true()
                return tuple(int(node in true) for node in range(1, self._graph.first))
        # A proved equality makes later proofs short: the solver need not look behind these two nodes again.
        self.add([-x, y])
        self.add([x, -y])
        return False

    def complete(self, nodes: Sequence[int], codes: set[int], most: int) -> bool:
        """Add to `codes` every further pattern that the nodes can take, node `i` being bit `i` of its number.

        False where it gave up, or found more than `most`.
        """
        # Each pattern that is known is forbidden, and the solver asked for another, until there is none. These clauses
        # must not bind later questions: each begins with NOT `asking`, which is assumed here alone, and at the end is
        # set to false, so that all of them are satisfied for ever.
        asking, variables = self.new(), [self.variable(2 * node) for node in nodes]

        def refuse(code: int) -> None:
            self.add([-asking, *(-v if code >> i & 1 else v for i, v in enumerate(variables))])

        for code in codes:
            refuse(code)
        while (answer := self.solve([asking])) and len(codes) <= most:
            true = self.true()
            code = sum(1 << index for index, variable in enumerate(variables) if variable in true)
            codes.add(code)
            refuse(code)
        self.add([-asking])
        return answer is False

    def variable(self, literal: int) -> int:
        """Return what stands for a literal in clauses; the gates behind it are known from then on."""
        self._encode(literal >> 1)
        return self._of(literal)

    def new(self) -> int:
        """A variable that is no node."""
        self._last += 1
        return self._last

    def add(self, clause: Sequence[int]) -> None:
        """One of these variables, negative ones inverted, is true."""
        self._engine.add_clause(list(clause))

    def gate(self, made: int, xor: bool, x: int, y: int, *otherwise: int) -> None:
        """One variable is the gate on two others, by a few clauses (Tseitin), or one of `otherwise` is true."""
        clauses = [[-made, x, y], [-made, -x, -y], [made, -x, y], [made, x, -y]]
        for clause in clauses if xor else [[-made, x], [-made, y], [made, -x, -y]]:
            self.add([*clause, *otherwise])

    def solve(self, assumptions: list[int]) -> bool | None:
        """Return whether all clauses can hold with these; None where it gave up."""
        try:
            if self._conflicts is None:
                answer: bool | None = self._engine.solve(assumptions=assumptions)
            else:
                self._engine.conf_budget(self._conflicts)
                answer = self._engine.solve_limited(assumptions=assumptions)
        except Exception as error:  # the solvers' own, for Ctrl-C too
            if "keyboard interrupt" in str(error):
                raise KeyboardInterrupt from error
            raise
        return answer

    @property
    def work(self) -> int:
        """Return what all answers so far took: assignments that followed from others, some three million a second."""
        return int(self._engine.accum_stats()["propagations"])

    def true(self) -> set[int]:
        """The variables that are true in the answer just found; nodes that no question touched are missing."""
        model = self._engine.get_model()
        assert model is not None
        return {variable for variable in model if variable > 0}

    def _of(self, literal: int) -> int:
        # A negative number is the opposite of a variable, so variables must not be 0.
        variable = literal >> 1 or self._graph.size
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
            # Only gates behind a question are told.
            self.gate(node, xor, self._of(a), self._of(b))
