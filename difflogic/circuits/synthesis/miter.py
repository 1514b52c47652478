"""Two circuits side by side on the same inputs, to ask whether they ever differ."""

from __future__ import annotations

from dataclasses import dataclass

from difflogic import wiring
from difflogic.circuits.convert import to_graph
from difflogic.circuits.graph import FALSE, Builder, Graph
from difflogic.errors import CircuitError
from difflogic.netlist import Netlist


@dataclass(frozen=True, eq=False)
class Miter:
    """`joint` holds the gates of both, those of equal structure once; its outputs are those of the one for each of
    `channels`, then those of the other.
    """

    joint: Graph
    names: tuple[str, ...]
    """Of the inputs."""
    channels: tuple[int, ...]
    """Names of the channels that both have."""

    def pairs(self) -> list[tuple[int, int, int]]:
        """Each channel with its two literals in `joint`."""
        count = len(self.channels)
        outputs = self.joint.outputs
        return list(zip(self.channels, outputs[:count], outputs[count:], strict=True))


def make_miter(one: Netlist, other: Netlist) -> Miter:
    """The two beside each other, matched by the names of their channels.

    Raises CircuitError where one lacks a visible channel of the other.
    """
    if one.origin[: one.visible] != other.origin[: other.visible]:
        raise CircuitError(
            f"The two circuits show different channels, {list(one.origin[: one.visible])} and "
            f"{list(other.origin[: other.visible])}: there is nothing to compare."
        )
    channels = [name for name in one.origin if name in set(other.origin)]
    every = sorted(set(one.origin) | set(other.origin))
    names = tuple(f"in[{name}][{patch}]" for name in every for patch in range(wiring.PATCH))
    places = {name: index for index, name in enumerate(every)}
    graphs = [_graph(netlist, places, channels) for netlist in (one, other)]
    builder = Builder(len(names))
    outputs: list[int] = []
    for graph in graphs:
        literals = [2 * node if node < graph.first else FALSE for node in range(graph.size)]
        for node, gate in enumerate(graph.gates, graph.first):
            literals[node] = builder.copy(gate, literals[gate.a >> 1], literals[gate.b >> 1])
        outputs += [literals[output >> 1] ^ (output & 1) for output in graph.outputs]
    return Miter(builder.finish(outputs), names, tuple(channels))


def _graph(netlist: Netlist, places: dict[int, int], channels: list[int]) -> Graph:
    """The needed gates over the inputs of both, with the outputs of the common channels."""
    graph = to_graph(netlist)
    builder = Builder(wiring.PATCH * len(places), share=False)
    literals = {FALSE: FALSE}
    for index, name in enumerate(netlist.origin):
        for patch in range(wiring.PATCH):
            literals[1 + wiring.PATCH * index + patch] = 2 * (1 + wiring.PATCH * places[name] + patch)
    outputs = [graph.outputs[netlist.origin.index(name)] for name in channels]
    for node in graph.cone(output >> 1 for output in outputs):
        gate = graph.gates[node - graph.first]
        literals[node] = builder.copy(gate, literals[gate.a >> 1], literals[gate.b >> 1])
    return builder.finish(literals[output >> 1] ^ (output & 1) for output in outputs)
