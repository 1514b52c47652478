"""Don't-cares: which values nodes of a graph can never take together, where whatever replaces a gate may be wrong.

Of a = x AND y and b = x OR y the pattern a = 1, b = 0 never occurs. A gate that computes a XOR b from the two may then
be b AND NOT a as well, for they differ nowhere else. These are *satisfiability* don't-cares; those that no output would
notice, *observability* don't-cares, are `truth_tables.Tables.care_set`. What occurs is first sampled, which shows that
patterns are possible, and then asked of the SAT solver, which shows that the others are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from difflogic.circuits.synthesis.sat import Clause, Solver
from difflogic.circuits.synthesis.truth_tables import SampleTables, samples_of
from difflogic.circuits.synthesis.xag import XAG
from difflogic.core.bits import Words

CONFLICTS = 500
"""After so many the solver gives up, and every pattern counts as possible."""
ENOUGH = 7 / 8
"""Where so large a share of the patterns is possible, the others are not asked for."""


class DontCares:
    """Knows which values nodes take together.

    `words`, uint64 `[inputs, N]`, are samples of the inputs on which all of `clauses` hold. Where `proved`, SAT says of
    every further pattern whether such an input makes it; else what the samples show is all that counts.
    """

    def __init__(self, words: Words, clauses: Sequence[Clause] = (), proved: bool = True) -> None:
        self._words = words
        self._clauses = clauses
        self._proved = proved
        self._graph: XAG | None = None
        self._values: Words
        self._solver: Solver | None = None

    def patterns(self, graph: XAG, nodes: Sequence[int]) -> SampleTables | None:
        """The patterns of the nodes that occur, each once; None: all of them."""
        codes, most = self.seen(graph, nodes), int(ENOUGH * (1 << len(nodes)))
        if self._proved:
            # What samples show is possible for certain; only what they do not show has to be asked. Of a window with
            # eight leaves 256 patterns are thinkable, and where 224 of them were seen, the rest would free too little.
            # A solver that gave up leaves patterns open: to treat them as impossible would be wrong.
            if len(codes) > most:
                return None
            self._solver = self._solver or Solver(graph, CONFLICTS, self._clauses)
            if not self._solver.complete(nodes, codes, most):
                return None
        return _patterns(codes, len(nodes))

    def seen(self, graph: XAG, nodes: Sequence[int]) -> set[int]:
        """Each pattern that the samples show as a number, node `i` being its bit `i`."""
        # Passes ask for one window after the other in the same graph, which is simulated once.
        if graph is not self._graph:
            self.close()
            self._graph, self._values = graph, graph.evaluate(self._words)
        # Each column of bits is one sample's pattern: nodes with the values 1, 0, 1 make the number 0b101. The order in
        # which the bytes of a word are unpacked does not matter, for it is the same for all nodes.
        rows = np.unpackbits(self._values[list(nodes)].view(np.uint8), axis=1)
        return set(np.unique(rows.T @ (1 << np.arange(len(nodes)))).tolist())

    def close(self) -> None:
        """Give the solver's memory back."""
        if self._solver is not None:
            self._solver.close()
            self._solver = None


def _patterns(codes: Iterable[int], nodes: int) -> SampleTables:
    """The patterns with these numbers, in their order."""
    # Patterns {1, 2, 3} of two nodes are three samples: node 0 is 1, 0, 1 in them, so its table is 0b101, and node 1 is
    # 0, 1, 1, so 0b110. For the window that reads the two nodes these three are all there is to get right.
    ordered = np.array(sorted(codes), dtype=np.int64)
    return samples_of((ordered >> np.arange(nodes)[:, None] & 1).astype(np.uint8))
