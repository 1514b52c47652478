"""Mapping to three-input lookup tables, which are instructions of AVX-512 (vpternlog) and NVIDIA GPUs (lop3).

A table computes any function of three bits. It can replace all gates between a node and a cut, a set of at most three
nodes whose values determine that node. All cuts are enumerated. Area flow, then exact area, select a mapping of small
area: by exact area, each node takes the cut that needs the fewest tables that no other node needs. If the truth tables
of all nodes are small, resubstitution then lets tables read other nodes.
Source: Mishchenko, Cho, Chatterjee and Brayton, *Combinational and Sequential Mapping with Priority Cuts*, ICCAD 2007.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations, product

import numpy as np

from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.truth_tables import all_patterns
from difflogic.circuits.synthesis.xag import XAG, rebuilt
from difflogic.model.netlist import Netlist

INPUTS = 3
_MOST_CUTS = 24
"""Maximum number of cuts per node; those of least area flow are retained."""
_PASSES = 4
_MOST_INPUTS, _MOST_TABLES, _MOVES = 12, 24, 300
"""Limits of resubstitution: maximum inputs and tables of the circuit, and number of attempts to change a table."""

Cut = tuple[int, ...]
"""Nodes, in ascending order, whose values together determine the value of another node."""


def lut_count(netlist: Netlist) -> int:
    """Return the number of three-input lookup tables for a circuit."""
    return len(mapping(rebuilt(to_xag(netlist))))


def mapping(graph: XAG) -> dict[int, Cut]:
    """Return a mapping from each node that a table computes to the nodes that the table reads."""
    cuts = _cuts(graph)
    best = [node[0] if node else () for node in cuts]
    uses = [0] * graph.size
    roots = {literal >> 1 for literal in graph.outputs}

    def count(nodes: Iterable[int], change: int) -> int:
        """Add `change`, 1 or -1, to the uses of nodes; return the number of tables added or removed."""
        tables, waiting = 0, list(nodes)
        while waiting:
            node = waiting.pop()
            if node >= graph.first:
                uses[node] += change
                if uses[node] == max(change, 0):
                    tables += 1
                    waiting += best[node]
        return tables

    count(roots, 1)
    for node in [*graph.nodes] * _PASSES:
        if uses[node]:
            count(best[node], -1)
            areas = []
            for cut in cuts[node]:
                best[node] = cut
                areas.append((count(cut, 1), cut))
                count(cut, -1)
            best[node] = min(areas)[1]
            count(best[node], 1)
    tables = {node: best[node] for node in graph.nodes if uses[node]}
    small = graph.inputs <= _MOST_INPUTS and len(tables) <= _MOST_TABLES
    return _resubstituted(graph, tables, roots) if small else tables


def _cuts(graph: XAG) -> list[list[Cut]]:
    """Return the cuts of each node by ascending area flow; inputs have no cuts."""
    readers = Counter(literal >> 1 for literal in chain(graph.outputs, *(gate[1:] for gate in graph.gates)))
    flow = [0.0] * graph.size
    cuts: list[list[Cut]] = [[] for _ in range(graph.first)]
    for node, (_, a, b) in enumerate(graph.gates, graph.first):
        pairs = product(*([(child >> 1,), *cuts[child >> 1]] for child in (a, b)))
        merged = {tuple(sorted({*leaves, *others})) for leaves, others in pairs}
        ranked = sorted((sum(flow[leaf] for leaf in cut), len(cut), cut) for cut in merged if len(cut) <= INPUTS)
        cuts.append([cut for *_, cut in ranked[:_MOST_CUTS]])
        flow[node] = (1 + ranked[0][0]) / max(1, readers[node])
    return cuts


def _resubstituted(graph: XAG, tables: dict[int, Cut], roots: Iterable[int]) -> dict[int, Cut]:
    """Repeatedly change a random table's inputs to those that need the fewest tables in total; return all tables."""
    words = graph.evaluate(all_patterns(graph.inputs))
    values = [int.from_bytes(row.tobytes(), "little") for row in words]
    ones = (1 << 8 * words[0].nbytes) - 1
    rng = np.random.default_rng(0)
    for _ in range(_MOVES if tables else 0):
        node = sorted(tables)[rng.integers(len(tables))]
        others = [other for other in [*range(1, graph.first), *tables] if node not in _needed(tables, [other])]
        deciding = (cut for cut in combinations(sorted(others), INPUTS) if _decides(values, cut, node, ones))
        cuts = list(dict.fromkeys([*deciding, tables[node]]))
        areas = [len(_needed(tables | {node: cut}, roots)) for cut in cuts]
        least = [cut for cut, area in zip(cuts, areas, strict=True) if area == min(areas)]
        tables[node] = least[rng.integers(len(least))]
        tables = {other: tables[other] for other in _needed(tables, roots)}
    return tables


def _needed(tables: Mapping[int, Cut], roots: Iterable[int]) -> set[int]:
    """Return the nodes of all tables on which `roots` depend, including those of `roots`."""
    needed: set[int] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node in tables and node not in needed:
            needed.add(node)
            waiting += tables[node]
    return needed


def _decides(values: Sequence[int], cut: Cut, node: int, ones: int) -> bool:
    """Return whether a node's value is a function of the cut's values; `ones` is the all-ones truth table."""
    for plain in product((0, ones), repeat=INPUTS):
        both = ones
        for leaf, inversion in zip(cut, plain, strict=True):
            both &= values[leaf] ^ inversion
        if both & values[node] not in (0, both):
            return False
    return True
