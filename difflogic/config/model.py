"""`[model]`: the shape of the circuit."""

from __future__ import annotations

from difflogic.config.fields import Section, field, require, require_ascending, section, shown
from difflogic.config.limits import WIDTH, one_of
from difflogic.core import wiring


@section
class NetworkConfig(Section):
    """A stack of gate layers: `widths[0]` inputs, then one layer per further width."""

    widths: tuple[int, ...] = field("Number of inputs, then of the gates of each layer")
    connections: tuple[str, ...] = field(f"How each layer is wired, one word a layer: {', '.join(wiring.SCHEMES)}")

    def __post_init__(self) -> None:
        require(len(self.widths) >= 2, f"widths needs inputs and at least one layer, got {list(self.widths)}.")
        for width in self.widths:
            require(WIDTH.holds(width), f"each of widths must be {WIDTH.words}, got {shown(width)}.")
        require(
            len(self.connections) == len(self.widths) - 1,
            f"connections needs one scheme per layer: {len(self.widths) - 1} expected, {len(self.connections)} given.",
        )
        for scheme in self.connections:
            require(
                scheme in wiring.SCHEMES,
                f"Unknown connections {scheme!r}: expected one of {', '.join(wiring.SCHEMES)}.",
            )

    @property
    def gates(self) -> int:
        return sum(self.widths[1:])


@section
class ModelConfig(Section):
    """`[model]` is the circuit's shape: C channels, K perception kernels, perception and update networks."""

    channels: int = field("Bits of a cell, C", WIDTH)
    kernels: int = field("Perception kernels, K: each reads the 3x3 patch of every channel", WIDTH)
    perceive: NetworkConfig = field("A perception kernel: from the 9 cells of a patch to its outputs")
    update: NetworkConfig = field(
        "From the cell and all perception outputs, C + C * outputs * K, to the cell's new C bits"
    )
    periodic: bool = field("Whether the grid is a torus; else there is 0 outside it", default=False)
    wiring_per_kernel: bool = field(
        "Whether each perception kernel has its own wiring; in the paper they share one", default=False
    )
    all_round: bool = field(
        "Whether the first outputs of the first four kernels begin with a diagonal neighbour each, the second one "
        "with one at a side too, by OR, and half of the channels lead signals straight on, so that they get "
        "everywhere; needs wiring_per_kernel",
        default=False,
    )
    input_wise: bool = field(
        "Whether a gate learns four numbers, one for each row of its truth table, whose sums its sixteen logits are; "
        "in the paper each logit is learned by itself",
        default=False,
    )
    neighbourhood: str = field(
        "Which cells of the 3x3 patch perception reads, beside the cell itself: moore: all eight; von-neumann: the "
        "four at its sides; hex: six, all but top right and bottom left; line: left and right, where a grid may be "
        "one row",
        one_of(tuple(wiring.NEIGHBOURHOODS)),
        default="moore",
    )
    held: tuple[int, ...] = field(
        "Channels that keep what they begin with, counted from 0: what is written there asks for a picture; their "
        "gates are not learned",
        default=(),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # The ends of both networks follow from the grid and the channels; only what lies between is free.
        first, last = self.perceive.widths[0], self.perceive.widths[-1]
        require(first == wiring.PATCH, f"perception reads a 3x3 patch: widths must begin with 9, got {first}.")
        inputs = self.channels + self.channels * last * self.kernels
        require(
            self.update.widths[0] == inputs,
            f"the update network reads the cell and every perception output: its widths must begin with {inputs}, "
            f"got {self.update.widths[0]}.",
        )
        require(
            self.update.widths[-1] == self.channels,
            f"the update network's output is the new cell: its widths must end with {self.channels}, "
            f"got {self.update.widths[-1]}.",
        )
        require_ascending("held", self.held, 0, self.channels - 1, "channels")
        require(
            len(self.held) < min(self.update.widths[1:]),
            f"each layer of the update network needs more gates than channels are held, {len(self.held)}, got "
            f"{list(self.update.widths[1:])}.",
        )
        if self.all_round:
            require(self.wiring_per_kernel, "all_round needs wiring_per_kernel: each kernel begins with its own cells.")
            require(
                self.kernels >= wiring.ALL_ROUND_KERNELS,
                f"all_round needs {wiring.ALL_ROUND_KERNELS} kernels or more, got {self.kernels}.",
            )
            # Its wires are swapped in the first layer, which must have each neighbour, and a gate of a later one
            # becomes an OR: there must be a later one.
            schemes = self.perceive.connections
            require(
                schemes[0] == "first_kernel" and len(schemes) > 1,
                "all_round needs first_kernel and a further layer as the connections of perception, "
                f"got {list(schemes)}.",
            )

    @property
    def gates(self) -> int:
        return self.kernels * self.perceive.gates + self.update.gates

    @property
    def instances(self) -> int:
        """Gate evaluations for one cell and step: a perception gate counts once per channel."""
        return self.channels * self.kernels * self.perceive.gates + self.update.gates
