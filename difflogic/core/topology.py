"""The order of gates: each after those that it reads."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from difflogic.errors import CircuitError

Wire = tuple[int, int]


def topological_sort(
    inputs: int, wires: Sequence[Wire], outputs: Sequence[int], names: Sequence[str]
) -> tuple[list[int], list[Wire], list[int]]:
    """The gates' order, and wires and outputs renumbered to it; bits are the inputs, then the gates.

    Gates that are in order already stay as they are. Raises CircuitError where there is a cycle.
    """
    # What we wrote ourselves is in order: it must come out as it was, byte for byte, and is by far the usual case.
    if all(a < inputs + index and b < inputs + index for index, (a, b) in enumerate(wires)):
        return list(range(len(wires))), list(wires), list(outputs)
    # All gates are named before what they read: of those that are ready together, the earlier one then comes first.
    sorter = TopologicalSorter(dict.fromkeys(range(len(wires)), ()))
    for gate, pair in enumerate(wires):
        sorter.add(gate, *(bit - inputs for bit in pair if bit >= inputs))
    try:
        order = list(sorter.static_order())
    except CycleError as error:
        raise CircuitError(f"The circuit has a cycle through the gate {names[error.args[1][0]]!r}.") from error
    place = list(range(inputs)) + [0] * len(wires)
    for index, gate in enumerate(order):
        place[inputs + gate] = inputs + index
    moved = [(place[wires[gate][0]], place[wires[gate][1]]) for gate in order]
    return order, moved, [place[output] for output in outputs]
