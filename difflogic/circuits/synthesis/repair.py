"""Repair of nearly correct circuits: add a few gates that correct the last wrong output values.

Usually an AND of three or four input bits and gates is 1 only in the neighbourhood of a cell that becomes wrong in the
last step, and in no other neighbourhood of the rollout. Where it is 1, the output is inverted; nothing else changes.

Example: one of 13,000 neighbourhoods is wrong. Gate 70 is 1 in 400 of them. In 12 of these, gate 9 is 0. In only one of
these 12, the wrong one, channel 5 of the left neighbour is 1: `g70 AND NOT g9 AND in[5][3]`.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis import invariant
from difflogic.circuits.synthesis.cell import Cell
from difflogic.circuits.synthesis.xag import FALSE, Builder, mapped, rebuilt
from difflogic.core.bits import LONG_WORD, Bits, Words, pack_bits
from difflogic.core.neighbourhoods import neighbourhoods, patches
from difflogic.model.cell_netlist import CellNetlist

MOST_WRONG = 0.05
"""Maximum share of mismatches in the image for a repair, since each mismatch takes additional gates."""
TOGETHER = 3
"""Exponent that weights recall against precision when a product term is grown."""


def repaired(netlist: CellNetlist, target: Bits, steps: int) -> CellNetlist | None:
    """Return a repaired circuit that shows the image `target`, uint8 `[H, W, visible]`, after `steps` steps.

    Return None if a share larger than MOST_WRONG is wrong, or if a wrong and a correct cell have equal neighbourhoods.
    Raises UsageError if the initial state is unknown or random.
    """
    states = netlist.rollout(invariant.start_of(netlist)[None], steps)[:, 0]
    wrong = (states[-1, ..., : netlist.visible] != target).reshape(-1, netlist.visible)
    if wrong.sum() > MOST_WRONG * wrong.size:
        return None
    # Each distinct neighbourhood in the rollout counts once; `kinds` contains the id of each cell's neighbourhood.
    kinds = neighbourhoods(states[:-1], netlist.periodic, netlist.neighbourhood)
    earlier, last = np.split(kinds, [-len(wrong)])
    first, cell = np.unique(kinds, return_index=True)[1], Cell.of(netlist)
    graph = rebuilt(cell.graph)
    values = graph.evaluate(pack_bits(patches(states[:-1], netlist.periodic)[cell.inputs][:, first]))
    builder, literals = Builder(graph.inputs), graph.on_same_inputs()
    builder.copy(graph, graph.nodes, literals)
    outputs = []
    for channel, output in enumerate(graph.outputs):
        inverted = np.zeros(len(first), dtype=bool)
        if channel < netlist.visible:
            inverted[last[wrong[:, channel]]] = True
            if inverted[earlier].any() or inverted[last[~wrong[:, channel]]].any():
                return None
        terms = (reduce(builder.and_, (mapped(x, literals) for x in term)) for term in _products(values, inverted))
        outputs.append(builder.xor(mapped(output, literals), reduce(builder.or_, terms, FALSE)))
    return replace(cell, graph=rebuilt(builder.finish(outputs))).netlist(netlist)


def _products(values: Words, expected: npt.NDArray[np.bool_]) -> Iterator[list[int]]:
    """Yield products of literals whose OR is 1 on exactly the `expected` samples; `values` are those of all nodes."""
    [remaining, others] = pack_bits(np.stack([expected, ~expected]).astype(np.uint8))
    for sample in np.flatnonzero(expected).tolist():
        word, bit = divmod(sample, LONG_WORD)
        if not int(remaining[word]) >> bit & 1:
            continue
        # The candidates are all literals that are 1 in this sample.
        ones = values[:, word] >> np.uint64(bit) & np.uint64(1)
        agree = values ^ (ones - np.uint64(1))[:, None]
        product, inside, outside = list[int](), remaining, others
        while outside.any():
            covered, shut_out = _count(agree & inside), _count(outside) - _count(agree & outside)
            worth = covered**TOGETHER / (_count(outside) - shut_out + 0.5)
            node = int(np.where(shut_out > 0, worth, 0).argmax())
            product.append(2 * node + 1 - int(ones[node]))
            inside, outside = inside & agree[node], outside & agree[node]
        remaining = remaining & ~inside
        yield product


def _count(words: Words) -> npt.NDArray[np.float64]:
    counts: npt.NDArray[np.float64] = np.bitwise_count(words).sum(axis=-1, dtype=np.float64)
    return counts
