"""Two circuits side by side on the same inputs, to ask whether they ever differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.xag import XAG, Builder, input_literal
from difflogic.core import wiring
from difflogic.errors import CircuitError
from difflogic.model.cell_netlist import CellNetlist


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

    def inputs_of(self, netlist: CellNetlist) -> list[int]:
        """The literals in `joint` of the inputs of one of the two."""
        return _inputs_of(netlist, self.names)


def _inputs_of(netlist: CellNetlist, names: Sequence[str]) -> list[int]:
    literals = {name: input_literal(index) for index, name in enumerate(names)}
    return [literals[netlist.bit_name(bit)] for bit in range(netlist.inputs)]


def make_miter(one: CellNetlist, other: CellNetlist) -> Miter:
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
    # One builder for both, which shares equal gates: what passes left alone becomes one node, and needs no proof. Of
    # circuits with the channels 0, 1, 2 and 0, 2 the inputs are those of 0, 1 and 2; if the smaller one is right
    # whatever channel 1 is, channel 1 did not matter.
    builder = Builder(len(names))
    outputs: list[int] = []
    for netlist in (one, other):
        graph = to_xag(netlist)
        common = [graph.outputs[netlist.origin.index(name)] for name in channels]
        outputs += builder.embed(graph, _inputs_of(netlist, names), common)
    return Miter(builder.finish(outputs), names, tuple(channels))
