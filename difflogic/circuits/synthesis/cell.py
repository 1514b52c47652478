"""Graph of a cell, on which passes work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from difflogic.circuits.synthesis.convert import to_netlist, to_xag
from difflogic.circuits.synthesis.xag import XAG, embedded, input_literal, narrowed
from difflogic.core import wiring
from difflogic.model.cell_netlist import CellNetlist


def neighbour(channel: int, cell: int, cells: int = wiring.PATCH) -> int:
    """Return the literal of a channel in one of the `cells` of a graph."""
    return input_literal(cells * channel + cell)


@dataclass(frozen=True, eq=False)
class BareGraph:
    """Graph of a function, from the bits of a sample to those of a result."""

    graph: XAG

    @property
    def size(self) -> tuple[int, int]:
        """Number of two-input gates, and of inputs that are read."""
        return len(self.graph.gates), len(self.graph.support(self.graph.outputs))


@dataclass(frozen=True, eq=False)
class Cell(BareGraph):
    """Graph of a cell: of n cells, input `n*i + p` is cell `p` of channel `i`, and output `i` its next bit.

    It has inputs for the neighbourhood alone, since a pass might replace a cell by an equal one beyond it.
    """

    origin: tuple[int, ...]
    """Name of each channel."""
    visible: int
    """Number of visible channels, which come first."""
    cells: tuple[int, ...] = wiring.NEIGHBOURHOODS["moore"]
    """Cells of a patch that the graph has as inputs."""

    @classmethod
    def of(cls, netlist: CellNetlist) -> Cell:
        """Return the cell of a netlist, with constants, pass-throughs and inverters folded."""
        cell = cls(to_xag(netlist), netlist.origin, netlist.visible, wiring.NEIGHBOURHOODS[netlist.neighbourhood])
        if len(cell.cells) == wiring.PATCH:
            return cell
        return replace(cell, graph=narrowed(cell.graph, cell.inputs))

    @property
    def inputs(self) -> list[int]:
        """Input of the netlist for each input of the graph."""
        return [wiring.PATCH * channel + cell for channel in range(len(self.origin)) for cell in self.cells]

    @property
    def size(self) -> tuple[int, int]:
        """Number of two-input gates and of channels."""
        return len(self.graph.gates), len(self.origin)

    def netlist(self, like: CellNetlist) -> CellNetlist:
        """Return the netlist with the boundary and the scenario of `like`."""
        graph = self.graph
        if len(self.cells) < wiring.PATCH:
            graph = embedded(graph, list(map(input_literal, self.inputs)), wiring.PATCH * len(self.origin))
        return to_netlist(graph, replace(like, channels=len(self.origin), origin=self.origin))

    def without_unseen_channels(self) -> Cell:
        """Return the cell with only the channels that the visible ones depend on."""
        seen = self.seen_channels()
        if len(seen) == len(self.origin):
            return self
        graph, cells = self.graph, len(self.cells)
        graph = XAG(graph.inputs, graph.gates, [graph.outputs[channel] for channel in seen])
        graph = narrowed(graph, [cells * channel + cell for channel in seen for cell in range(cells)])
        return replace(self, graph=graph, origin=tuple(self.origin[channel] for channel in seen))

    def seen_channels(self) -> list[int]:
        """Return the visible channels and all that they depend on in any number of steps, ascending."""
        # A closure: if 0 is visible and reads 2, 2 reads itself, and 1 reads all three, it is {0, 2}.
        seen: set[int] = set()
        waiting = set(range(self.visible))
        while waiting:
            channel = waiting.pop()
            seen.add(channel)
            read = self.graph.support([self.graph.outputs[channel]])
            waiting |= {index // len(self.cells) for index in read} - seen
        return sorted(seen)
