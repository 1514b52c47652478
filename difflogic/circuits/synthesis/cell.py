"""A cell as a graph: what passes work on between the netlist that is given and the smaller one that is returned."""

from __future__ import annotations

from dataclasses import dataclass, replace

from difflogic.circuits.synthesis.convert import to_netlist, to_xag
from difflogic.circuits.synthesis.xag import XAG, embedded, input_literal, narrowed
from difflogic.core import wiring
from difflogic.model.cell_netlist import CellNetlist


def neighbour(channel: int, cell: int, cells: int = wiring.PATCH) -> int:
    """The literal of a channel in one of the cells, so many, that a graph knows."""
    return input_literal(cells * channel + cell)


@dataclass(frozen=True, eq=False)
class BareGraph:
    """A graph whose ends are what they are: of a function, from a sample's bits to a result's."""

    graph: XAG

    @property
    def size(self) -> tuple[int, int]:
        """Two-input gates, which are all that a graph is made of, and inputs that are read."""
        return len(self.graph.gates), len(self.graph.support(self.graph.outputs))


@dataclass(frozen=True, eq=False)
class Cell(BareGraph):
    """A graph and what its ends mean: of n cells, input `n*i + p` is cell `p` of channel `i`, output `i` its next bit.

    The graph knows the cells of the neighbourhood alone, so that no pass can make it read another. It would: on the
    rollouts of a task, and always on a line, some cell beyond it is what one of its own is.
    """

    origin: tuple[int, ...]
    """What each channel is called."""
    visible: int
    """The first so many channels are the picture."""
    cells: tuple[int, ...] = wiring.NEIGHBOURHOODS["moore"]
    """Of a patch, those that the graph knows."""

    @classmethod
    def of(cls, netlist: CellNetlist) -> Cell:
        """The cell of a netlist: constants, pass-throughs and inverters are folded.

        Gates that nothing reads stay, where the neighbourhood is the whole patch.
        """
        cell = cls(to_xag(netlist), netlist.origin, netlist.visible, wiring.NEIGHBOURHOODS[netlist.neighbourhood])
        if len(cell.cells) == wiring.PATCH:
            return cell
        # Nothing reads the corners of a smaller neighbourhood.
        return replace(cell, graph=narrowed(cell.graph, cell.inputs))

    @property
    def inputs(self) -> list[int]:
        """The netlist input that each input of the graph stands for."""
        return [wiring.PATCH * channel + cell for channel in range(len(self.origin)) for cell in self.cells]

    @property
    def size(self) -> tuple[int, int]:
        """Two-input gates and channels."""
        return len(self.graph.gates), len(self.origin)

    def netlist(self, like: CellNetlist) -> CellNetlist:
        """The gates as a netlist with the boundary and the scenario of `like`."""
        graph = self.graph
        if len(self.cells) < wiring.PATCH:
            graph = embedded(graph, list(map(input_literal, self.inputs)), wiring.PATCH * len(self.origin))
        return to_netlist(graph, replace(like, channels=len(self.origin), origin=self.origin))

    def without_unseen_channels(self) -> Cell:
        """Return the cell with only the channels that the picture ever depends on; the picture stays the same."""
        kept = self.seen_channels()
        if len(kept) == len(self.origin):
            return self
        graph, cells = self.graph, len(self.cells)
        graph = XAG(graph.inputs, graph.gates, [graph.outputs[channel] for channel in kept])
        graph = narrowed(graph, [cells * channel + cell for channel in kept for cell in range(cells)])
        return replace(self, graph=graph, origin=tuple(self.origin[channel] for channel in kept))

    def seen_channels(self) -> list[int]:
        """The visible channels and all that they depend on in any number of steps, ascending."""
        # One step reads some channels, whose next values read more, and so on: a closure. Of channels 0, 1 and 2, of
        # which 0 is shown and reads 2, 2 reads itself, and 1 reads all three, it is {0, 2}: whatever 1 becomes, it
        # never reaches the picture.
        found: set[int] = set()
        waiting = set(range(self.visible))
        while waiting:
            channel = waiting.pop()
            found.add(channel)
            read = self.graph.support([self.graph.outputs[channel]])
            waiting |= {index // len(self.cells) for index in read} - found
        return sorted(found)
