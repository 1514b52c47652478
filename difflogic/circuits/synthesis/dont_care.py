"""What nodes of a graph can be at the same time: whatever stands in for gates need be right there alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from difflogic.bit_parallel import Words
from difflogic.circuits.graph import Graph
from difflogic.circuits.sat import Clause, Solver
from difflogic.circuits.truth import Samples

CONFLICTS = 500
"""After so many the solver gives up, and every pattern counts as possible."""
ENOUGH = 7 / 8
"""Where so large a share of the patterns is possible, the others are not asked for."""


class Care(Protocol):
    """Knows which values nodes take together."""

    def patterns(self, graph: Graph, nodes: Sequence[int]) -> Samples | None:
        """The patterns of the nodes that occur, each once; None: all of them."""


class Recorded:
    """What was seen on samples of the inputs, uint64 `[inputs, N]`, and nothing else."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._graph: Graph | None = None
        self._values: Words

    def codes(self, graph: Graph, nodes: Sequence[int]) -> set[int]:
        """Each pattern as a number, node `i` being its bit `i`."""
        if graph is not self._graph:
            self._graph, self._values = graph, graph.evaluate(self._words)
        rows = np.unpackbits(self._values[list(nodes)].view(np.uint8), axis=1)
        return set(np.unique(rows.T @ (1 << np.arange(len(nodes)))).tolist())

    def patterns(self, graph: Graph, nodes: Sequence[int]) -> Samples | None:
        return samples_of(self.codes(graph, nodes), len(nodes))


class Possible:
    """What some input makes, of those on which `clauses` hold, proved by SAT; `words` are samples of such inputs."""

    def __init__(self, words: Words, clauses: Sequence[Clause] = ()) -> None:
        self._seen = Recorded(words)
        self._clauses = clauses
        self._graph: Graph | None = None
        self._solver: Solver | None = None

    def patterns(self, graph: Graph, nodes: Sequence[int]) -> Samples | None:
        codes, most = self._seen.codes(graph, nodes), int(ENOUGH * (1 << len(nodes)))
        if len(codes) > most:
            return None
        if graph is not self._graph:
            self.close()
            self._graph, self._solver = graph, Solver(graph, CONFLICTS, self._clauses)
        assert self._solver is not None
        return samples_of(codes, len(nodes)) if self._solver.complete(nodes, codes, most) else None

    def close(self) -> None:
        """Give the solver's memory back."""
        if self._solver is not None:
            self._solver.close()


def samples_of(codes: Iterable[int], nodes: int) -> Samples:
    """The patterns with these numbers."""
    ordered = np.array(sorted(codes), dtype=np.int64)
    rows = np.packbits((ordered >> np.arange(nodes)[:, None] & 1).astype(np.uint8), axis=1, bitorder="little")
    return Samples(len(ordered), tuple(int.from_bytes(row.tobytes(), "little") for row in rows))
