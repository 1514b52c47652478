"""Truth tables as Python integers: bit `s` of a node's table is its value on sample `s`.

The samples are all combinations of the inputs, input `i` being bit `i` of `s`, unless others are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from difflogic.circuits.graph import Graph, Node

MOST_INPUTS = 12
"""Tables of up to 4096 bits: operations on them take a tenth of a microsecond."""


def input_tables(inputs: int) -> list[int]:
    """The table of each input alone."""
    tables = []
    for index in range(inputs):
        table, width = ((1 << (1 << index)) - 1) << (1 << index), 2 << index
        while width < 1 << inputs:
            table |= table << width
            width *= 2
        tables.append(table)
    return tables


def cofactor(table: int, index: int, value: int, inputs: int) -> int:
    """The table where input `index` is held at `value`."""
    column, shift = input_tables(inputs)[index], 1 << index
    if value:
        half = table & column
        return half | half >> shift
    half = table & ~column
    return half | half << shift


class Samples(NamedTuple):
    """So many samples, and each input's table over them."""

    number: int
    columns: tuple[int, ...]


class Tables:
    """The tables of all nodes of a graph with few inputs, or on the given samples."""

    def __init__(self, graph: Graph, samples: Samples | None = None) -> None:
        samples = samples or Samples(1 << graph.inputs, tuple(input_tables(graph.inputs)))
        self.graph = graph
        self.ones = (1 << samples.number) - 1
        self.values = [0, *samples.columns]
        for gate in graph.gates:
            self.values.append(self._apply(gate, self.values))

    def literal(self, literal: int) -> int:
        """The table of a literal."""
        value = self.values[literal >> 1]
        return value ^ self.ones if literal & 1 else value

    def behind(self, node: int) -> list[int]:
        """The nodes that depend on `node`, itself first, in order."""
        found, first = {node}, self.graph.first
        order = [node]
        for reader in range(max(node + 1, first), self.graph.size):
            _, a, b = self.graph.gates[reader - first]
            if a >> 1 in found or b >> 1 in found:
                found.add(reader)
                order.append(reader)
        return order

    def care(self, behind: Sequence[int]) -> int:
        """The samples on which some output changes when the first of `behind` does."""
        values = self.values.copy()
        values[behind[0]] ^= self.ones
        for reader in behind[1:]:
            values[reader] = self._apply(self.graph.gates[reader - self.graph.first], values)
        care = 0
        for output in self.graph.outputs:
            care |= values[output >> 1] ^ self.values[output >> 1]
        return care

    def _apply(self, gate: Node, values: Sequence[int]) -> int:
        xor, a, b = gate
        x, y = values[a >> 1], values[b >> 1]
        if xor:
            return x ^ y
        return (x ^ self.ones if a & 1 else x) & (y ^ self.ones if b & 1 else y)
