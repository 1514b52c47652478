"""SAT sweeping: merge nodes that are equal or opposite for all inputs, after simulation and a proof.

If a graph depends on at most `EXACT` inputs, all combinations are simulated, which is a proof. Otherwise random
samples partition the nodes into classes, and each merge is proved separately: by all combinations of the inputs in
the support of both, up to `truth_tables.MOST_EXHAUSTIVE`, or by SAT. Counterexamples join the samples.
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
"""Maximum number of inputs of a graph for which all combinations of the inputs are simulated."""
WORDS = 64
"""Number of 64-bit words of random samples for a graph with more inputs: 4096 samples."""
CONFLICTS = 2000
"""Maximum number of conflicts per query; if they do not suffice, the two nodes are not merged."""
REFUTED = 64
"""Maximum number of counterexamples that are simulated at once: one per bit of a word."""
LARGE = 3000
"""Number of gates of a graph above which a sweep has a budget of solver work."""
LARGE_CONFLICTS, LARGE_WORK = 200, 60_000_000
"""Maximum conflicts per query, and propagations in all queries, in a sweep of a large graph: about 20 seconds."""
TRIES = 3
"""Maximum number of earlier nodes of the same class that a node is compared with."""

_SEED = 1
_TINY = 8
"""Maximum number of inputs for which simulating all combinations is faster than the solver."""


def swept(graph: XAG) -> XAG:
    """Return an equivalent graph of at most as many gates, by SAT sweeping."""
    # Inputs that no output depends on are 0 in all samples; 14 other inputs take 16384 samples, which are 256 words.
    graph = rebuilt(graph)
    used = graph.support(graph.outputs)
    if len(used) <= EXACT:
        words = np.zeros((graph.inputs, truth_tables.all_patterns(len(used)).shape[1]), dtype=np.uint64)
        words[used] = truth_tables.all_patterns(len(used))
        return swept_on(graph, words)
    # Merges may make other gates equal, which a sweep of the smaller graph finds.
    samples = random_words if len(graph.gates) <= LARGE else biased_words
    while len((smaller := swept_by_proof(graph, samples(graph.inputs))).gates) < len(graph.gates):
        graph = smaller
    return graph


def random_words(inputs: int) -> Words:
    """Return unbiased random samples, uint64 `[inputs, WORDS]`."""
    return np.random.default_rng(_SEED).integers(0, 2**64, (inputs, WORDS), dtype=np.uint64)


def biased_words(inputs: int) -> Words:
    """Return random samples, uint64 `[inputs, WORDS]`, whose bits are 1 with probability 1/2, 1/4, 1/8 or 1/16."""
    # Functions with thresholds are compared by chains of ORs, which are nearly always 1 on unbiased bits.
    random = np.random.default_rng(_SEED).integers(0, 2**64, (4, inputs, WORDS), dtype=np.uint64)
    parts = [np.bitwise_and.reduce(random[: 1 + k, :, k::4]) for k in range(4)]
    return np.concatenate(parts, axis=1)


def swept_by_proof(graph: XAG, words: Words, clauses: Sequence[Clause] = (), effort: int = 1) -> XAG:
    """Merge nodes that are proved equal for all inputs that satisfy `clauses`, and return the new graph.

    Args:
        graph: The graph. If it has more than LARGE gates, the sweep has a budget of work, not of time, so that the
            result does not depend on the machine.
        words: Input samples that satisfy the clauses, uint64 `[inputs, N]`.
        clauses: Clauses over the inputs.
        effort: Factor by which the budget is multiplied.
    """
    graph = rebuilt(graph)
    is_large = len(graph.gates) > LARGE
    classes = _classes(graph.evaluate(words))
    # Exhaustion also tries inputs that violate a clause, so it requires that there are no clauses.
    with Solver(graph, LARGE_CONFLICTS if is_large else CONFLICTS, clauses) as solver:
        prover = _Prover(graph, solver, by_exhaustion=not clauses, work=effort * LARGE_WORK if is_large else None)
        # A counterexample separates two nodes that no sample separated, and often nodes in other classes too.
        while refuted := prover.merge(classes):
            classes = _refined(classes, graph.evaluate(pack_bits(np.array(refuted, dtype=np.uint8).T)))
    return rebuilt(graph, replaced=prover.replaced)


def swept_on(graph: XAG, words: Words) -> XAG:
    """Merge nodes that are equal or opposite on the samples `words`, uint64 `[inputs, N]`, and return the new graph."""
    # In the class [6, 9, 10], node 4 is replaced by NOT node 3, and node 5 by node 3.
    classes = _classes(graph.evaluate(words))
    replaced = {literal >> 1: members[0] ^ (literal & 1) for members in classes for literal in members[1:]}
    return rebuilt(graph, replaced=replaced)


Classes = list[list[int]]


def _classes(values: Words) -> Classes:
    """Return all classes of two or more literals with equal `values`, in topological order."""
    # Opposite nodes are in one class: each is inverted so that its first sample is 0. With four samples and the values
    # node 3 = 0110, node 4 = 1001, node 5 = 0110, FALSE = 0000, the first sample, the rightmost bit, of node 4 is 1, so
    # that it is inverted to 0110. The class is [6, 9, 10]: node 3, NOT node 4 and node 5. The first of a class replaces
    # the others; a class that begins with literal 0 contains candidates for constants.
    inverted = (values[:, 0] & np.uint64(1)).astype(bool)
    canonical = np.where(inverted[:, None], ~values, values)
    classes = defaultdict(list)
    for node, row in enumerate(canonical):
        classes[row.tobytes()].append(2 * node + int(inverted[node]))
    return [members for members in classes.values() if len(members) > 1]


def _refined(classes: Classes, values: Words) -> Classes:
    """Return the classes split by `values` on more samples, uint64 `[size, N]`."""
    refined = []
    for members in classes:
        parts = defaultdict(list)
        for literal in members:
            row = values[literal >> 1]
            parts[(~row if literal & 1 else row).tobytes()].append(literal)
        refined += [part for part in parts.values() if len(part) > 1]
    return refined


class _Prover:
    """Prover of merges within classes; `replaced` maps each merged node to the literal that replaces it."""

    def __init__(self, graph: XAG, solver: Solver, by_exhaustion: bool, work: int | None = None) -> None:
        """Begin without merges; `by_exhaustion` allows proofs by exhaustion, and `work` limits solver propagations."""
        self._work = work
        self.replaced: dict[int, int] = {}
        self._graph = graph
        self._solver = solver
        self._most = truth_tables.MOST_EXHAUSTIVE if by_exhaustion else -1
        self._compared: set[tuple[int, int]] = set()

    def merge(self, classes: Classes) -> list[tuple[int, ...]]:
        """Compare pairs not compared before, and merge equal nodes; return at most REFUTED counterexamples."""
        refuted: list[tuple[int, ...]] = []
        # The order is topological: proofs for early nodes make later proofs easy, since the solver knows that their
        # inputs are equal.
        pairs = sorted(
            (literal >> 1, earlier, literal)
            for members in classes
            for index, literal in enumerate(members)
            for earlier in members[: min(index, TRIES)]
            if literal >> 1 >= self._graph.first
        )
        for node, earlier, literal in pairs:
            if node in self.replaced or earlier >> 1 in self.replaced or (earlier, literal) in self._compared:
                continue
            if len(refuted) == REFUTED or (self._work is not None and self._solver.work >= self._work):
                break
            self._compared.add((earlier, literal))
            answer = self._differ(earlier, literal)
            if answer is False:
                self.replaced[node] = earlier ^ (literal & 1)
            elif isinstance(answer, tuple):
                refuted.append(answer)
        return refuted

    def _differ(self, one: int, other: int) -> tuple[int, ...] | bool | None:
        support = self._graph.supports[one >> 1] | self._graph.supports[other >> 1]
        # Simulating 256 samples, four words, is faster than a solver query.
        if support.bit_count() <= min(_TINY, self._most):
            return differ_anywhere(self._graph, one, other)
        answer = self._solver.differ(one, other)
        # Trying all values of 20 inputs takes longer than most queries, but always decides.
        if answer is None and support.bit_count() <= self._most:
            return differ_anywhere(self._graph, one, other)
        return answer


def differ_anywhere(graph: XAG, one: int, other: int) -> tuple[int, ...] | bool:
    """Return input values for which two literals differ, or False, by trying all combinations of their support."""
    used = graph.support((one, other))
    # Only nodes in the two cones are evaluated: a table of 20 inputs takes 128 KB, too much for all nodes of the graph.
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
    # The bits of the sample's number are the inputs in the support; all other inputs are 0.
    sample = truth_tables.first_one(difference)
    bits = [0] * graph.inputs
    for position, index in enumerate(used):
        bits[index] = sample >> position & 1
    return tuple(bits)
