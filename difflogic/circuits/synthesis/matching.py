"""SAT sweeping of the miter of two large circuits: replace gates of the second by equal gates of the first.

Gates are visited in topological order. If both operands of a gate are matched, structural hashing finds the equal gate
of the first circuit. Otherwise gates with equal values on samples are candidates. Equality is proved in a cone of
nearby gates with free variables at the border: gates that are equal for all values at the border are equal. Queries
need not reach the inputs, so that circuits that count thousands of bits take seconds.
"""

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush

from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, cut_out, mapped, rebuilt
from difflogic.core.bits import Words

NEAR = (50, 400, 2000)
"""Maximum numbers of gates per cone, tried in this order."""
CONFLICTS = 200
"""Maximum number of conflicts per solver query."""
TRIES = 8
"""Maximum number of candidates to compare a gate with."""


def matched(joint: XAG, words: Words) -> XAG:
    """Return a miter in which gates of the second circuit are replaced by equal gates of the first.

    Gates of either circuit that are always 0 or always 1 are replaced by constants.

    Args:
        joint: Graph of two circuits; the first half of its outputs belongs to the first circuit.
        words: Samples of the inputs, uint64 `[inputs, N]`.

    Returns:
        The miter, in which outputs that were proved equal are the same literal.
    """
    values = joint.evaluate(words)
    first = set(joint.fanin_cone(output >> 1 for output in joint.outputs[: len(joint.outputs) // 2]))
    first.update(range(joint.first))
    builder, literals = Builder(joint.inputs), joint.on_same_inputs()
    levels = [0] * joint.first
    candidates = defaultdict[bytes, list[int]](list)
    for node in range(joint.size):
        if node >= joint.first:
            count = len(builder.gates)
            builder.copy(joint, [node], literals)
            if len(builder.gates) == count:
                continue
            levels.append(1 + max(levels[side >> 1] for side in builder.gates[-1][1:]))
        inverted = int(values[node, 0]) & 1
        similar = candidates[(~values[node] if inverted else values[node]).tobytes()]
        literal = literals[node] ^ inverted
        others = [other for other in similar[:TRIES] if node not in first or other == FALSE]
        graph = XAG(builder.inputs, builder.gates, ())
        proved = (o for most in NEAR for o in others if _is_equal_above(graph, levels, (literal, o), most))
        equal = next(proved, None)
        if equal is not None:
            literals[node] = equal ^ inverted
        elif node in first:
            similar.append(literal)
    return rebuilt(builder.finish(mapped(output, literals) for output in joint.outputs))


def _is_equal_above(graph: XAG, levels: Sequence[int], pair: tuple[int, int], most: int) -> bool:
    """Return whether a pair of literals is proved equal in a cone of at most `most` gates, for any border values."""
    nodes = {literal >> 1 for literal in pair}
    heap = [(-levels[node], node) for node in nodes]
    cone = list[int]()
    heap.sort()
    while heap and len(cone) < most:
        _, node = heappop(heap)
        if node < graph.first:
            continue
        cone.append(node)
        for side in graph.gates[node - graph.first][1:]:
            if side >> 1 not in nodes:
                nodes.add(side >> 1)
                heappush(heap, (-levels[side >> 1], side >> 1))
    piece = cut_out(graph, sorted(cone), pair).graph
    one, other = piece.outputs
    if one == other:
        return True
    with Solver(piece, CONFLICTS) as solver:
        return solver.differ(one, other) is False
