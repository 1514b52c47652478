"""Two circuits side by side on the same inputs, to ask whether they ever differ."""

from __future__ import annotations

from dataclasses import dataclass

from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, mapped
from difflogic.core import wiring
from difflogic.errors import CircuitError
from difflogic.model.netlist import Netlist


@dataclass(frozen=True, eq=False)
class Miter:
    """`joint` holds the gates of both, those of equal structure once; its outputs are those of the one for each of
    `channels`, then those of the other.
    """

    joint: XAG
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
        literals = graph.on_same_inputs()
        builder.copy(graph, graph.nodes, literals)
        outputs += [mapped(output, literals) for output in graph.outputs]
    return Miter(builder.finish(outputs), names, tuple(channels))


def _graph(netlist: Netlist, places: dict[int, int], channels: list[int]) -> XAG:
    """The needed gates over the inputs of both, with the outputs of the common channels."""
    graph = to_xag(netlist)
    builder = Builder(wiring.PATCH * len(places), share=False)
    literals = [FALSE] * graph.size
    for index, name in enumerate(netlist.origin):
        for patch in range(wiring.PATCH):
            literals[1 + wiring.PATCH * index + patch] = 2 * (1 + wiring.PATCH * places[name] + patch)
    outputs = [graph.outputs[netlist.origin.index(name)] for name in channels]
    builder.copy(graph, graph.fanin_cone(output >> 1 for output in outputs), literals)
    return builder.finish(mapped(output, literals) for output in outputs)
