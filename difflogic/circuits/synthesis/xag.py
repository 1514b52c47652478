"""XAGs: graphs of AND and XOR nodes with inverted edges, the form in which circuits are simplified.

An edge is a *literal*, `2*node + inverted`. Node 0 is FALSE, nodes 1 to I are the inputs in order, and the gates
follow, each after those that it reads. An AND reads two literals of different nodes, the smaller first; an XOR reads
two plain literals, since `NOT a XOR b = NOT (a XOR b)`. No gate reads FALSE. Thus every gate has a cost, each of the
ten types that depend on both inputs has the same cost, and NOT is free.

Example with the inputs x and y, nodes 1 and 2, so that the first gate is node 3:

    x OR y = NOT (NOT x AND NOT y)    node 3 = AND(3, 5): literal 3 is NOT node 1, literal 5 is NOT node 2
                                      the OR is NOT node 3, which is literal 7
    x XOR y                           node 4 = XOR(2, 4), literal 8
    (x OR y) AND (x XOR y)            node 5 = AND(7, 8), literal 10: simplification finds that it is literal 8

The two literals of a node differ in their lowest bit: `literal >> 1` is the node, `literal & 1` is 1 if the edge
inverts, and `literal ^ 1` is NOT.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from difflogic.core.bit_parallel import BitProgram
from difflogic.core.bits import Words

FALSE, TRUE = 0, 1
"""The constant literals."""


class Node(NamedTuple):
    """Gate that reads the literals `a` and `b`: an XOR if `xor`, otherwise an AND."""

    xor: bool
    a: int
    b: int

    @property
    def gate(self) -> int:
        """Id, 0 to 15, of the equivalent gate that reads both nodes without inversion."""
        # A gate's id is its truth table: bit 3 is the value for inputs 00, bit 0 that for 11. An AND is 1 in one row,
        # where each plain input is 1 and each inverted one 0. AND(3, 4) is NOT x AND y, so it is 1 for 01, which is
        # bit 2, and its id is 4. Two inversions in an XOR cancel, and one makes it an XNOR.
        a, b = self.a & 1, self.b & 1
        return (9 if a ^ b else 6) if self.xor else 1 << (2 * a + b)


@dataclass(frozen=True, eq=False)
class XAG:
    """Graph with `inputs` inputs, in which `gates[i]` is node `1 + inputs + i`; `outputs` are literals."""

    inputs: int
    gates: Sequence[Node]
    outputs: Sequence[int]

    @property
    def first(self) -> int:
        """Number of the node that is the first gate."""
        return 1 + self.inputs

    @property
    def size(self) -> int:
        """Number of nodes, including FALSE and the inputs."""
        return self.first + len(self.gates)

    @property
    def nodes(self) -> range:
        """Numbers of the nodes that are gates."""
        return range(self.first, self.size)

    @cached_property
    def levels(self) -> list[int]:
        """Level of each node: the length of its longest path from an input."""
        levels = [0] * self.first
        for _, a, b in self.gates:
            levels.append(1 + max(levels[a >> 1], levels[b >> 1]))
        return levels

    def on_same_inputs(self) -> list[int]:
        """Return a map from nodes to literals of a copy with the same inputs; gates are FALSE until they are copied."""
        return [*range(FALSE, 2 * self.first, 2), *[FALSE] * len(self.gates)]

    @cached_property
    def supports(self) -> list[int]:
        """Structural support of each node as a bit set, in which bit `i` stands for input `i`."""
        # Python integers serve as sets of any size, and a union of 1152 inputs is one operation. Only wires count:
        # x XOR x would have x in its set if the builder did not fold it.
        sets = [0] + [1 << index for index in range(self.inputs)]
        for _, a, b in self.gates:
            sets.append(sets[a >> 1] | sets[b >> 1])
        return sets

    def evaluate(self, words: Words) -> Words:
        """Return the values of all nodes, uint64 `[size, N]`, for inputs uint64 `[inputs, N]`."""
        values = np.zeros((self.size, words.shape[1]), dtype=np.uint64)
        # Row 0 remains 0, since node 0 is FALSE. Netlist bits are numbered from the first input on, nodes from 1.
        values[1:] = self._program.all_bits(words)
        return values

    @cached_property
    def _program(self) -> BitProgram:
        types = np.array([gate.gate for gate in self.gates], dtype=np.uint8)
        wires = np.array([((a >> 1) - 1, (b >> 1) - 1) for _, a, b in self.gates], dtype=np.int32).reshape(-1, 2)
        return BitProgram(self.inputs, types, wires)

    def support(self, literals: Iterable[int]) -> list[int]:
        """Return the indices of the inputs in the structural support of `literals`, ascending."""
        union = reduce(or_, (self.supports[literal >> 1] for literal in literals), 0)
        return [index for index in range(self.inputs) if union >> index & 1]

    def fanin_cone(self, nodes: Iterable[int]) -> list[int]:
        """Return the gates that `nodes` depend on, including gates in `nodes`, in topological order."""
        # Depth first with an explicit stack, since a circuit may be deeper than Python's recursion limit. Every gate
        # follows those that it reads, so sorted numbers are a topological order.
        seen = set()
        stack = [node for node in nodes if node >= self.first]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                _, a, b = self.gates[node - self.first]
                stack.extend(literal >> 1 for literal in (a, b) if literal >> 1 >= self.first)
        return sorted(seen)


def input_literal(index: int) -> int:
    """Return the literal of input number `index`, which is node `1 + index`, since node 0 is FALSE."""
    return 2 * (1 + index)


Places = Sequence[int] | dict[int, int]
"""Mapping from nodes of one graph to literals of another."""


def mapped(literal: int, literals: Places) -> int:
    """Translate a literal to another graph in which nodes are `literals[node]`; inversion is preserved."""
    return literals[literal >> 1] ^ (literal & 1)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a pass; `graph` is the smallest graph so far."""

    def __init__(self, graph: XAG) -> None:
        super().__init__()
        self.graph = graph


class Builder:
    """Builder of a graph, which folds constants, wires and inverters and, with `share`, merges equal gates."""

    def __init__(self, inputs: int, share: bool = True) -> None:
        self.inputs = inputs
        self.gates: list[Node] = []
        self._literals: dict[Node, int] | None = {} if share else None

    def and_(self, a: int, b: int) -> int:
        """Build `a AND b`, and return its literal."""
        # Five cases need no new gate: 0 AND b, a AND NOT a, 1 AND b, a AND a and, with `share`, an equal gate.
        if a > b:  # a fixed order makes equal gates equal nodes
            a, b = b, a
        if a == FALSE or a ^ 1 == b:
            return FALSE
        if a in (TRUE, b):
            return b
        return self._gate(Node(False, a, b))

    def or_(self, a: int, b: int) -> int:
        """Build `a OR b`, and return its literal."""
        return self.and_(a ^ 1, b ^ 1) ^ 1

    def xor(self, a: int, b: int) -> int:
        """Build `a XOR b`, and return its literal."""
        inverted, a, b = (a ^ b) & 1, a & ~1, b & ~1  # inversions move to the output: two cancel
        if a > b:
            a, b = b, a
        if a == b:
            return inverted
        if a == FALSE:
            return b ^ inverted
        return self._gate(Node(True, a, b)) ^ inverted

    def copy(self, graph: XAG, nodes: Iterable[int], literals: list[int] | dict[int, int]) -> None:
        """Build copies of the gates `nodes` of `graph`, in topological order, and store their literals in `literals`.

        `literals[node]` is this graph's literal for a node of `graph`; all nodes that the gates read must have one.
        """
        # Every pass that builds a new graph from an old one uses this map. If old node 5 became literal 13, NOT node 6,
        # then an edge 11, NOT node 5, becomes 13 ^ 1 = 12, plain node 6.
        for node in nodes:
            xor, a, b = graph.gates[node - graph.first]
            a, b = mapped(a, literals), mapped(b, literals)
            literals[node] = self.xor(a, b) if xor else self.and_(a, b)

    def embed(self, graph: XAG, inputs: Sequence[int], outputs: Sequence[int] | None = None) -> list[int]:
        """Build the cones of `outputs` of another graph, by default all, and return their literals in this graph.

        `inputs` are literals of this graph that replace the inputs of `graph`: other inputs, constants or gates.
        """
        outputs = graph.outputs if outputs is None else outputs
        literals = [FALSE, *inputs, *[FALSE] * len(graph.gates)]
        self.copy(graph, graph.fanin_cone(output >> 1 for output in outputs), literals)
        return [mapped(output, literals) for output in outputs]

    def gate(self, gate: int, a: int, b: int) -> int:
        """Build the gate with id `gate`, 0 to 15, on `a` and `b`, and return its literal."""
        # Eight of the sixteen tables have one 1 or one 0: ANDs, possibly inverted, with or without inverted edges. OR,
        # for example, is 0 only for 00: NOT (NOT a AND NOT b). The others have zero, two or four ones: constants,
        # inputs and their inverses, XOR and XNOR.
        f00, f01, f10, f11 = (gate >> shift & 1 for shift in (3, 2, 1, 0))
        ones = f00 + f01 + f10 + f11
        if ones % 2:  # a single 1, or a single 0, at (a, b) = divmod(row, 2)
            row = (f00, f01, f10, f11).index(1 if ones == 1 else 0)
            return self.and_(a ^ 1 ^ (row >> 1), b ^ 1 ^ (row & 1)) ^ (ones == 3)
        if f00 == f01 and f10 == f11:
            return a ^ f00 if f00 != f11 else f00
        if f00 == f10:
            return b ^ f00
        return self.xor(a, b) ^ f00

    def finish(self, outputs: Iterable[int]) -> XAG:
        """Return the graph with these outputs. The builder must not be used afterwards."""
        literals = tuple(outputs)  # evaluated first, since an iterator may build gates
        return XAG(self.inputs, tuple(self.gates), literals)

    def _gate(self, gate: Node) -> int:
        literal = 2 * (1 + self.inputs + len(self.gates))
        if self._literals is not None and (shared := self._literals.setdefault(gate, literal)) != literal:
            return shared
        self.gates.append(gate)
        return literal


class Piece(NamedTuple):
    """Part of a graph as a separate graph, with the corresponding nodes and literals of the complete graph."""

    graph: XAG
    reads: list[int]
    """Node of the complete graph for each input of the part."""
    outputs: Sequence[int]
    """Literal of the complete graph for each output of the part."""


def cut_out(graph: XAG, gates: Sequence[int], outputs: Sequence[int]) -> Piece:
    """Return `gates`, in topological order, as a piece; other nodes that they read, except FALSE, become inputs."""
    literals = dict.fromkeys(gates, FALSE) | {FALSE: FALSE}
    ends = [literal for gate in gates for literal in graph.gates[gate - graph.first][1:]]
    reads = sorted({literal >> 1 for literal in (*ends, *outputs)} - literals.keys())
    literals |= {node: input_literal(index) for index, node in enumerate(reads)}
    builder = Builder(len(reads))
    builder.copy(graph, gates, literals)
    return Piece(builder.finish(mapped(output, literals) for output in outputs), reads, outputs)


def embedded(graph: XAG, inputs: Sequence[int], count: int) -> XAG:
    """Return the graph with `count` new inputs; `inputs` are the literals of these that replace the original inputs."""
    builder = Builder(count, share=False)
    return builder.finish(builder.embed(graph, inputs))


def narrowed(graph: XAG, used: Sequence[int]) -> XAG:
    """Return the graph with only the inputs `used`, in this order; outputs must not depend on other inputs."""
    inputs = [FALSE] * graph.inputs
    for new, old in enumerate(used):
        inputs[old] = input_literal(new)
    return embedded(graph, inputs, len(used))


def rebuilt(graph: XAG, share: bool = True, replaced: dict[int, int] | None = None) -> XAG:
    """Return the graph without dead gates, with constants folded and, with `share`, gates structurally hashed.

    `replaced` maps nodes to the literals of earlier nodes that replace them.
    """
    replaced = replaced or {}
    # Example: node 3 = AND(2, 4), node 4 = XOR(2, 4), node 5 = AND(6, 9), the output 10, and replaced = {4: 7}, node 4
    # by NOT node 3. Node 4 is not built, literals[4] = 7, and node 5 becomes AND(6, 6), which the builder folds: the
    # output is 6, node 3. One replacement removes two gates.
    builder = Builder(graph.inputs, share)
    literals = graph.on_same_inputs()
    for node in _live(graph, replaced):
        if node in replaced:
            literals[node] = mapped(replaced[node], literals)
        else:
            builder.copy(graph, [node], literals)
    return builder.finish(mapped(output, literals) for output in graph.outputs)


def _live(graph: XAG, replaced: dict[int, int]) -> list[int]:
    """Return the gates that are live after replacements, and the replaced ones that they read, in topological order."""
    is_live = bytearray(graph.size)
    for output in graph.outputs:
        is_live[output >> 1] = 1
    for node in reversed(graph.nodes):
        if is_live[node]:
            for literal in (replaced[node],) if node in replaced else graph.gates[node - graph.first][1:]:
                is_live[literal >> 1] = 1
    return [node for node in graph.nodes if is_live[node]]
