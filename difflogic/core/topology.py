"""Sort the gates of a circuit topologically."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from difflogic.errors import CircuitError

Wire = tuple[int, int]


def topological_sort(
    inputs: int, wires: Sequence[Wire], outputs: Sequence[int], names: Sequence[str]
) -> tuple[list[int], list[Wire], list[int]]:
    """Return the gates in topological order, and the wires and outputs renumbered in this order, inputs before gates.

    Gates that are already sorted keep their order. Raises CircuitError, which names a gate, if there is a cycle.
    """
    # This is the usual case: circuits written by difflogic are sorted, and must remain identical byte for byte.
    if all(a < inputs + index and b < inputs + index for index, (a, b) in enumerate(wires)):
        return list(range(len(wires))), list(wires), list(outputs)
    # All gates are added before their wires, so that gates that become ready together stay in order.
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
    sorted_wires = [(place[wires[gate][0]], place[wires[gate][1]]) for gate in order]
    return order, sorted_wires, [place[output] for output in outputs]
