"""SAT sweeping: nodes that always have the same value, or opposite ones, become one; found by simulation, then proved.

Where a graph reads at most `EXACT` inputs, all their combinations are simulated, which proves it. Elsewhere
random samples put nodes into classes, and each merge is proved on its own: by all combinations of the inputs
that the two depend on, up to `truth_tables.MOST_EXHAUSTIVE`, else by SAT. What refutes a merge joins the samples.
Source: Mishchenko, Chatterjee, Jiang and Brayton, *FRAIGs: a unifying representation for logic synthesis and
verification* (2005).
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from difflogic.circuits.synthesis import truth_tables
from difflogic.circuits.synthesis.sat import Clause, Solver
from difflogic.circuits.synthesis.xag import XAG, rebuilt
from difflogic.core.bits import Words, pack_bits

EXACT = 14
"""Inputs up to which a whole graph is simulated on all combinations."""
WORDS = 64
"""Words of random samples in a larger graph, 4096 samples."""
CONFLICTS = 2000
"""After so many the solver gives a question up, and the two nodes stay two."""
REFUTED = 64
"""Number of counterexamples that are simulated together: the bits of a word."""
LARGE = 3000
"""Number of gates above which a sweep has a budget."""
LARGE_CONFLICTS, LARGE_WORK = 200, 60_000_000
"""Conflicts of an answer, and propagations of all answers, in a sweep of a large graph: about 20 seconds."""
TRIES = 3
"""A node is compared with so many earlier ones of its class."""

_SEED = 1
_TINY = 8
"""Up to so many inputs, all combinations are quicker than the solver."""


def swept(graph: XAG) -> XAG:
    """Return the same functions with fewer nodes, or as many."""
    # Inputs that no output depends on are 0 in all samples: 14 inputs that matter are 16384 samples, 256 words.
    graph = rebuilt(graph)
    used = graph.support(graph.outputs)
    if len(used) <= EXACT:
        words = np.zeros((graph.inputs, truth_tables.all_patterns(len(used)).shape[1]), dtype=np.uint64)
        words[used] = truth_tables.all_patterns(len(used))
        return swept_on(graph, words)
    # A merge makes gates equal that were not before, and other samples of the smaller graph may find what is left.
    samples = random_words if len(graph.gates) <= LARGE else biased_words
    while len((found := swept_by_proof(graph, samples(graph.inputs))).gates) < len(graph.gates):
        graph = found
    return graph


def random_words(inputs: int) -> Words:
    """Samples of all inputs, fair bits, uint64 `[inputs, WORDS]`."""
    return np.random.default_rng(_SEED).integers(0, 2**64, (inputs, WORDS), dtype=np.uint64)


def biased_words(inputs: int) -> Words:
    """Samples of all inputs, of which a half, a quarter, an eighth or a sixteenth is 1, uint64 `[inputs, WORDS]`."""
    # Behind chains of ORs, by which functions with thresholds are compared, nearly all fair bits are 1.
    random = np.random.default_rng(_SEED).integers(0, 2**64, (4, inputs, WORDS), dtype=np.uint64)
    parts = [np.bitwise_and.reduce(random[: 1 + k, :, k::4]) for k in range(4)]
    return np.concatenate(parts, axis=1)


def swept_by_proof(graph: XAG, words: Words, given: Sequence[Clause] = (), effort: int = 1) -> XAG:
    """Merge nodes that are proved equal wherever all of `given` hold.

    Args:
        graph: The graph. One of more than LARGE gates is swept within a budget of work, not of time, so that the result
            is the same on every machine.
        words: Samples of its inputs on which `given` holds, uint64 `[inputs, N]`.
        given: Clauses over the inputs.
        effort: Factor of the budget.

    Returns:
        The graph with as many nodes or fewer.
    """
    graph = rebuilt(graph)
    is_large = len(graph.gates) > LARGE
    classes = _classes(graph.evaluate(words))
    # Exhaustion tries inputs on which `given` does not hold too, so it may only answer where nothing is given.
    with Solver(graph, LARGE_CONFLICTS if is_large else CONFLICTS, given) as solver:
        prover = _Prover(graph, solver, by_exhaustion=not given, work=effort * LARGE_WORK if is_large else None)
        # A counterexample separates two nodes that no sample did, and others of all classes with them.
        while refuted := prover.go_through(classes):
            classes = _refined(classes, graph.evaluate(pack_bits(np.array(refuted, dtype=np.uint8).T)))
    return rebuilt(graph, replaced=prover.replaced)


def swept_on(graph: XAG, words: Words) -> XAG:
    """Return the same values on these samples, uint64 `[inputs, N]`, with fewer nodes, or as many."""
    return rebuilt(graph, replaced=_first_of_each(_classes(graph.evaluate(words))))


Classes = list[list[int]]


def _classes(values: Words) -> Classes:
    """Literals of nodes with equal values, in order: classes of two and more."""
    # Opposite nodes belong together: each is inverted so that its first sample is 0. With four samples and the values
    # node 3 = 0110, node 4 = 1001, node 5 = 0110, FALSE = 0000: bits are read from the right, and of node 4 the first
    # is 1, so it stands inverted, as 0110. The class is [6, 9, 10]: node 3, NOT node 4 and node 5 look the same. Nodes
    # come in order, so that the first of a class is the one to keep; a class that begins with literal 0 holds what
    # looks constant.
    inverted = (values[:, 0] & np.uint64(1)).astype(bool)
    canonical = np.where(inverted[:, None], ~values, values)
    classes = defaultdict(list)
    for node, row in enumerate(canonical):
        classes[row.tobytes()].append(2 * node + int(inverted[node]))
    return [members for members in classes.values() if len(members) > 1]


def _refined(classes: Classes, values: Words) -> Classes:
    """Return the classes split by more samples, uint64 `[size, N]`."""
    refined = []
    for members in classes:
        parts = defaultdict(list)
        for literal in members:
            row = values[literal >> 1]
            parts[(~row if literal & 1 else row).tobytes()].append(literal)
        refined += [part for part in parts.values() if len(part) > 1]
    return refined


def _first_of_each(classes: Classes) -> dict[int, int]:
    """Every other member by its node: the first one's literal, inverted where the two are opposite."""
    # Of the class [6, 9, 10] that is {4: 7, 5: 6}: node 4 is NOT node 3, and node 5 is node 3.
    return {literal >> 1: members[0] ^ (literal & 1) for members in classes for literal in members[1:]}


class _Prover:
    """Goes through classes and keeps what is proved, in `replaced`."""

    def __init__(self, graph: XAG, solver: Solver, by_exhaustion: bool, work: int | None = None) -> None:
        """`by_exhaustion` may answer where there are few inputs: all their combinations are to be thought of.

        No question is asked once the solver has done `work`.
        """
        self._work = work
        self.replaced: dict[int, int] = {}
        self._graph = graph
        self._solver = solver
        self._most = truth_tables.MOST_EXHAUSTIVE if by_exhaustion else -1
        self._asked: set[tuple[int, int]] = set()

    def go_through(self, classes: Classes) -> list[tuple[int, ...]]:
        """Ask about the pairs that are new; returns at most REFUTED inputs that refuted a merge."""
        refuted: list[tuple[int, ...]] = []
        # In the order of the nodes: what is proved of early nodes makes the questions about later ones easy, for the
        # solver has learned that their inputs are equal.
        pairs = sorted(
            (literal >> 1, earlier, literal)
            for members in classes
            for index, literal in enumerate(members)
            for earlier in members[: min(index, TRIES)]
            if literal >> 1 >= self._graph.first
        )
        for node, earlier, literal in pairs:
            # A node is compared with at most TRIES others, for a class of hundreds that only look alike would take for
            # ever. One that is replaced already is asked no more, nor is it a stand-in for others.
            if node in self.replaced or earlier >> 1 in self.replaced or (earlier, literal) in self._asked:
                continue
            if len(refuted) == REFUTED or (self._work is not None and self._solver.work >= self._work):
                break
            self._asked.add((earlier, literal))
            answer = self._differ(earlier, literal)
            if answer is False:
                self.replaced[node] = earlier ^ (literal & 1)
            elif isinstance(answer, tuple):
                refuted.append(answer)
        return refuted

    def _differ(self, one: int, other: int) -> tuple[int, ...] | bool | None:
        support = self._graph.supports[one >> 1] | self._graph.supports[other >> 1]
        # 256 samples are four words: faster than to hand a question to the solver.
        if support.bit_count() <= min(_TINY, self._most):
            return differ_anywhere(self._graph, one, other)
        answer = self._solver.differ(one, other)
        # Exhaustion over 20 inputs takes longer than most answers of the solver, but it never gives up.
        if answer is None and support.bit_count() <= self._most:
            return differ_anywhere(self._graph, one, other)
        return answer


def differ_anywhere(graph: XAG, one: int, other: int) -> tuple[int, ...] | bool:
    """Inputs on which two literals differ, False where there are none, by all combinations of their support."""
    used = graph.support((one, other))
    # The tables of the two cones alone, on the inputs that they depend on: of 20 inputs a table is 128 KB, and the
    # whole graph's would not fit into memory.
    values = dict(zip([1 + index for index in used], truth_tables.all_patterns(len(used)), strict=True))
    values[0] = np.zeros(1, dtype=np.uint64)
    for node in graph.fanin_cone((one >> 1, other >> 1)):
        xor, a, b = graph.gates[node - graph.first]
        x, y = (~values[side >> 1] if side & 1 else values[side >> 1] for side in (a, b))
        values[node] = x ^ y if xor else x & y
    difference = values[one >> 1] ^ values[other >> 1]
    if (one ^ other) & 1:
        difference = ~difference
    if not difference.any():
        return False
    # Sample number `found` in binary is the inputs; those that neither depends on are 0.
    found = truth_tables.first_one(difference)
    bits = [0] * graph.inputs
    for position, index in enumerate(used):
        bits[index] = found >> position & 1
    return tuple(bits)
