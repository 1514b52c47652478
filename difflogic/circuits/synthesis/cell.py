"""A cell as a graph: what passes work on between the netlist that is given and the smaller one that is returned."""

from __future__ import annotations

from dataclasses import dataclass, replace

from difflogic.circuits.synthesis.convert import to_netlist, to_xag
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, input_literal
from difflogic.core import wiring
from difflogic.model.cell_netlist import CellNetlist


def neighbour(channel: int, patch: int) -> int:
    """The literal of a cell of the neighbourhood, `patch` 0 to 8, in a channel."""
    return input_literal(wiring.PATCH * channel + patch)


@dataclass(frozen=True, eq=False)
class Cell:
    """A graph and what its ends mean: input `9*i + p` is cell `p` of channel `i`, and output `i` its next value."""

    graph: XAG
    origin: tuple[int, ...]
    """What each channel is called."""
    visible: int
    """The first so many channels are the picture."""

    @classmethod
    def of(cls, netlist: CellNetlist) -> Cell:
        """The cell of a netlist: constants, pass-throughs and inverters are folded, gates that nothing reads stay."""
        return cls(to_xag(netlist), netlist.origin, netlist.visible)

    @property
    def size(self) -> tuple[int, int]:
        """Two-input gates, which are all that a graph is made of, and channels."""
        return len(self.graph.gates), len(self.origin)

    def netlist(self, like: CellNetlist) -> CellNetlist:
        """The gates as a netlist with the boundary and the scenario of `like`."""
        return to_netlist(self.graph, replace(like, channels=len(self.origin), origin=self.origin))

    def without_unseen_channels(self) -> Cell:
        """The same picture in every step from every start, in the channels alone that it ever depends on."""
        kept = self.seen_channels()
        if len(kept) == len(self.origin):
            return self
        # What is kept reads no dropped channel, so that FALSE stands for an input that nothing asks for.
        inputs = [FALSE] * self.graph.inputs
        for new, old in enumerate(kept):
            for patch in range(wiring.PATCH):
                inputs[wiring.PATCH * old + patch] = neighbour(new, patch)
        builder = Builder(wiring.PATCH * len(kept), share=False)
        outputs = builder.embed(self.graph, inputs, [self.graph.outputs[channel] for channel in kept])
        return replace(self, graph=builder.finish(outputs), origin=tuple(self.origin[channel] for channel in kept))

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
            waiting |= {index // wiring.PATCH for index in read} - found
        return sorted(found)
