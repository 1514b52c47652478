"""Share values between the rows of a grid: a cell reuses values that the cells above it have computed.

The cells of a column are computed from top to bottom. Two gates that compute the same function of inputs one row apart
become one node: only the lower gate is computed, and the upper gate is the node's value in the previous row. So an
input is loaded once instead of three times.

For example, `g = in[0] XOR in[2]` and `h = in[6] XOR in[8]` are one node: `h` is its current value, and `g` its value
two rows before, delay 2. Gates of few inputs are compared by their truth tables, all others by structure.

If the order of some inputs does not matter, as for the eight neighbours that Life adds up, the inputs are permuted to
share as many values as possible.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np

from difflogic.core.bits import pack_bits
from difflogic.core.wiring import PATCH
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import NOT_A, TRUE, Assignment, lines, on_inverted, read_inputs

AND, A_AND_NOT_B, NOT_A_AND_B, XOR, OR = 1, 2, 4, 6, 7
MOST_SYMMETRIC = 12
"""Maximum number of circuit inputs for which symmetries are searched, which needs the complete truth table."""
MOST_TRIED_GATES = 60
"""Maximum number of gates of a circuit for which permutations of symmetric inputs are tried."""
STARTS, SWAPS = 4, 150
"""Number of random orders tried per group of symmetric inputs, and number of swaps tried to improve each order."""
_FEW = 4
"""Maximum number of cells that a gate depends on if it is compared by its truth table."""
MOST_CARRIED = 20
"""Maximum number of values kept in the 32 registers from row to row; more values would be spilled to memory."""

Value = tuple[int, int]
"""Index of a node, and the number of rows (delay) by which its value lies above the current row."""
Cell = tuple[int, int, int]
"""Channel, column of the patch (0 to 2), and number of rows above the lowest row of the patch."""
Function = tuple[tuple[Cell, ...], int]
"""Cells that a node depends on, shifted so that the lowest cell is in row 0, and the node's truth table."""
_Placed = tuple[Function, int]
"""Function of cells, and the number of rows by which its cells must be shifted upward."""


class Ref(NamedTuple):
    """Reference to the value of a node `delay` rows above, or to the inverse of this value."""

    node: int
    delay: int = 0
    inverted: bool = False

    def earlier(self, rows: int) -> Ref:
        return Ref(self.node, self.delay + rows, self.inverted) if rows else self


class ColumnNode(NamedTuple):
    """Gate that reads earlier nodes; or, if `gate` is 0, the input of `channel` in the lowest row and column `dx`.

    If `gate` is 0 and `channel` is -1, the node is the constant 0. Every node is 0 if all inputs are 0. Therefore no
    node is the inverse of another node.
    """

    gate: int
    a: Ref = Ref(0)
    b: Ref = Ref(0)
    channel: int = -1
    dx: int = 0


class ColumnProgram(NamedTuple):
    """Program for a step of a cell: nodes in topological order, and one output per channel."""

    nodes: list[ColumnNode]
    outputs: list[Ref]

    def computed(self, carried: Container[int] | None = None) -> list[list[int]]:
        """Return, for each node, the delays at which it is read, in ascending order.

        Nodes in `carried` (None for all) are computed only at their first delay, and all other nodes at every delay.
        """
        reads: list[set[int]] = [set() for _ in self.nodes]
        for output in self.outputs:
            reads[output.node].add(output.delay)
        for number in range(len(self.nodes) - 1, -1, -1):
            node, delays = self.nodes[number], reads[number]
            if node.gate:
                for delay in sorted(delays)[: 1 if carried is None or number in carried else None]:
                    for source in (node.a, node.b):
                        reads[source.node].add(delay + source.delay)
        return [sorted(delays) for delays in reads]

    def carried(self) -> set[int]:
        """Return the nodes whose values stay in registers from row to row.

        If there are too few registers for all nodes, inputs from the middle column are excluded: loading them again in
        each row costs no more than spilling them. (Loading a left or right neighbour takes two loads and a shift.)
        """
        everything = set(range(len(self.nodes)))
        if len(_carried(self.computed(everything), everything)) <= MOST_CARRIED:
            return everything
        return {number for number in everything if self.nodes[number].gate or self.nodes[number].dx != 1}

    def cost(self) -> int:
        """Return the number of gates and shifts that a step computes per cell."""
        reads = zip(self.nodes, self.computed(), strict=True)
        return sum(bool(node.gate or node.dx != 1) for node, delays in reads if delays)


class ColumnLoop(NamedTuple):
    """Column program scheduled as a loop over rows; each list of values is in topological order.

    A gate's value at delay d reads its inputs at their own delays plus d. Delay 0 of an input is the row below the
    current row, so an input at delay d is d rows above that row.
    """

    before: list[Value]
    """Values that are computed once, before the first row."""
    row: list[Value]
    """Values that are computed in each row."""
    carried: list[Value]
    """Values taken from the previous row, in which the value `(node, delay)` was `(node, delay - 1)`."""


def column_loop(program: ColumnProgram) -> ColumnLoop:
    """Schedule a program as a loop that computes each value as late as possible, so that few registers are occupied."""
    nodes = program.carried()
    delays = program.computed(nodes)
    carried = _carried(delays, nodes)
    outputs = [(output.node, output.delay) for output in program.outputs]
    read = [(number, delay) for number, times in enumerate(delays) for delay in times[: 1 if number in nodes else None]]
    return ColumnLoop(_in_order(program, carried, set()), _in_order(program, [*outputs, *read], set(carried)), carried)


def _carried(delays: list[list[int]], nodes: Container[int]) -> list[Value]:
    """Return the values of `nodes` that a row reuses from the row above it; `delays` are as in `computed`."""
    return [
        (number, delay)
        for number, read in enumerate(delays)
        if number in nodes and read
        for delay in range(read[0] + 1, read[-1] + 1)
    ]


def _in_order(program: ColumnProgram, targets: Sequence[Value], available: Container[Value]) -> list[Value]:
    """Return the targets and all values that they depend on, except `available` values, in topological order."""
    order: dict[Value, None] = {}
    waiting = list(reversed(targets))
    while waiting:
        number, delay = value = waiting[-1]
        node = program.nodes[number]
        reads = [(read.node, read.delay + delay) for read in (node.b, node.a) if node.gate]
        missing = [read for read in reads if read not in order and read not in available]
        if value in order or value in available or not missing:
            waiting.pop()
            if value not in available:
                order[value] = None
        else:
            waiting += missing
    return list(order)


def column_program(netlist: CellNetlist) -> ColumnProgram:
    """Convert a netlist to a column program of low cost, found by a search over the orders of symmetric inputs."""
    gates = lines(netlist)
    best = _shared(netlist, gates, {})
    if len(gates) > MOST_TRIED_GATES:
        return best
    rng = np.random.default_rng(0)
    for group in symmetric_inputs(netlist):
        for _ in range(min(STARTS, factorial(len(group)) - 1)):
            best = min(_improved(netlist, gates, group, rng), best, key=ColumnProgram.cost)
    return best


def _improved(
    netlist: CellNetlist, gates: list[Assignment], group: list[int], rng: np.random.Generator
) -> ColumnProgram:
    """Return the program after improving a random order of the inputs `group` by swaps that do not raise the cost."""
    order = rng.permutation(group).tolist()
    best = _shared(netlist, gates, dict(zip(group, order, strict=True)))
    for _ in range(min(SWAPS, factorial(len(group)) - 1)):
        swapped = list(order)
        for _ in range(rng.integers(1, 3)):
            i, j = rng.integers(0, len(group), 2)
            swapped[i], swapped[j] = swapped[j], swapped[i]
        program = _shared(netlist, gates, dict(zip(group, swapped, strict=True)))
        if program.cost() <= best.cost():
            best, order = program, swapped
    return best


def symmetric_inputs(netlist: CellNetlist) -> list[list[int]]:
    """Return groups of two or more inputs whose order affects no output; [] if the circuit has too many inputs."""
    inputs = read_inputs(netlist)
    if len(inputs) > MOST_SYMMETRIC:
        return []
    rows = np.arange(1 << len(inputs))
    samples = np.zeros((netlist.inputs, len(rows)), dtype=np.uint8)
    samples[inputs] = rows >> np.arange(len(inputs))[:, None] & 1
    table = netlist.evaluate(pack_bits(samples))
    groups: list[list[int]] = []
    for bit in inputs:
        for group in groups:
            swapped = samples.copy()
            swapped[[bit, group[0]]] = samples[[group[0], bit]]
            if np.array_equal(netlist.evaluate(pack_bits(swapped)), table):
                group.append(bit)
                break
        else:
            groups.append([bit])
    return [group for group in groups if len(group) > 1]


def _shared(netlist: CellNetlist, gates: list[Assignment], places: dict[int, int]) -> ColumnProgram:
    """Build a program of the gates; `places` maps permuted inputs to the inputs that replace them."""
    table = _Table()
    inputs = {bit for line in gates for bit in line.reads} | set(netlist.outputs.tolist())
    refs = {bit: table.input(places.get(bit, bit)) for bit in sorted(inputs) if bit < netlist.inputs}
    for line in gates:
        reads = [refs[bit] for bit in line.reads]
        if len(reads) == 2:
            refs[line.bit] = table.gate(line.gate, *reads)
        else:
            ref = reads[0] if reads else Ref(0)
            refs[line.bit] = ref._replace(inverted=ref.inverted ^ (line.gate in (NOT_A, TRUE)))
    return ColumnProgram(table.nodes, [refs[output] for output in netlist.outputs.tolist()])


class _Table:
    """Builder of nodes that reuses equal nodes (structural hashing)."""

    def __init__(self) -> None:
        self.nodes = [ColumnNode(0)]
        self._numbers: dict[object, int] = {((), 0): 0}
        self._functions: list[Function | None] = [((), 0)]
        """Function of each node; None if it depends on too many cells."""

    def input(self, bit: int) -> Ref:
        channel, patch = divmod(bit, PATCH)
        dy, dx = divmod(patch, 3)
        function = ((channel, dx, 0),), 2
        return Ref(self._number(function, ColumnNode(0, channel=channel, dx=dx), function), 2 - dy)

    def gate(self, gate: int, a: Ref, b: Ref) -> Ref:
        # Move inversions of inputs into the gate; a gate that is 1 for inputs 0 and 0 is built as its inverse.
        gate = on_inverted(gate, a.inverted, b.inverted)
        inverted, gate = gate > OR, min(gate, TRUE - gate)
        a, b = (Ref(ref.node, ref.delay) if ref.inverted else ref for ref in (a, b))
        if gate == NOT_A_AND_B or (gate != A_AND_NOT_B and b < a):
            gate, a, b = A_AND_NOT_B if gate == NOT_A_AND_B else gate, b, a
        ref = self._node(gate, a, b)
        return Ref(ref.node, ref.delay, True) if inverted else ref

    def _node(self, gate: int, a: Ref, b: Ref) -> Ref:
        """Return the node of `a AND b`, `a AND NOT b`, `a XOR b` or `a OR b`, reusing an equal node if there is one."""
        if a == b:
            return a if gate & 1 else Ref(0)
        if 0 in (a.node, b.node):
            return a if b.node == 0 and gate & 2 else b if a.node == 0 and gate & 4 else Ref(0)
        placed = _function(gate, self._functions[a.node], a.delay, self._functions[b.node], b.delay)
        lowest = min(a.delay, b.delay)
        if placed is not None:
            function, above = placed
            if function in self._numbers:
                return Ref(self._numbers[function], above)
            # A gate may read lower rows than it depends on, as in `x AND (y XOR y)`: such a gate is identified by its
            # inputs instead of its function.
            if above <= lowest:
                node = ColumnNode(gate, a.earlier(-above), b.earlier(-above))
                return Ref(self._number(function, node, function), above)
        node = ColumnNode(gate, a.earlier(-lowest), b.earlier(-lowest))
        return Ref(self._number(node, node, None), lowest)

    def _number(self, key: object, node: ColumnNode, function: Function | None) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.nodes)
            self.nodes.append(node)
            self._functions.append(function)
        return self._numbers[key]


@lru_cache(maxsize=1 << 16)
def _function(gate: int, x: Function | None, before_x: int, y: Function | None, before_y: int) -> _Placed | None:
    """Return a gate's function of `x` and `y` (delayed by `before_x`, `before_y`); None if it has too many cells."""
    if x is None or y is None:
        return None
    own = [
        tuple((channel, dx, rows + before) for channel, dx, rows in function[0])
        for function, before in ((x, before_x), (y, before_y))
    ]
    cells = sorted({*own[0], *own[1]})
    if len(cells) > _FEW:
        return None
    of_a, of_b = (tuple(map(cells.index, own_cells)) for own_cells in own)
    used, table = _joined(gate, x[1], of_a, y[1], of_b, len(cells))
    lowest = min((cells[index][2] for index in used), default=0)
    return (tuple((*cells[index][:2], cells[index][2] - lowest) for index in used), table), lowest


@lru_cache(maxsize=1 << 14)
def _joined(
    gate: int, x: int, of_a: tuple[int, ...], y: int, of_b: tuple[int, ...], count: int
) -> tuple[tuple[int, ...], int]:
    """Combine functions of `count` variables by a gate; return the variables of the result and its truth table.

    Table `x` is over variables `of_a`, table `y` over `of_b`. Bit `m` is the value if variable `i` is bit `i` of `m`.
    """

    def value(table: int, variables: Sequence[int], row: int) -> int:
        return table >> sum((row >> variable & 1) << index for index, variable in enumerate(variables)) & 1

    rows = [gate >> (3 - 2 * value(x, of_a, row) - value(y, of_b, row)) & 1 for row in range(1 << count)]
    used = tuple(v for v in range(count) if any(rows[row] != rows[row ^ 1 << v] for row in range(1 << count)))
    # Row `m` of the result is the row in which the used variables have the bits of `m` and all others are 0.
    chosen = (sum((m >> index & 1) << v for index, v in enumerate(used)) for m in range(1 << len(used)))
    return used, sum(rows[row] << m for m, row in enumerate(chosen))
