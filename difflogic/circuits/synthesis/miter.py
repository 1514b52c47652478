"""Two circuits side by side on the same inputs, to ask whether they ever differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.xag import XAG, Builder, input_literal
from difflogic.errors import CircuitError
from difflogic.model.netlist import Netlist


@dataclass(frozen=True, eq=False)
class Miter:
    """`joint` holds the gates of both, those of equal structure once; its outputs are those of the one for each of
    `outputs`, then those of the other.
    """

    joint: XAG
    names: tuple[str, ...]
    """Of the inputs."""
    outputs: tuple[str, ...]
    """Names of those that both have."""

    def pairs(self) -> list[tuple[str, int, int]]:
        """Each output with its two literals in `joint`."""
        count = len(self.outputs)
        literals = self.joint.outputs
        return list(zip(self.outputs, literals[:count], literals[count:], strict=True))


def inputs_of(netlist: Netlist, names: Sequence[str]) -> list[int]:
    """The literals of a netlist's inputs, in a graph whose inputs have these names."""
    literals = {name: input_literal(index) for index, name in enumerate(names)}
    return [literals[name] for name in netlist.input_names]


def make_miter(one: Netlist, other: Netlist) -> Miter:
    """The two beside each other, matched by the names of their inputs and outputs.

    Raises CircuitError where one lacks an output that the other is for.
    """
    if one.shown != other.shown:
        raise CircuitError(
            f"The two circuits show different outputs, {', '.join(one.shown)} and {', '.join(other.shown)}: there is "
            "nothing to compare."
        )
    common = set(other.output_names)
    outputs = tuple(name for name in one.output_names if name in common)
    names = tuple(dict.fromkeys((*one.input_names, *other.input_names)))
    # One builder for both, which shares equal gates: what passes left alone becomes one node, and needs no proof. Of
    # circuits with the channels 0, 1, 2 and 0, 2 the inputs are those of 0, 1 and 2; if the smaller one is right
    # whatever channel 1 is, channel 1 did not matter.
    builder = Builder(len(names))
    literals: list[int] = []
    for netlist in (one, other):
        graph = to_xag(netlist)
        literal = dict(zip(netlist.output_names, graph.outputs, strict=True))
        literals += builder.embed(graph, inputs_of(netlist, names), [literal[name] for name in outputs])
    return Miter(builder.finish(literals), names, outputs)
