"""ANDs and ORs made anew as sums of products, which share what they begin with.

A tree of multiplexers asks at each of them for one bit of the address. As a sum of products, `s t a OR s NOT t b ...`,
four words take seven gates and not nine, once the four products of `s` and `t` are there, which all such trees share.
Walks by single gates seldom lead there, for the first tree alone becomes larger.
"""

from collections import Counter
from functools import reduce
from operator import and_, or_

from difflogic.circuits.synthesis.truth_tables import input_tables
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, mapped, rebuilt

MOST_READ = range(3, 9)
"""So many other nodes a sum reads at most. Each is tried: three are a multiplexer of two words, six one of four."""

Sum = list[frozenset[int]]
"""Products, each of some literals."""


def with_shared_products(graph: XAG) -> XAG:
    """Return the same functions as sums of products that share gates, where that saves some."""
    graph = rebuilt(graph)
    return min([graph, *(_remade(graph, most) for most in MOST_READ)], key=lambda each: len(each.gates))


def _remade(graph: XAG, most: int) -> XAG:
    sums = _sums(graph, most)
    often = Counter(literal for found, _ in sums.values() for product in found for literal in product)
    builder, literals = Builder(graph.inputs), graph.on_same_inputs()

    def product(of: frozenset[int]) -> int:
        # What is read oftenest comes first: products that begin alike share gates, for the builder has each once.
        return reduce(builder.and_, (mapped(each, literals) for each in sorted(of, key=lambda x: (-often[x], x))))

    for node, gate in zip(graph.nodes, graph.gates, strict=True):
        if gate.xor:
            builder.copy(graph, [node], literals)
        elif node in sums:
            found, inverted = sums[node]
            literals[node] = reduce(builder.or_, map(product, found), FALSE) ^ inverted
    return rebuilt(builder.finish(mapped(output, literals) for output in graph.outputs))


def _sums(graph: XAG, most: int) -> dict[int, tuple[Sum, bool]]:
    """Sums that together are all ANDs of the graph, by their last node, and whether each is the inverse of it."""
    readers = Counter(literal >> 1 for _, a, b in graph.gates for literal in (a, b))
    roots = {node for node in graph.nodes if readers[node] != 1} | {output >> 1 for output in graph.outputs}
    levels = [0] * graph.first
    for _, a, b in graph.gates:
        levels.append(1 + max(levels[a >> 1], levels[b >> 1]))
    sums = {}
    for node, (xor, a, b) in zip(reversed(graph.nodes), reversed(graph.gates), strict=True):
        if xor:
            roots |= {a >> 1, b >> 1}
        elif node in roots:
            opened, read = _opened(graph, node, roots, levels, most)
            sums[node] = _sum(graph, opened)
            roots |= read
    return sums


def _opened(graph: XAG, root: int, roots: set[int], levels: list[int], most: int) -> tuple[list[int], set[int]]:
    """ANDs from a root down that read at most so many others, and these."""
    opened, fitting, read = [], {root: _read_by(graph, root)}, {root}
    while fitting:
        # The highest first, so that trees of multiplexers on the same address are cut at the same bits.
        node = max(fitting, key=lambda each: (levels[each], each))
        opened.append(node)
        read = read - {node} | fitting[node]
        below = {each: _read_by(graph, each) for each in read - roots}
        fitting = {each: more for each, more in below.items() if more and len(read - {each} | more) <= most}
    return sorted(opened), read


def _read_by(graph: XAG, node: int) -> set[int]:
    """The nodes that an AND reads, none of what is no AND."""
    xor, a, b = graph.gates[node - graph.first] if node >= graph.first else (True, 0, 0)
    return set() if xor else {a >> 1, b >> 1}


def _sum(graph: XAG, opened: list[int]) -> tuple[Sum, bool]:
    """The sum of products of the last of these ANDs, or of its inverse, whichever is shorter; and whether inverted."""
    sums: dict[int, Sum] = {}

    def of(literal: int) -> Sum:
        return sums.get(literal, [frozenset([literal])])

    for node in opened:
        _, a, b = graph.gates[node - graph.first]
        both = [x | y for x in of(a) for y in of(b) if not any(literal ^ 1 in y for literal in x)]
        sums[2 * node], sums[2 * node + 1] = _irredundant(both), _irredundant([*of(a ^ 1), *of(b ^ 1)])
    return min(((sums[2 * node + side], bool(side)) for side in range(2)), key=lambda each: sum(map(len, each[0])))


def _irredundant(products: Sum) -> Sum:
    """Without the products that the others cover."""
    read = sorted({literal >> 1 for product in products for literal in product})
    ones, tables = (1 << (1 << len(read))) - 1, dict(zip(read, input_tables(len(read)), strict=True))
    left = {each: reduce(and_, (tables[x >> 1] ^ (ones if x & 1 else 0) for x in each), ones) for each in products}
    for each in sorted(left, key=lambda each: (-len(each), sorted(each))):
        table = left.pop(each)
        if table & ~reduce(or_, left.values(), 0):
            left[each] = table
    return list(left)
