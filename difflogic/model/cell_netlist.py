"""Hard circuits as a list of gates in topological order, evaluated on 64 cells at once.

A cell computes on a vector of bits: first its 3x3 patch, `in[channel][patch]` at `9*channel + patch`
(patch index `3*dy + dx`: 0 top-left, 4 the cell itself, 8 bottom-right), then one bit per gate, in order.
A gate reads two earlier bits and is one of the sixteen (`difflogic.core.gates`: the id is the truth table).
The cell's new state is the bits named by `outputs`, one per channel.

Perception gates are listed once per channel, since each is a gate of its own in hardware. Its file is
circuit.json: `difflogic.model.netlist_json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.core import gates, wiring
from difflogic.core.bit_parallel import BitProgram, Index
from difflogic.core.bits import Bits, Words, pack_bits, unpack_bits
from difflogic.errors import CircuitError
from difflogic.model.circuit import Circuit
from difflogic.model.deployment import Scenario
from difflogic.model.layout import flat_layout
from difflogic.system.brief import brief

_CHUNK_BYTES = 1 << 25
"""`evaluate` holds the bits of all gates for so much input at a time: what a cache and a small machine bear."""


@dataclass(frozen=True, eq=False)
class CellNetlist:
    """`gates` uint8 `[n]`; `wires` int32 `[n, 2]` and `outputs` int32 `[C]` index the bits of a cell.

    Build it with `build`, which validates, or from what is valid already.
    """

    channels: int
    periodic: bool
    """Outside the grid a cell reads 0, or the other side of the grid when periodic."""
    gates: Bits
    wires: Index
    outputs: Index
    visible: int
    """The first so many channels are the picture; the others are the automaton's own memory."""
    origin: tuple[int, ...]
    """What each channel was called in the circuit it comes from: `0, 1, ...` unless some were dropped."""
    scenario: Scenario | None = None
    """What it was trained on, where that is known."""

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
    ) -> CellNetlist:
        """A validated netlist; all channels visible, named by number, unless told otherwise. Raises CircuitError."""
        netlist = cls(
            channels=channels,
            periodic=periodic,
            gates=np.asarray(gates, dtype=np.uint8).reshape(-1),
            wires=np.asarray(wires, dtype=np.int32).reshape(-1, 2),
            outputs=np.asarray(outputs, dtype=np.int32).reshape(-1),
            visible=channels if visible is None else visible,
            origin=tuple(range(channels)) if origin is None else tuple(origin),
            scenario=scenario,
        )
        netlist._validate()
        return netlist

    def _validate(self) -> None:
        # What reads only earlier bits can have no cycle, and one walk from first to last evaluates it.
        count = len(self.gates)
        before = self.inputs + np.arange(count)
        if not 1 <= self.visible <= self.channels:
            raise CircuitError(f"A circuit shows 1 to {self.channels} of its channels, not {self.visible}.")
        if len(set(self.origin)) != self.channels or min(self.origin) < 0:
            raise CircuitError(f"{self.channels} channels need as many different names, got {list(self.origin)}.")
        if len(self.wires) != count or (count and self.gates.max() >= gates.GATE_COUNT):
            raise CircuitError(f"{count} gates need two wires each and ids from 0 to {gates.GATE_COUNT - 1}.")
        if (self.wires < 0).any() or (self.wires >= before[:, None]).any():
            raise CircuitError("A gate may read the inputs and earlier gates only.")
        if len(self.outputs) != self.channels:
            raise CircuitError(f"{self.channels} outputs expected, one per channel, {len(self.outputs)} given.")
        if (self.outputs < 0).any() or (self.outputs >= self.inputs + count).any():
            raise CircuitError("An output must be an input or a gate.")

    @classmethod
    def from_circuit(
        cls, circuit: Circuit, visible: int | None = None, scenario: Scenario | None = None
    ) -> CellNetlist:
        """The hard gates of a circuit: the argmax of each gate's logits, ties to the lowest id."""
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
        )

    @classmethod
    def of_run(cls, circuit: Circuit, config: Config) -> CellNetlist:
        """The hard gates of a run's circuit, which shows its task's loss channels and lives on its task's grid."""
        return cls.from_circuit(circuit, config.task.loss_channels, Scenario.of(config))

    @property
    def inputs(self) -> int:
        return wiring.PATCH * self.channels

    @cached_property
    def program(self) -> BitProgram:
        """The gates alone, without their meaning."""
        return BitProgram(self.inputs, self.gates, self.wires)

    def evaluate(self, words: Words) -> Words:
        """The outputs uint64 `[C, N]` for inputs uint64 `[9*C, N]` in the order of the bits, 64 samples per word."""
        # All bits of all gates are held at once, so the samples go through in parts that a cache can bear.
        chunk = max(1, _CHUNK_BYTES // (8 * (self.inputs + len(self.gates))))
        result = np.empty((self.channels, words.shape[1]), dtype=np.uint64)
        for start in range(0, words.shape[1], chunk):
            part = slice(start, start + chunk)
            result[:, part] = self.program.all_bits(words[:, part])[self.outputs]
        return result

    def rollout(self, x: npt.ArrayLike, steps: int) -> Bits:
        """States uint8 `[T+1, B, H, W, C]` from 0/1 grids `x [B, H, W, C]`, every cell updated in each step."""
        states = [np.asarray(x).astype(np.uint8)]
        states.extend(self.steps(states[0], steps))
        return np.stack(states)

    def steps(self, state: Bits, steps: int) -> Iterator[Bits]:
        """The states uint8 `[B, H, W, C]` after 1, 2, ... steps, one at a time."""
        # A cell of every grid is a sample of its own: B grids of H x W cells are B*H*W samples, 64 to a word.
        for _ in range(steps):
            new = self.evaluate(pack_bits(patches(state, self.periodic)))
            shape = state.shape[:3]
            state = unpack_bits(new, int(np.prod(shape))).reshape(-1, *shape).transpose(1, 2, 3, 0)
            yield state

    def bit_name(self, bit: int) -> str:
        """`in[channel][patch]`, the channel by its origin, or `g` and the number of a gate."""
        channel, patch = divmod(bit, wiring.PATCH)
        return f"in[{self.origin[channel]}][{patch}]" if bit < self.inputs else f"g{bit - self.inputs}"


def patches(state: Bits, periodic: bool) -> Bits:
    """`[B, H, W, C]` -> `[9*C, B*H*W]`, the order of `in[channel][patch]`."""
    height, width = state.shape[1:3]
    border = ((0, 0), (1, 1), (1, 1), (0, 0))
    # Nine shifted views of one padded copy: no gather, and the order of the views is that of a patch, row by row.
    padded = np.pad(state, border, mode="wrap" if periodic else "constant")
    views = [padded[:, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return np.stack(views, axis=-1).transpose(3, 4, 0, 1, 2).reshape(wiring.PATCH * state.shape[3], -1)
