"""A cell of a hard circuit need not compute what the cell above it has just computed.

A column of cells is walked downwards. Two gates that are one function of inputs one row apart are one node: the lower
one is computed, the upper one is what the lower one was a row before. A gate of the patch's upper two rows is such a
value of the row before, and one of its upper row of the row before that; an input is loaded once, and not three times.

For example `g = in[0] XOR in[2]` and `h = in[6] XOR in[8]` are one node: `h` is its value now, `g` that of two rows
before, delay 2. Gates of few inputs are compared by their truth tables, larger ones by how they are built.

Life adds up its eight neighbours in any order, so which three of them an adder takes is free. Where a circuit is known
to be symmetric in some inputs, they change places until most is shared.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache
from itertools import combinations
from math import factorial
from typing import NamedTuple

import numpy as np

from difflogic.core.bits import pack_bits
from difflogic.core.wiring import PATCH
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import NOT_A, TRUE, Assignment, lines, read_inputs

AND, A_AND_NOT_B, NOT_A_AND_B, XOR, OR = 1, 2, 4, 6, 7
MOST_SYMMETRIC = 12
"""Inputs of a circuit whose symmetries are looked for, in its whole truth table."""
MOST_TRIED_GATES = 60
STARTS, SWAPS = 4, 150
"""Random orders of symmetric inputs, and attempts to improve each."""
_FEW = 4
"""Inputs of a gate that is compared by its truth table."""
MOST_CARRIED = 20
"""Values that stay in registers from row to row, of 32 registers; with more, the compiler puts some into memory."""

Value = tuple[int, int]
"""A node and its delay."""
Cell = tuple[int, int, int]
"""Channel, column of the patch, and how many rows above the lowest row."""
Function = tuple[tuple[Cell, ...], int]
"""The cells that a node depends on, one of them in the lowest row, and its truth table."""


class Ref(NamedTuple):
    """A node's value so many rows before, or its opposite."""

    node: int
    delay: int = 0
    inverted: bool = False

    def earlier(self, rows: int) -> Ref:
        return Ref(self.node, self.delay + rows, self.inverted) if rows else self


class ColumnNode(NamedTuple):
    """A gate of two earlier nodes, or where `gate` is 0 the input of `channel` in the lowest row, column `dx`; the
    constant 0 where `channel` is -1.

    All inputs 0 make every node 0, so that no node is another's opposite.
    """

    gate: int
    a: Ref = Ref(0)
    b: Ref = Ref(0)
    channel: int = -1
    dx: int = 0


class _Placed(NamedTuple):
    """A function of the cells so many rows before."""

    function: Function
    delay: int


class ColumnProgram(NamedTuple):
    """Nodes in an order in which they can be computed, and the outputs, one per channel."""

    nodes: list[ColumnNode]
    outputs: list[Ref]

    def computed(self, kept: Container[int] | None = None) -> list[list[int]]:
        """Return by node the delays at which it is read, ascending, where a node of `kept` [all] is computed at the
        first of them alone, and any other at each.
        """
        found: list[set[int]] = [set() for _ in self.nodes]
        for output in self.outputs:
            found[output.node].add(output.delay)
        for number in range(len(self.nodes) - 1, -1, -1):
            node, delays = self.nodes[number], found[number]
            if node.gate:
                for delay in sorted(delays)[: 1 if kept is None or number in kept else None]:
                    for read in (node.a, node.b):
                        found[read.node].add(delay + read.delay)
        return [sorted(delays) for delays in found]

    def kept(self) -> set[int]:
        """The nodes whose values stay in registers from row to row.

        Where they would not all have one, a cell itself is loaded anew: that costs no more than to keep it in memory,
        while its neighbours to the left and right are two loads and a shift.
        """
        everything = set(range(len(self.nodes)))
        if len(_carried(self.computed(everything), everything)) <= MOST_CARRIED:
            return everything
        return {number for number in everything if self.nodes[number].gate or self.nodes[number].dx != 1}

    def cost(self) -> int:
        """Gates and shifts of a step."""
        found = self.computed()
        return sum(bool(node.gate or node.dx != 1) for node, at in zip(self.nodes, found, strict=True) if at)


class ColumnLoop(NamedTuple):
    """A program as a loop over the rows of a column, in lists of values in an order in which they can be computed.

    A gate's value at a delay is made of its nodes' values at that much more delay; an input's is the cell so many rows
    above the row below the one that is computed.
    """

    before: list[Value]
    """What is computed before the first row."""
    row: list[Value]
    """What is computed in each row."""
    carried: list[Value]
    """What a row takes over: of a value `(node, delay)` it is `(node, delay - 1)` of the row before."""


def column_loop(program: ColumnProgram) -> ColumnLoop:
    """Every value as late as it can be, so that few wait in registers for what needs them."""
    kept = program.kept()
    delays = program.computed(kept)
    carried = _carried(delays, kept)
    outputs = [(output.node, output.delay) for output in program.outputs]
    wanted = [(number, delay) for number, at in enumerate(delays) for delay in at[: 1 if number in kept else None]]
    return ColumnLoop(
        _in_order(program, carried, set()), _in_order(program, [*outputs, *wanted], set(carried)), carried
    )


def _carried(delays: list[list[int]], kept: Container[int]) -> list[Value]:
    """Return what a row takes over from the row above it."""
    return [
        (number, delay)
        for number, at in enumerate(delays)
        if number in kept and at
        for delay in range(at[0] + 1, at[-1] + 1)
    ]


def _in_order(program: ColumnProgram, wanted: Sequence[Value], known: Container[Value]) -> list[Value]:
    """The values that are wanted, and before each what it is made of, but for what is known."""
    found: dict[Value, None] = {}
    waiting = list(reversed(wanted))
    while waiting:
        number, delay = value = waiting[-1]
        node = program.nodes[number]
        reads = [(read.node, read.delay + delay) for read in (node.b, node.a) if node.gate]
        missing = [read for read in reads if read not in found and read not in known]
        if value in found or value in known or not missing:
            waiting.pop()
            if value not in known:
                found[value] = None
        else:
            waiting += missing
    return list(found)


def column_program(netlist: CellNetlist) -> ColumnProgram:
    """The circuit with everything shared; symmetric inputs in the order that shares most."""
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
    """Improve a random order of the group: one or two pairs change places as long as that costs no more."""
    order = rng.permutation(group).tolist()
    best = _shared(netlist, gates, dict(zip(group, order, strict=True)))
    for _ in range(min(SWAPS, factorial(len(group)) - 1)):
        swapped = list(order)
        for _ in range(rng.integers(1, 3)):
            i, j = rng.integers(0, len(group), 2)
            swapped[i], swapped[j] = swapped[j], swapped[i]
        found = _shared(netlist, gates, dict(zip(group, swapped, strict=True)))
        if found.cost() <= best.cost():
            best, order = found, swapped
    return best


def symmetric_inputs(netlist: CellNetlist) -> list[list[int]]:
    """Groups of inputs, two at least, whose order changes no output. None where a circuit reads too many to be sure."""
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
    """The gates as nodes, inputs read from other `places` where these say so."""
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
    """Nodes, each once."""

    def __init__(self) -> None:
        self.nodes = [ColumnNode(0)]
        self._numbers: dict[object, int] = {((), 0): 0}
        self._functions: list[Function | None] = [((), 0)]
        """By node, the cells that it depends on, and its truth table; None where these are too many."""

    def input(self, bit: int) -> Ref:
        channel, patch = divmod(bit, PATCH)
        dy, dx = divmod(patch, 3)
        function = ((channel, dx, 0),), 2
        return Ref(self._number(function, ColumnNode(0, channel=channel, dx=dx), function), 2 - dy)

    def gate(self, gate: int, a: Ref, b: Ref) -> Ref:
        # Inverters go into the gate's table, and what is then 1 where both inputs are 0 is made as its opposite.
        gate = (gate & 3) << 2 | gate >> 2 if a.inverted else gate
        gate = (gate & 5) << 1 | (gate & 10) >> 1 if b.inverted else gate
        inverted, gate = gate > OR, min(gate, TRUE - gate)
        a, b = (Ref(ref.node, ref.delay) if ref.inverted else ref for ref in (a, b))
        if gate == NOT_A_AND_B or (gate != A_AND_NOT_B and b < a):
            gate, a, b = A_AND_NOT_B if gate == NOT_A_AND_B else gate, b, a
        found = self._known(gate, a, b)
        return Ref(found.node, found.delay, True) if inverted else found

    def _known(self, gate: int, a: Ref, b: Ref) -> Ref:
        """The node of an AND, `a` AND NOT `b`, XOR or OR."""
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
            # A gate may read lower rows than it depends on, as in `x AND (y XOR y)`: then it is known by how it is
            # built.
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
    """A gate of two functions, each of so many rows before; None where it reads too many cells."""
    if x is None or y is None:
        return None
    own = [
        tuple((channel, dx, rows + before) for channel, dx, rows in known[0])
        for known, before in ((x, before_x), (y, before_y))
    ]
    cells = sorted({*own[0], *own[1]})
    if len(cells) > _FEW:
        return None
    of_a, of_b = (tuple(map(cells.index, each)) for each in own)
    used, table = _joined(gate, x[1], of_a, y[1], of_b, len(cells))
    lowest = min((cells[index][2] for index in used), default=0)
    return _Placed((tuple((*cells[index][:2], cells[index][2] - lowest) for index in used), table), lowest)


@lru_cache(maxsize=1 << 14)
def _joined(
    gate: int, x: int, of_a: tuple[int, ...], y: int, of_b: tuple[int, ...], count: int
) -> tuple[tuple[int, ...], int]:
    """A gate of two functions of some of `count` variables: the variables that it depends on, and its table.

    Bit `m` of a table is the value where variable `i` is bit `i` of `m`.
    """

    def value(table: int, variables: Sequence[int], row: int) -> int:
        return table >> sum((row >> variable & 1) << index for index, variable in enumerate(variables)) & 1

    rows = [gate >> (3 - 2 * value(x, of_a, row) - value(y, of_b, row)) & 1 for row in range(1 << count)]
    used = tuple(v for v in range(count) if any(rows[row] != rows[row ^ 1 << v] for row in range(1 << count)))
    table = 0
    for size in range(len(used) + 1):
        for chosen in combinations(range(len(used)), size):
            table |= rows[sum(1 << used[index] for index in chosen)] << sum(1 << index for index in chosen)
    return used, table
