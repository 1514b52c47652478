"""The cell of an automaton as gates: what it becomes, from its 3x3 patch.

Its inputs are `in[channel][patch]` at `9*channel + patch` (patch index `3*dy + dx`: 0 top-left, 4 the cell itself, 8
bottom-right). The cell's new state is the outputs, one per channel.

Perception gates are listed once per channel, since each is a gate of its own in hardware. Its file is
circuit.json: `difflogic.model.netlist_json`.
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
    """A discrete circuit of a cell: gates from the 9*C bits of a 3x3 patch to the C bits of the cell.

    `circuit.json` holds one. Make it with `build` or `from_circuit`, which check it.

        >>> keep = difflogic.CellNetlist.build(channels=1, periodic=True, gates=[], wires=[], outputs=[4])
        >>> keep.rollout(np.ones((1, 2, 2, 1), np.uint8), steps=3).shape
        (4, 1, 2, 2, 1)
    """

    channels: int
    periodic: bool
    """Outside the grid a cell reads 0, or the other side of the grid when periodic."""
    visible: int
    """The first so many channels are the picture; the others are the automaton's own memory."""
    origin: tuple[int, ...]
    """What each channel was called in the circuit it comes from: `0, 1, ...` unless some were dropped."""
    scenario: Scenario | None = None
    """What it was trained on, where that is known."""
    neighbourhood: str = "moore"
    """Of `wiring.NEIGHBOURHOODS`: it reads no other cells of a patch."""
    colours: tuple[tuple[int, int, int], ...] = ()
    """Red, green and blue of each state, the visible channels as a number, if a rule names them."""

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
        """A checked netlist.

        Args:
            channels: Bits of a cell, C.
            periodic: Whether the grid is a torus. Else there is 0 outside it.
            gates: Truth tables, ints `[n]` from 0 to 15.
            wires: Which two bits each gate reads, ints `[n, 2]`: first the 9*C inputs (channel, then place), then the
                gates.
            outputs: Which bit each channel becomes, ints `[C]`.
            visible: The first so many channels are the picture; None: all.
            origin: What each channel was called before others were dropped; None: its number.
            scenario: What it was trained on, if that is known.
            neighbourhood: `moore`, `von-neumann`, `hex` or `line`.
            colours: Red, green and blue of each state, 0 to 255.

        Returns:
            The netlist.

        Raises:
            CircuitError: A number is out of range, or a gate reads one that comes later.
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
            raise CircuitError(f"visible must be 1 to {self.channels}, the circuit's channels, got {self.visible}.")
        if len(set(self.origin)) != self.channels or min(self.origin) < 0:
            raise CircuitError(
                f"origin must give the {self.channels} channels different numbers from 0 on, got {list(self.origin)}."
            )
        if self.colours and not (self.visible <= 8 and len(self.colours) <= 1 << self.visible):
            raise CircuitError(f"{self.visible} visible channels have no {len(self.colours)} states with colours.")
        if not all(0 <= value <= 255 for colour in self.colours for value in colour):
            raise CircuitError("colours must be red, green and blue from 0 to 255.")
        super().validate()
        if len(self.outputs) != self.channels:
            raise CircuitError(f"{self.channels} outputs expected, one per channel, {len(self.outputs)} given.")
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
        """Return the colours of all codes of the visible channels, black if none is known, uint8 `[n, 3]`."""
        known = np.array(self.colours, dtype=np.uint8).reshape(-1, 3)
        return np.pad(known, ((0, (1 << self.visible) - len(known)), (0, 0))) if self.colours else known

    @property
    def shown(self) -> Sequence[str]:
        return self.output_names[: self.visible]

    @classmethod
    def from_circuit(
        cls, circuit: Circuit, visible: int | None = None, scenario: Scenario | None = None
    ) -> CellNetlist:
        """The discrete gates of a circuit: of each the function with the largest logit, of equals the one with the
        lowest id.

        Args:
            circuit: Soft gates and their wiring.
            visible: The first so many channels are the picture; None: all.
            scenario: What it was trained on, if that is known.

        Returns:
            A netlist with every gate of the circuit.
        """
        circuit.require_automaton()
        circuit = circuit.chosen
        layout = flat_layout(circuit)
        # `argmax` takes the first of equals, which is what every engine's hard evaluation does too.
        hard = circuit.flat_logits().argmax(axis=1).astype(np.uint8)
        return cls.build(
            channels=circuit.channels,
            periodic=circuit.periodic,
            # A perception gate stands here once for each channel: in hardware each is a gate of its own.
            gates=hard[layout.instance_gates],
            wires=layout.wires,
            outputs=np.arange(layout.nodes - circuit.channels, layout.nodes),
            visible=visible,
            scenario=scenario,
            neighbourhood=circuit.neighbourhood,
        )

    @classmethod
    def of_run(cls, circuit: Circuit, config: Config) -> CellNetlist:
        """The hard gates of a run's circuit, which shows its task's loss channels and lives on its task's grid."""
        return cls.from_circuit(circuit, config.task.loss_channels, Scenario.of(config))

    def rollout(self, x: npt.ArrayLike, steps: int) -> Bits:
        """Run the netlist, with every cell updated in each step.

        Args:
            x: Initial states of 0 and 1, `[B, H, W, C]`, or one of them, `[H, W, C]`. With one channel, its axis may be
                left out.
            steps: The number of steps, T.

        Returns:
            The states uint8 `[T+1, ...]`, the initial one included, each of the shape of `x`.

        Raises:
            DataError: `x` has another shape, or other values.
        """
        bits = as_bits("x", x)
        has_channels = bits.shape[-1:] == (self.channels,) and bits.ndim > 2
        grids = bits if has_channels or self.channels > 1 else bits[..., None]
        if grids.ndim not in (3, 4) or grids.shape[-1] != self.channels:
            expected = f"[B, H, W, {self.channels}] or [H, W, {self.channels}]"
            raise DataError(f"x must be grids {expected}, got {list(bits.shape)}.")
        states = [grids if grids.ndim == 4 else grids[None]]
        states.extend(self.steps(states[0], steps))
        return np.stack(states).reshape(len(states), *bits.shape)

    def steps(self, state: Bits, steps: int, fires: npt.NDArray[Any] | None = None) -> Iterator[Bits]:
        """The states uint8 `[B, H, W, C]` after 1, 2, ... steps, one at a time.

        A cell takes its new state where `fires`, `[T, H, W, 1]` or for each grid its own, is not 0; without it always.
        """
        # A cell of every grid is a sample of its own: B grids of H x W cells are B*H*W samples, 64 to a word.
        shape = state.shape[:3]
        for step in range(steps):
            new = unpack_bits(self.evaluate(pack_bits(patches(state, self.periodic))), int(np.prod(shape)))
            new = new.reshape(-1, *shape).transpose(1, 2, 3, 0)
            state = new if fires is None else np.where(fires[step] != 0, new, state)
            yield state

    def after(self, grid: Bits, steps: int, fires: npt.NDArray[Any] | None = None) -> Bits:
        """The state `[H, W, C]` of one grid after so many steps, which may be none."""
        for [state] in self.steps(grid[None], steps, fires):
            grid = state
        return grid
