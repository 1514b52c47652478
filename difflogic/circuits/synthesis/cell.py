"""Graphs of an automaton's cell or of a function, which simplification passes transform."""

from __future__ import annotations

from dataclasses import dataclass, replace

from difflogic.circuits.synthesis.convert import to_netlist, to_xag
from difflogic.circuits.synthesis.xag import XAG, embedded, input_literal, narrowed
from difflogic.core import wiring
from difflogic.model.cell_netlist import CellNetlist


def neighbour(channel: int, cell: int, cells: int = wiring.PATCH) -> int:
    """Return the graph's input literal for `channel` of cell number `cell` in a neighbourhood of `cells` cells."""
    return input_literal(cells * channel + cell)


@dataclass(frozen=True, eq=False)
class BareGraph:
    """Graph of a function from the bits of a sample to the bits of a result."""

    graph: XAG

    @property
    def size(self) -> tuple[int, int]:
        """Number of two-input gates, and number of inputs that affect an output."""
        return len(self.graph.gates), len(self.graph.support(self.graph.outputs))


@dataclass(frozen=True, eq=False)
class Cell(BareGraph):
    """Graph of a cell that reads n cells: input `n*i + p` is channel i of cell p, output i the channel's next value.

    Only cells in the neighbourhood are inputs, so that no pass can make a gate read a cell outside it.
    """

    origin: tuple[int, ...]
    """Number of each channel in the original circuit."""
    visible: int
    """Number of visible channels, which come first."""
    cells: tuple[int, ...] = wiring.NEIGHBOURHOODS["moore"]
    """Positions in the 3x3 patch of the cells that are inputs."""

    @classmethod
    def of(cls, netlist: CellNetlist) -> Cell:
        """Return the graph of a netlist's cell, with constants, pass-throughs and inverters folded."""
        cell = cls(to_xag(netlist), netlist.origin, netlist.visible, wiring.NEIGHBOURHOODS[netlist.neighbourhood])
        if len(cell.cells) == wiring.PATCH:
            return cell
        return replace(cell, graph=narrowed(cell.graph, cell.inputs))

    @property
    def inputs(self) -> list[int]:
        """Index of the netlist input that corresponds to each graph input."""
        return [wiring.PATCH * channel + cell for channel in range(len(self.origin)) for cell in self.cells]

    @property
    def size(self) -> tuple[int, int]:
        """Number of two-input gates, and number of channels."""
        return len(self.graph.gates), len(self.origin)

    def netlist(self, like: CellNetlist) -> CellNetlist:
        """Return the cell as a netlist with the boundary and all other properties of `like`."""
        graph = self.graph
        if len(self.cells) < wiring.PATCH:
            graph = embedded(graph, list(map(input_literal, self.inputs)), wiring.PATCH * len(self.origin))
        return to_netlist(graph, replace(like, channels=len(self.origin), origin=self.origin))

    def without_unseen_channels(self) -> Cell:
        """Return the cell without channels that do not affect the visible ones in any step."""
        seen = self.seen_channels()
        if len(seen) == len(self.origin):
            return self
        graph, cells = self.graph, len(self.cells)
        graph = XAG(graph.inputs, graph.gates, [graph.outputs[channel] for channel in seen])
        graph = narrowed(graph, [cells * channel + cell for channel in seen for cell in range(cells)])
        return replace(self, graph=graph, origin=tuple(self.origin[channel] for channel in seen))

    def seen_channels(self) -> list[int]:
        """Return in ascending order the visible channels and all channels that affect them in any number of steps."""
        # Example: if channel 0 is visible and reads 2, 2 reads itself, and 1 reads all three, the result is [0, 2].
        seen: set[int] = set()
        waiting = set(range(self.visible))
        while waiting:
            channel = waiting.pop()
            seen.add(channel)
            read = self.graph.support([self.graph.outputs[channel]])
            waiting |= {index // len(self.cells) for index in read} - seen
        return sorted(seen)
