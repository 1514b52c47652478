"""Windows: a few gates of a large graph, taken out, made smaller and put back.

A window is a set of gates, the nodes that they read (its leaves, few), and those of its gates that others read
(its roots). No leaf may depend on a gate of the window, through others either: then whatever computes the same
roots from the same leaves may take its place, and exhaustion over the leaves, over those of their patterns that
occur, proves it.

In y = (a AND b) XOR c, z = (a AND b) OR d the window of all three gates has the leaves a, b, c, d and the roots y and
z; the AND is inner, for nothing else reads it. Were d itself computed from y, the window would be refused: what
replaces it could make y from d, and d from y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from difflogic.circuits.synthesis.dont_care import DontCares
from difflogic.circuits.synthesis.truth_tables import SampleTables
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, Interrupted, input_literal, mapped, rebuilt


class Size(NamedTuple):
    """How large a window may be."""

    leaves: int
    gates: int


SIZES = (Size(6, 30), Size(8, 40), Size(10, 60))
"""From small to large: what small windows find costs less, and leaves more to the large ones. A window of the largest
has 1024 samples, and a replacement takes milliseconds."""


@dataclass(frozen=True)
class Window:
    """Nodes of a graph, ascending."""

    leaves: list[int]
    gates: list[int]
    roots: list[int]

    def cut_out(self, graph: XAG) -> XAG:
        """The window as a graph of its own: leaves are its inputs, roots its outputs."""
        builder = Builder(len(self.leaves))
        literals = [FALSE] * graph.size
        for index, leaf in enumerate(self.leaves):
            literals[leaf] = input_literal(index)
        builder.copy(graph, self.gates, literals)
        return builder.finish(literals[root] for root in self.roots)


def by_windows(
    graph: XAG, improve: Callable[[XAG, SampleTables | None], XAG], dont_cares: DontCares, size: Size
) -> XAG:
    """The graph after one pass of `improve` over windows that cover its gates; it never grows. Raises Interrupted.

    `improve` gets a window, and the patterns of its inputs that occur, None where all do.
    """
    before = rebuilt(graph)
    graph = before
    readers = _readers(graph)
    waiting = list(range(graph.first, graph.size))
    covered: set[int] = set()
    try:
        while waiting:
            pivot = waiting.pop()
            if pivot in covered:
                continue
            # From the outputs backward, each gate not yet in a window is the pivot of one.
            window = _window(graph, readers, pivot, size)
            covered.add(pivot)
            if window is None:
                continue
            covered.update(window.gates)
            part = window.cut_out(graph)
            # A window with its truth table and don't-cares, where p = x AND y and q = x OR y are made elsewhere:
            #     the gates    n1 = p XOR q, n2 = n1 OR p         leaves p, q      root n2, as nothing else reads n1
            #     the table    q p = 00: 0, 01: -, 10: 1, 11: 1   the pattern p = 1, q = 0 never occurs
            #     care alone   n2 is 0, 1, 1 where q is 0, 1, 1   so the root becomes q, and both gates go.
            smaller = improve(part, dont_cares.patterns(graph, window.leaves))
            if len(smaller.gates) < len(part.gates):
                # Putting it back numbers the nodes anew; what is covered and what waits is carried over by literals.
                graph, literals = _put_back(graph, window, smaller)
                readers = _readers(graph)
                covered = {literals[node] >> 1 for node in covered}
                waiting = sorted({literals[node] >> 1 for node in waiting} - set(range(graph.first)))
    except KeyboardInterrupt as error:
        # Each window was proved as it was put back, so the graph is right at every moment, and what was reached is
        # kept.
        raise Interrupted(rebuilt(graph)) from error
    graph = rebuilt(graph)
    return graph if len(graph.gates) <= len(before.gates) else before


def _readers(graph: XAG) -> list[list[int]]:
    """The gates that read each node."""
    readers: list[list[int]] = [[] for _ in range(graph.size)]
    for node, (_, a, b) in enumerate(graph.gates, graph.first):
        readers[a >> 1].append(node)
        readers[b >> 1].append(node)
    return readers


def _reads(graph: XAG, node: int) -> tuple[int, int]:
    _, a, b = graph.gates[node - graph.first]
    return a >> 1, b >> 1


def _window(graph: XAG, readers: list[list[int]], pivot: int, size: Size) -> Window | None:
    """A window around `pivot`: backward while the leaves stay few, then whatever reads nothing else."""
    # A cut of the graph below the pivot. Taking in a leaf makes its two inputs leaves in its place: one leaf more,
    # none, or one less where both are leaves already. The cheapest leaf is always next.
    inside, leaves = {pivot}, set(_reads(graph, pivot))
    while len(inside) < size.gates and (leaf := _cheapest(graph, leaves, size.leaves)) is not None:
        leaves.remove(leaf)
        inside.add(leaf)
        leaves.update(read for read in _reads(graph, leaf) if read not in inside)
    # A gate that reads the window alone costs no leaf, and may turn a root into an inner gate, which is free to go.
    _take_in_readers(graph, readers, inside, leaves, size.gates)
    if len(inside) < 2 or _is_read_by_a_leaf(graph, inside, leaves):
        return None
    gates = sorted(inside)
    # A gate is a root where somebody outside reads it, or an output. Only roots have to be made again.
    inner = {node: sum(reader in inside for reader in readers[node]) for node in gates}
    roots = [node for node in gates if graph.fanouts[node] > inner[node]]
    return Window(sorted(leaves), gates, roots)


def _cheapest(graph: XAG, leaves: set[int], most: int) -> int | None:
    """The leaf that brings the fewest new leaves when it is taken in; the latest of them."""
    choices = []
    for leaf in leaves:
        if leaf >= graph.first:
            new = sum(read not in leaves for read in _reads(graph, leaf)) - 1
            if len(leaves) + new <= most:
                choices.append((new, -leaf))
    return -min(choices)[1] if choices else None


def _take_in_readers(graph: XAG, readers: list[list[int]], inside: set[int], leaves: set[int], most: int) -> None:
    # In this direction, from inputs to outputs: whatever reads nothing but what is known becomes known itself.
    known = inside | leaves
    waiting = sorted(known)
    while waiting and len(inside) < most:
        for reader in readers[waiting.pop()]:
            if reader not in known and all(read in known for read in _reads(graph, reader)):
                known.add(reader)
                inside.add(reader)
                waiting.append(reader)


def _is_read_by_a_leaf(graph: XAG, inside: set[int], leaves: set[int]) -> bool:
    """Whether a leaf depends on a gate of the window."""
    # In the order of the nodes, what depends on the window is known when the node is reached. After the last leaf
    # nothing needs to be looked at.
    behind = set(inside)
    for node in range(min(inside) + 1, max(leaves) + 1):
        if node not in behind and any(read in behind for read in _reads(graph, node)):
            if node in leaves:
                return True
            behind.add(node)
    return False


def _put_back(graph: XAG, window: Window, part: XAG) -> tuple[XAG, list[int]]:
    """The graph with `part` in the window's place, and the new literal of each old node, FALSE for those gone."""
    builder = Builder(graph.inputs)
    literals = graph.on_same_inputs()
    # The new gates may read their leaves only after these are built, and what reads the roots comes after both: so all
    # that depends on the window is built last.
    behind = set(window.gates)
    later = []
    for node, gate in enumerate(graph.gates, graph.first):
        if node in behind:
            continue
        if gate.a >> 1 in behind or gate.b >> 1 in behind:
            behind.add(node)
            later.append(node)
        else:
            builder.copy(graph, [node], literals)
    outputs = builder.embed(part, [literals[leaf] for leaf in window.leaves])
    for root, output in zip(window.roots, outputs, strict=True):
        literals[root] = output
    builder.copy(graph, later, literals)
    return builder.finish(mapped(output, literals) for output in graph.outputs), literals
