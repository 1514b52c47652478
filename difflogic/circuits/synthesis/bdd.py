"""Reduced ordered binary decision diagrams of a circuit's outputs, in which equal functions share a node.

Source: Bryant, *Graph-based algorithms for Boolean function manipulation* (1986).
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import product

from difflogic.errors import CircuitError
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines

_FALSE, _TRUE = 0, 1
_MAX_NODES = 1 << 17


class Forest:
    """Decision diagrams of all outputs, with shared nodes; variable i is the input `order[i]`."""

    def __init__(self, netlist: Netlist, order: Sequence[int], most: int = _MAX_NODES) -> None:
        """Build the diagrams of all outputs. Raises CircuitError if they need more than `most` nodes."""
        last, self._most = len(order), most
        self._nodes: list[tuple[int, int, int]] = [(last, 0, 0), (last, 1, 1)]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._results: dict[tuple[int, int, int], int] = {}
        function = {bit: self._node(level, _FALSE, _TRUE) for level, bit in enumerate(order)}
        for line in lines(netlist):
            a, b = (*(function[bit] for bit in line.reads), _FALSE, _FALSE)[:2]
            function[line.bit] = self._gate(line.gate, a, b)
        self.outputs = [function[output] for output in netlist.outputs.tolist()]

    def branches(self, functions: Sequence[int], level: int, count: int) -> list[tuple[int, ...]]:
        """Return cofactors of `functions` for all values of `count` variables; variable `level` is the lowest bit."""
        # `product` varies its last value fastest, but the first variable is the lowest bit: 00, 10, 01, 11.
        return [
            tuple(self._restricted(function, level, values[::-1]) for function in functions)
            for values in product((0, 1), repeat=count)
        ]

    def number(self, functions: Sequence[int]) -> int:
        """Return the number whose bit i is the value of `functions[i]`, which must be constant."""
        return sum(function << index for index, function in enumerate(functions))

    def possible(self, zero: Sequence[int], one: Sequence[int], samples: int) -> tuple[list[int], list[int]]:
        """Return whether each output can be 0, and whether it can be 1, as two lists of integers, one per output.

        `zero` and `one` state the same for each variable. Bit i of an integer is sample i; `samples` is all ones.
        """
        # A path tests each variable at most once, so it is possible if each of its tests alone is possible.
        can = {_FALSE: (samples, 0), _TRUE: (0, samples)}
        for node in self.live:
            level, low, high = self._nodes[node]
            (low_zero, low_one), (high_zero, high_one) = can[low], can[high]
            is_zero, is_one = zero[level], one[level]
            can[node] = is_zero & low_zero | is_one & high_zero, is_zero & low_one | is_one & high_one
        return [can[output][0] for output in self.outputs], [can[output][1] for output in self.outputs]

    @cached_property
    def live(self) -> list[int]:
        """Nodes on which an output depends, in topological order."""
        # Branches have lower numbers than their node.
        live = set(self.outputs)
        for node in range(len(self._nodes) - 1, _TRUE, -1):
            if node in live:
                live.update(self._nodes[node][1:])
        return sorted(live - {_FALSE, _TRUE})

    def _restricted(self, function: int, level: int, values: Sequence[int]) -> int:
        for offset, value in enumerate(values):
            variable, low, high = self._nodes[function]
            if variable == level + offset:
                function = high if value else low
        return function

    def _node(self, level: int, low: int, high: int) -> int:
        # Two rules make the diagram canonical: no node has equal branches, and no node exists twice. Therefore equal
        # functions have equal node numbers, and Golly's tree shares their branches.
        if low == high:
            return low
        key = (level, low, high)
        if key not in self._numbers:
            if len(self._nodes) >= self._most:
                raise too_large("The decision diagram of this circuit", self._most)
            self._numbers[key] = len(self._nodes)
            self._nodes.append(key)
        return self._numbers[key]

    def _gate(self, gate: int, a: int, b: int) -> int:
        if a <= _TRUE and b <= _TRUE:
            return gate >> (3 - (2 * a + b)) & 1
        key = (gate, a, b)
        if key not in self._results:
            (level_a, *sides_a), (level_b, *sides_b) = self._nodes[a], self._nodes[b]
            # Split `a` and `b` by the first variable that either reads; one that does not read it is its own cofactor.
            level = min(level_a, level_b)
            low, high = (
                self._gate(gate, sides_a[value] if level_a == level else a, sides_b[value] if level_b == level else b)
                for value in (0, 1)
            )
            self._results[key] = self._node(level, low, high)
        return self._results[key]


def too_large(what: str, most: int) -> CircuitError:
    """Return the error for `what`, such as a tree, with more than `most` entries."""
    return CircuitError(
        f"{what} has more than {most} entries, since the results depend on too many inputs: simplify the circuit "
        "(difflogic simplify), or use another format."
    )
