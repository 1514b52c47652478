"""SAT sweeping of the miter of two large circuits: gates of the second are matched with equal gates of the first.

Gates are visited in topological order. Where both operands are matched, structural hashing finds the gate in the first
circuit. Elsewhere candidates are gates with the same values on samples, and equality is proved from the gates just
below the two, with free variables at their border: equality for all values of a border is equality. No question
reaches the inputs, so that counters of thousands of bits take seconds.
"""

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush

from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.xag import XAG, Builder, Node, mapped, rebuilt
from difflogic.core.bits import Words

NEAR = (50, 400, 2000)
"""Numbers of gates above the border, tried in turn."""
CONFLICTS = 200
"""Conflicts after which a question is given up."""
TRIES = 8
"""Number of candidates that a gate is compared with."""


def matched(joint: XAG, words: Words) -> XAG:
    """Return a miter in which gates of the second circuit are replaced by equal gates of the first.

    Args:
        joint: Graph of two circuits: the first half of its outputs is the first's.
        words: Samples of the inputs, uint64 `[inputs, N]`.

    Returns:
        The miter; outputs that were proved to be equal are the same literal.
    """
    values = joint.evaluate(words)
    first = set(joint.fanin_cone(output >> 1 for output in joint.outputs[: len(joint.outputs) // 2]))
    first.update(range(joint.first))
    builder, literals = Builder(joint.inputs), joint.on_same_inputs()
    levels = [0] * joint.first
    candidates = defaultdict[bytes, list[int]](list)
    for node in range(joint.size):
        is_new = node < joint.first
        if not is_new:
            count = len(builder.gates)
            builder.copy(joint, [node], literals)
            is_new = len(builder.gates) > count
        if not is_new:
            continue
        if node >= joint.first:
            levels.append(1 + max(levels[side >> 1] for side in builder.gates[-1][1:]))
        inverted = int(values[node, 0]) & 1
        alike = candidates[(~values[node] if inverted else values[node]).tobytes()]
        literal = literals[node] ^ inverted
        if node in first:
            alike.append(literal)
        else:
            equal = (
                other
                for gates in NEAR
                for other in alike[:TRIES]
                if _is_equal_above(builder.gates, levels, (literal, other), gates)
            )
            literals[node] = next(equal, literal) ^ inverted
    return rebuilt(builder.finish(mapped(output, literals) for output in joint.outputs))


def _is_equal_above(gates: Sequence[Node], levels: Sequence[int], pair: tuple[int, int], most: int) -> bool:
    """Return whether two literals are equal for all values of a border, below at most so many gates behind them."""
    first = len(levels) - len(gates)
    nodes = {literal >> 1 for literal in pair}
    heap = [(-levels[node], node) for node in nodes]
    cone, border = list[int](), list[int]()
    heap.sort()
    while heap:
        _, node = heappop(heap)
        if node < first or len(cone) == most:
            border.append(node)
            continue
        cone.append(node)
        for side in gates[node - first][1:]:
            if side >> 1 not in nodes:
                nodes.add(side >> 1)
                heappush(heap, (-levels[side >> 1], side >> 1))
    builder = Builder(len(border))
    literals = {0: 0} | {node: 2 * (1 + index) for index, node in enumerate(border)}
    for node in sorted(cone):
        xor, a, b = gates[node - first]
        a, b = (literals[side >> 1] ^ (side & 1) for side in (a, b))
        literals[node] = builder.xor(a, b) if xor else builder.and_(a, b)
    one, other = (literals[literal >> 1] ^ (literal & 1) for literal in pair)
    if one == other:
        return True
    with Solver(builder.finish((one, other)), CONFLICTS) as solver:
        return solver.differ(one, other) is False
