"""Miters: two circuits on common inputs as one graph, to decide if they ever differ."""

from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.xag import XAG, Builder, input_literal
from difflogic.errors import CircuitError
from difflogic.model.netlist import Netlist


@dataclass(frozen=True, eq=False)
class Miter:
    """Graph of two circuits on common inputs; its outputs are those of the first circuit, then those of the second."""

    joint: XAG
    names: tuple[str, ...]
    """Names of the inputs of `joint`: all inputs of both circuits."""
    outputs: tuple[str, ...]
    """Names of the outputs that both circuits have, which are compared."""

    def pairs(self) -> list[tuple[str, int, int]]:
        """Return the name of each common output and its literal in either circuit."""
        count = len(self.outputs)
        literals = self.joint.outputs
        return list(zip(self.outputs, literals[:count], literals[count:], strict=True))


def inputs_of(netlist: Netlist, names: Sequence[str]) -> list[int]:
    """Return the literals of a netlist's inputs in a graph whose inputs are named `names`."""
    literals = {name: input_literal(index) for index, name in enumerate(names)}
    return [literals[name] for name in netlist.input_names]


def make_miter(one: Netlist, other: Netlist) -> Miter:
    """Return the miter of two circuits, matched by names. Raises CircuitError if names of visible outputs differ."""
    if one.shown != other.shown:
        raise CircuitError(
            f"Expected two circuits with the same visible outputs, got {', '.join(one.shown)} and "
            f"{', '.join(other.shown)}."
        )
    common = set(other.output_names)
    outputs = tuple(name for name in one.output_names if name in common)
    names = tuple(dict.fromkeys((*one.input_names, *other.input_names)))
    # The circuits share a builder, which merges equal gates without a proof. The miter has the inputs of both circuits:
    # a circuit with channels 0, 1, 2 equals one with 0, 2 if they agree for all values of channel 1.
    builder = Builder(len(names))
    literals: list[int] = []
    for netlist in (one, other):
        graph = to_xag(netlist)
        literal = dict(zip(netlist.output_names, graph.outputs, strict=True))
        literals += builder.embed(graph, inputs_of(netlist, names), [literal[name] for name in outputs])
    return Miter(builder.finish(literals), names, outputs)
