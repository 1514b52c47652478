"""The order of gates: each after those that it reads."""

from __future__ import annotations

from collections.abc import Sequence

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
    order = _sorted(inputs, wires)
    if len(order) < len(wires):
        raise CircuitError(f"The circuit has a cycle through the gate {_on_cycle(inputs, wires, order, names)!r}.")
    place = list(range(inputs)) + [0] * len(wires)
    for index, gate in enumerate(order):
        place[inputs + gate] = inputs + index
    moved = [(place[wires[gate][0]], place[wires[gate][1]]) for gate in order]
    return order, moved, [place[output] for output in outputs]


def _sorted(inputs: int, wires: Sequence[Wire]) -> list[int]:
    """The gates that can be ordered (Kahn's algorithm); those on a cycle, and behind one, are missing."""
    readers: list[list[int]] = [[] for _ in wires]
    waits = [0] * len(wires)
    for gate, pair in enumerate(wires):
        for bit in pair:
            if bit >= inputs:
                readers[bit - inputs].append(gate)
                waits[gate] += 1
    order = [gate for gate, count in enumerate(waits) if not count]
    # A gate joins the list when the last of what it waits for was ordered; the list grows while it is walked.
    for gate in order:
        for reader in readers[gate]:
            waits[reader] -= 1
            if not waits[reader]:
                order.append(reader)
    return order


def _on_cycle(inputs: int, wires: Sequence[Wire], order: Sequence[int], names: Sequence[str]) -> str:
    """The name of a gate on a cycle: back from any gate left over, always to one that is left over too."""
    # Whatever was left over waits for something left over: walking back so never ends, and so meets itself.
    done = set(order)
    gate = next(gate for gate in range(len(wires)) if gate not in done)
    seen = set()
    while gate not in seen:
        seen.add(gate)
        gate = next(bit - inputs for bit in wires[gate] if bit >= inputs and bit - inputs not in done)
    return names[gate]
