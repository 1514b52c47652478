"""Channels that the picture never depends on, now or in any later step, are dropped."""

from __future__ import annotations

from dataclasses import replace

from difflogic.circuits.synthesis.convert import to_netlist, to_xag
from difflogic.circuits.synthesis.xag import FALSE, Builder, mapped
from difflogic.core import wiring
from difflogic.model.netlist import Netlist


def read_channels(netlist: Netlist) -> list[set[int]]:
    """For each channel the channels that its next state depends on, by structure."""
    graph = to_xag(netlist)
    supports = (graph.supports[output >> 1] for output in graph.outputs)
    return [{bit // wiring.PATCH for bit in range(graph.inputs) if support >> bit & 1} for support in supports]


def closure(netlist: Netlist) -> list[int]:
    """The visible channels and all that they depend on in any number of steps, ascending."""
    reads = read_channels(netlist)
    found: set[int] = set()
    waiting = set(range(netlist.visible))
    while waiting:
        channel = waiting.pop()
        found.add(channel)
        waiting |= reads[channel] - found
    return sorted(found)


def without_unseen_channels(netlist: Netlist) -> Netlist:
    """The same picture in every step from every start, in the channels of the closure alone."""
    kept = closure(netlist)
    if len(kept) == netlist.channels:
        return netlist
    graph = to_xag(netlist)
    builder = Builder(wiring.PATCH * len(kept), share=False)
    literals = [FALSE] * graph.size
    for new, old in enumerate(kept):
        for patch in range(wiring.PATCH):
            literals[1 + wiring.PATCH * old + patch] = 2 * (1 + wiring.PATCH * new + patch)
    outputs = [graph.outputs[channel] for channel in kept]
    builder.copy(graph, graph.fanin_cone(output >> 1 for output in outputs), literals)
    fewer = builder.finish(mapped(output, literals) for output in outputs)
    origin = tuple(netlist.origin[channel] for channel in kept)
    return to_netlist(fewer, replace(netlist, channels=len(kept), origin=origin))
