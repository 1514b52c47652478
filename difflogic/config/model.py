"""`[model]`: the shape of the circuit."""

from typing import Any

from difflogic.config.fields import Section, field, require, require_ascending, section, shown
from difflogic.config.limits import WIDTH, one_of
from difflogic.core import wiring


@section
class NetworkConfig(Section):
    """Stack of gate layers: `widths[0]` inputs, then one layer per further width."""

    widths: tuple[int, ...] = field("Number of inputs, followed by the number of gates in each layer")
    connections: tuple[str, ...] = field(f"How each layer is wired, one word per layer: {', '.join(wiring.SCHEMES)}")

    def __post_init__(self) -> None:
        require(len(self.widths) >= 2, f"widths needs inputs and one or more layers of gates, got {list(self.widths)}.")
        for width in self.widths:
            require(WIDTH.holds(width), f"each of widths must be {WIDTH.words}, got {shown(width)}.")
        require(
            len(self.connections) == len(self.widths) - 1,
            f"connections must have a scheme per layer: expected {len(self.widths) - 1}, got {len(self.connections)}.",
        )
        for scheme in self.connections:
            expected = f"expected one of {', '.join(wiring.SCHEMES)}"
            require(scheme in wiring.SCHEMES, f"Unknown connections {scheme!r}: {expected}.")

    @property
    def gates(self) -> int:
        return sum(self.widths[1:])


@section
class ModelConfig(Section):
    """`[model]`: the circuit's shape."""

    channels: int = field("Bits of a cell, C", WIDTH)
    kernels: int = field("Number of perception kernels, K; each reads the 3x3 patch of every channel", WIDTH)
    perceive: NetworkConfig = field("Network of a perception kernel: from a patch of 9 cells to the kernel's outputs")
    update: NetworkConfig = field("Network from a cell's C bits and its perception outputs to the cell's new bits")
    periodic: bool = field("Whether the grid is a torus; if not, cells outside the grid are 0", default=False)
    wiring_per_kernel: bool = field("Whether each kernel has its own wiring, unlike the paper", default=False)
    all_round: bool = field(
        "Whether signals reach every cell at the beginning: the first four kernels together read all neighbours, and "
        "half of the channels pass signals straight on; requires wiring_per_kernel",
        default=False,
    )
    input_wise: bool = field(
        "Whether each gate learns one number per row of its truth table instead of 16 logits; the paper learns logits",
        default=False,
    )
    neighbourhood: str = field(
        "Neighbours of a cell that perception reads. moore: all eight; von-neumann: the four at its sides; "
        "hex: all but top right and bottom left; line: left and right, on a grid that may have a single row",
        one_of(tuple(wiring.NEIGHBOURHOODS)),
        default="moore",
    )
    candidates: int = field(
        "Number of candidate wires for each gate input; trained logits choose one of them; 1: fixed wiring",
        one_of(wiring.CANDIDATES),
        default=1,
    )
    held: tuple[int, ...] = field(
        "Fixed (conditioning) channels, counted from 0: they keep their initial values, and their gates do not learn",
        default=(),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Input and output widths of both networks follow from the 3x3 patch and the channels.
        first, last = self.perceive.widths[0], self.perceive.widths[-1]
        require(first == wiring.PATCH, f"perception reads a 3x3 patch: widths must begin with 9, got {first}.")
        inputs, outputs = self.channels + self.channels * last * self.kernels, self.update.widths[-1]
        require(
            self.update.widths[0] == inputs,
            f"the update network reads the cell and every perception output: its widths must begin with {inputs}, "
            f"got {self.update.widths[0]}.",
        )
        require(
            outputs == self.channels,
            f"the update network's output is the new cell: its widths must end with {self.channels}, got {outputs}.",
        )
        require_ascending("held", self.held, 0, self.channels - 1, "channels")
        require(
            len(self.held) < min(self.update.widths[1:]),
            f"each layer of the update network must have more gates than there are fixed channels, {len(self.held)}, "
            f"got {list(self.update.widths[1:])}.",
        )
        if self.all_round:
            require(self.wiring_per_kernel, "all_round needs wiring_per_kernel, as kernels read different cells.")
            least = wiring.ALL_ROUND_KERNELS
            require(self.kernels >= least, f"all_round needs {least} kernels or more, got {self.kernels}.")
            # The first layer must read each neighbour, and a gate of a later layer becomes an OR.
            schemes = self.perceive.connections
            require(
                schemes[0] == "first_kernel" and len(schemes) > 1,
                "all_round needs at least two layers of perception, the first with connections first_kernel, "
                f"got {list(schemes)}.",
            )

    @property
    def gates(self) -> int:
        return self.kernels * self.perceive.gates + self.update.gates

    @property
    def instances(self) -> int:
        """Number of gate evaluations per cell and CA step; a perception gate counts once per channel."""
        return self.channels * self.kernels * self.perceive.gates + self.update.gates


def layered(
    channels: int, kernels: int, perceive: tuple[int, ...], hidden: tuple[int, ...], **others: Any
) -> ModelConfig:
    """Return the shape of a circuit with the wiring of the authors' notebook.

    Args:
        channels: Number of bits per cell, C.
        kernels: Number of perception kernels, K, whose first layer pairs the centre with each neighbour.
        perceive: Widths of a perception kernel: 9 inputs, then the number of gates per layer.
        hidden: Number of gates of each layer of the update network except the last.
        others: Further fields of the model.
    """
    update = (channels + channels * perceive[-1] * kernels, *hidden, channels)
    networks = (
        NetworkConfig(perceive, ("first_kernel", *("unique",) * (len(perceive) - 2))),
        NetworkConfig(update, ("unique",) * (len(update) - 1)),
    )
    return ModelConfig(channels, kernels, *networks, **others)
