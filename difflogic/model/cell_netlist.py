"""Hard circuits of a cell, which compute its next state from its 3x3 patch.

Input `in[channel][patch]` has the number `9*channel + patch` (patch index `3*dy + dx`: 0 top-left, 4 the cell itself, 8
bottom-right). The outputs are the bits of the next state, one per channel. A perception gate is listed once per
channel, since hardware has a separate gate for each. `difflogic.model.netlist_json` defines the file format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.config.dataset import as_bits
from difflogic.config.schema import Config
from difflogic.core import wiring
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.core.neighbourhoods import patches
from difflogic.errors import CircuitError, DataError
from difflogic.model.circuit import Circuit
from difflogic.model.deployment import Scenario
from difflogic.model.layout import flat_layout
from difflogic.model.netlist import Netlist, gate_arrays
from difflogic.model.straight_line import read_inputs
from difflogic.system.brief import brief


@dataclass(frozen=True, eq=False, kw_only=True)
class CellNetlist(Netlist):
    """Hard circuit of a cell, which computes the C bits of its next state from the 9*C bits of its 3x3 patch.

    The file format is circuit.json. `build` and `from_circuit` validate the netlists that they make.

        >>> keep = difflogic.CellNetlist.build(channels=1, periodic=True, gates=[], wires=[], outputs=[4])
        >>> keep.rollout(np.ones((1, 2, 2, 1), np.uint8), steps=3).shape
        (4, 1, 2, 2, 1)
    """

    channels: int
    periodic: bool
    """True if border cells read the opposite side of the grid (a torus); False if they read 0 outside the grid."""
    visible: int
    """Number of visible channels: the first `visible` channels are displayed, and all others are hidden state."""
    origin: tuple[int, ...]
    """Number of each channel in the original circuit: `0, 1, ...` unless some channels were removed."""
    scenario: Scenario | None = None
    """Grid, initial state, number of steps and fire rate that the circuit was trained for; None if unknown."""
    neighbourhood: str = "moore"
    """Key of `wiring.NEIGHBOURHOODS`, which lists the cells of a patch that gates may read."""
    colours: tuple[tuple[int, int, int], ...] = ()
    """RGB colour of each visible state, indexed by the number whose bits are the visible channels; may be empty."""

    kind, buses = "cell", ("patch", "result")
    __repr__ = brief

    @classmethod
    def build(
        cls,
        channels: int,
        periodic: bool,
        gates: npt.ArrayLike,
        wires: npt.ArrayLike,
        outputs: npt.ArrayLike,
        visible: int | None = None,
        origin: Sequence[int] | None = None,
        scenario: Scenario | None = None,
        neighbourhood: str = "moore",
        colours: Sequence[Sequence[int]] = (),
    ) -> CellNetlist:
        """Make a netlist from arrays, and validate it.

        Args:
            channels: Number of channels of a cell, C.
            periodic: True for a torus; False if border cells read 0 outside the grid.
            gates: Gate ids (truth tables), ints `[n]` from 0 to 15.
            wires: Numbers of the two bits that each gate reads, ints `[n, 2]`. The 9*C inputs are numbered first (by
                channel, then patch index), then the gates.
            outputs: Number of the bit that becomes the next value of each channel, ints `[C]`.
            visible: Number of visible channels, counted from the first; None for all.
            origin: Number of each channel in the original circuit; None for `0, 1, ...`.
            scenario: Grid, initial state, steps and fire rate that the circuit was trained for; None if unknown.
            neighbourhood: Name of the neighbourhood: `moore`, `von-neumann`, `hex` or `line`.
            colours: Red, green and blue of each visible state, from 0 to 255.

        Returns:
            The netlist.

        Raises:
            CircuitError: A value is out of range, or a gate reads itself or a later gate.
        """
        netlist = cls(
            channels=channels,
            periodic=periodic,
            visible=channels if visible is None else visible,
            origin=tuple(range(channels)) if origin is None else tuple(origin),
            scenario=scenario,
            neighbourhood=neighbourhood,
            colours=tuple((red, green, blue) for red, green, blue in colours),
            **gate_arrays(gates, wires, outputs),
        )
        netlist.validate()
        return netlist

    def validate(self) -> None:
        if not 1 <= self.visible <= self.channels:
            raise CircuitError(f"visible must be 1 to {self.channels}, the number of channels, got {self.visible}.")
        if len(set(self.origin)) != self.channels or min(self.origin) < 0:
            raise CircuitError(
                f"origin must be {self.channels} different integers >= 0, one per channel, got {list(self.origin)}."
            )
        if self.colours and not (self.visible <= 8 and len(self.colours) <= 1 << self.visible):
            raise CircuitError(
                f"Expected at most 2^{self.visible} colours, or none above 8 visible channels, got {len(self.colours)}."
            )
        if not all(0 <= value <= 255 for colour in self.colours for value in colour):
            raise CircuitError("colours must be red, green and blue values from 0 to 255.")
        super().validate()
        if len(self.outputs) != self.channels:
            raise CircuitError(f"Expected {self.channels} outputs, one per channel, got {len(self.outputs)}.")
        if self.neighbourhood != "moore":
            wiring.check_within(self.neighbourhood, {bit % wiring.PATCH for bit in read_inputs(self)})

    @cached_property
    def input_names(self) -> Sequence[str]:
        return tuple(f"in[{channel}][{patch}]" for channel in self.origin for patch in range(wiring.PATCH))

    @cached_property
    def output_names(self) -> Sequence[str]:
        return tuple(f"out[{channel}]" for channel in self.origin)

    @cached_property
    def palette(self) -> npt.NDArray[np.uint8]:
        """RGB colours of all visible states, uint8 `[n, 3]`, padded with black; empty if `colours` is empty."""
        colours = np.array(self.colours, dtype=np.uint8).reshape(-1, 3)
        return np.pad(colours, ((0, (1 << self.visible) - len(colours)), (0, 0))) if self.colours else colours

    @property
    def shown(self) -> Sequence[str]:
        return self.output_names[: self.visible]

    @classmethod
    def from_circuit(
        cls, circuit: Circuit, visible: int | None = None, scenario: Scenario | None = None
    ) -> CellNetlist:
        """Discretise a circuit: replace each gate by its most probable function (the first one if several are equal).

        Args:
            circuit: Soft gates and their wiring.
            visible: Number of visible channels, counted from the first; None for all.
            scenario: Grid, initial state, steps and fire rate that the circuit was trained for; None if unknown.

        Returns:
            A netlist with all gates of the circuit.

        Raises:
            CircuitError: The circuit is feed-forward.
        """
        circuit.require_automaton()
        circuit = circuit.chosen
        layout = flat_layout(circuit)
        # `argmax` takes the first of equal logits, as the hard evaluation of every engine does.
        hard = circuit.flat_logits().argmax(axis=1).astype(np.uint8)
        return cls.build(
            channels=circuit.channels,
            periodic=circuit.periodic,
            # A perception gate is listed once per channel: hardware has a separate gate for each.
            gates=hard[layout.instance_gates],
            wires=layout.wires,
            outputs=np.arange(layout.nodes - circuit.channels, layout.nodes),
            visible=visible,
            scenario=scenario,
            neighbourhood=circuit.neighbourhood,
        )

    @classmethod
    def of_run(cls, circuit: Circuit, config: Config) -> CellNetlist:
        """Discretise the circuit of a training run; the visible channels are the task's loss channels."""
        return cls.from_circuit(circuit, config.task.loss_channels, Scenario.of(config))

    def rollout(self, x: npt.ArrayLike, steps: int) -> Bits:
        """Run the automaton synchronously: every step updates every cell.

        Args:
            x: Initial states, `[B, H, W, C]` of 0 and 1, or one state, `[H, W, C]`. The last axis may be omitted if the
                netlist has one channel.
            steps: Number of steps, T.

        Returns:
            The initial state and the state after each step, uint8 `[T+1, ...]`, each in the shape of `x`.

        Raises:
            DataError: `x` has an invalid shape, or values other than 0 and 1.
        """
        bits = as_bits("x", x)
        has_channels = bits.shape[-1:] == (self.channels,) and bits.ndim > 2
        grids = bits if has_channels or self.channels > 1 else bits[..., None]
        if grids.ndim not in (3, 4) or grids.shape[-1] != self.channels:
            expected = f"[B, H, W, {self.channels}] or [H, W, {self.channels}]"
            raise DataError(f"x must have shape {expected}, got {list(bits.shape)}.")
        states = [grids if grids.ndim == 4 else grids[None]]
        states.extend(self.steps(states[0], steps))
        return np.stack(states).reshape(len(states), *bits.shape)

    def steps(self, state: Bits, steps: int, fires: npt.NDArray[Any] | None = None) -> Iterator[Bits]:
        """Yield the state, uint8 `[B, H, W, C]`, after each of `steps` steps.

        Only cells with a nonzero entry in `fires`, `[T, H, W, 1]` or `[T, B, H, W, 1]`, are updated; None updates all.
        """
        # Every cell is a sample: B grids of H x W cells are B*H*W samples, 64 per word.
        shape = state.shape[:3]
        for step in range(steps):
            new = unpack_bits(self.evaluate(pack_bits(patches(state, self.periodic))), int(np.prod(shape)))
            new = new.reshape(-1, *shape).transpose(1, 2, 3, 0)
            state = new if fires is None else np.where(fires[step] != 0, new, state)
            yield state

    def after(self, grid: Bits, steps: int, fires: npt.NDArray[Any] | None = None) -> Bits:
        """Return the state `[H, W, C]` of one grid after `steps` steps, which may be 0; `fires` is as in `steps`."""
        for [state] in self.steps(grid[None], steps, fires):
            grid = state
        return grid
