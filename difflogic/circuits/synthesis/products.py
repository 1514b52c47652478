"""Refactoring of ANDs and ORs into sums of products, which share common prefixes.

Example: each level of a multiplexer tree selects by one address bit. As a sum of products, `s t a OR s NOT t b ...`, a
tree for four words takes seven gates instead of nine, and all such trees share four products of `s` and `t`.
Resubstitution of single gates seldom finds this form, since it makes the first tree larger.
"""

from collections import Counter
from functools import reduce
from operator import and_, or_

from difflogic.circuits.synthesis.truth_tables import input_tables
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, mapped, rebuilt

MOST_READ = range(3, 9)
"""Limits of the number of nodes that a sum reads; each is tried: 3 suits a multiplexer of two words, 6 one of four."""

Sum = list[frozenset[int]]
"""Products of a sum, each a set of literals."""


def with_shared_products(graph: XAG) -> XAG:
    """Return an equivalent graph with ANDs refactored into sums of products, if that saves gates."""
    graph = rebuilt(graph)
    return min([graph, *(_refactored(graph, most) for most in MOST_READ)], key=lambda other: len(other.gates))


def _refactored(graph: XAG, most: int) -> XAG:
    sums = _sums(graph, most)
    uses = Counter(literal for products, _ in sums.values() for product in products for literal in product)
    builder, literals = Builder(graph.inputs), graph.on_same_inputs()

    def build(product: frozenset[int]) -> int:
        # The most used literals are first, since products with a common prefix share the gates of the prefix.
        return reduce(builder.and_, (mapped(x, literals) for x in sorted(product, key=lambda x: (-uses[x], x))))

    for node, gate in zip(graph.nodes, graph.gates, strict=True):
        if gate.xor:
            builder.copy(graph, [node], literals)
        elif node in sums:
            products, inverted = sums[node]
            literals[node] = reduce(builder.or_, map(build, products), FALSE) ^ inverted
    return rebuilt(builder.finish(mapped(output, literals) for output in graph.outputs))


def _sums(graph: XAG, most: int) -> dict[int, tuple[Sum, bool]]:
    """Return sums of products that together cover all ANDs, by root node, each with True if it is inverted."""
    readers = Counter(literal >> 1 for _, a, b in graph.gates for literal in (a, b))
    roots = {node for node in graph.nodes if readers[node] != 1} | {output >> 1 for output in graph.outputs}
    sums = {}
    for node, (xor, a, b) in zip(reversed(graph.nodes), reversed(graph.gates), strict=True):
        if xor:
            roots |= {a >> 1, b >> 1}
        elif node in roots:
            cone, leaves = _and_cone(graph, node, roots, most)
            sums[node] = _sum(graph, cone)
            roots |= leaves
    return sums


def _and_cone(graph: XAG, root: int, roots: set[int], most: int) -> tuple[list[int], set[int]]:
    """Return the nodes of a cone of ANDs below a root, in topological order, and its at most `most` leaves."""
    cone, fitting, leaves = [], {root: _operands(graph, root)}, {root}
    while fitting:
        # Nodes of the highest level are first, so that multiplexer trees on one address are cut at the same bits.
        node = max(fitting, key=lambda leaf: (graph.levels[leaf], leaf))
        cone.append(node)
        leaves = leaves - {node} | fitting[node]
        below = {leaf: _operands(graph, leaf) for leaf in leaves - roots}
        fitting = {leaf: more for leaf, more in below.items() if more and len(leaves - {leaf} | more) <= most}
    return sorted(cone), leaves


def _operands(graph: XAG, node: int) -> set[int]:
    """Return the nodes that an AND reads; an empty set for any other node."""
    xor, a, b = graph.gates[node - graph.first] if node >= graph.first else (True, 0, 0)
    return set() if xor else {a >> 1, b >> 1}


def _sum(graph: XAG, cone: list[int]) -> tuple[Sum, bool]:
    """Return the shorter sum of products, of a cone's root or of its inverse, and whether it is of the inverse."""
    sums: dict[int, Sum] = {}

    def expanded(literal: int) -> Sum:
        return sums.get(literal, [frozenset([literal])])

    for node in cone:
        _, a, b = graph.gates[node - graph.first]
        both = [x | y for x in expanded(a) for y in expanded(b) if not any(literal ^ 1 in y for literal in x)]
        either = [*expanded(a ^ 1), *expanded(b ^ 1)]
        sums[2 * node], sums[2 * node + 1] = _irredundant(both), _irredundant(either)
    return min(((sums[2 * node + side], bool(side)) for side in range(2)), key=lambda ends: sum(map(len, ends[0])))


def _irredundant(products: Sum) -> Sum:
    """Return the products of a sum without those that the remaining ones cover."""
    leaves = sorted({literal >> 1 for product in products for literal in product})
    ones, tables = (1 << (1 << len(leaves))) - 1, dict[int, int]()
    for leaf, table in zip(leaves, input_tables(len(leaves)), strict=True):
        tables |= {2 * leaf: table, 2 * leaf + 1: table ^ ones}
    cover = {product: reduce(and_, (tables[literal] for literal in product), ones) for product in products}
    for product in sorted(cover, key=lambda product: (-len(product), sorted(product))):
        table = cover.pop(product)
        if table & ~reduce(or_, cover.values(), 0):
            cover[product] = table
    return list(cover)
