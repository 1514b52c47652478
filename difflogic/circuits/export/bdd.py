"""Binary decision diagrams of a circuit's outputs: which of two functions of the inputs are the same.

Nodes are shared, so that equal functions have equal numbers. Source: Bryant, *Graph-based algorithms for Boolean
function manipulation* (1986).
"""

from collections.abc import Sequence
from itertools import product

from difflogic.errors import CircuitError
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines

_FALSE, _TRUE = 0, 1
_MAX_NODES = 1 << 17


class Forest:
    """The functions of `netlist.outputs`, by a number each; variables are the inputs in the given order."""

    def __init__(self, netlist: Netlist, order: Sequence[int]) -> None:
        """Raises CircuitError where there are too many nodes."""
        last = len(order)
        self._nodes: list[tuple[int, int, int]] = [(last, 0, 0), (last, 1, 1)]
        self._known: dict[tuple[int, int, int], int] = {}
        self._done: dict[tuple[int, int, int], int] = {}
        function = {bit: self._node(level, _FALSE, _TRUE) for level, bit in enumerate(order)}
        for line in lines(netlist):
            a, b = (*(function[bit] for bit in line.reads), _FALSE, _FALSE)[:2]
            function[line.bit] = self._gate(line.gate, a, b)
        self.outputs = [function[output] for output in netlist.outputs.tolist()]

    def branches(self, functions: Sequence[int], level: int, count: int) -> list[tuple[int, ...]]:
        """The functions for every value of the `count` variables from `level` on; variable `level + i` is bit `i`."""
        # `product` changes its last value first, but here the first variable is the lowest bit of an entry's number. So
        # each is turned round: of two variables 00, 10, 01, 11.
        found = []
        for values in product((0, 1), repeat=count):
            found.append(tuple(self._restricted(function, level, values[::-1]) for function in functions))
        return found

    def number(self, functions: Sequence[int]) -> int:
        """Constant functions as a number, the first its lowest bit."""
        return sum(function << index for index, function in enumerate(functions))

    def _restricted(self, function: int, level: int, values: Sequence[int]) -> int:
        for offset, value in enumerate(values):
            variable, low, high = self._nodes[function]
            if variable == level + offset:
                function = high if value else low
        return function

    def _node(self, level: int, low: int, high: int) -> int:
        # The two rules that make the diagram canonical: no node whose branches are the same, no node twice. So two
        # outputs that are the same function are the same number, and Golly's tree shares their branches.
        if low == high:
            return low
        key = (level, low, high)
        if key not in self._known:
            if len(self._nodes) >= _MAX_NODES:
                raise too_large("The decision diagram of this circuit", _MAX_NODES)
            self._known[key] = len(self._nodes)
            self._nodes.append(key)
        return self._known[key]

    def _gate(self, gate: int, a: int, b: int) -> int:
        if a <= _TRUE and b <= _TRUE:
            return gate >> (3 - (2 * a + b)) & 1
        key = (gate, a, b)
        if key not in self._done:
            (level_a, *of_a), (level_b, *of_b) = self._nodes[a], self._nodes[b]
            # Split both functions at the variable that comes first in either; one that does not look at it is itself on
            # both sides. Results are kept, so each pair is combined once.
            level = min(level_a, level_b)
            low, high = (
                self._gate(gate, of_a[value] if level_a == level else a, of_b[value] if level_b == level else b)
                for value in (0, 1)
            )
            self._done[key] = self._node(level, low, high)
        return self._done[key]


def too_large(what: str, most: int) -> CircuitError:
    """Return what to say where a rule is too tangled for a tree."""
    return CircuitError(
        f"{what} has more than {most} entries, as its result depends on too many inputs at once: simplify the circuit "
        "(difflogic simplify), or take another format."
    )
