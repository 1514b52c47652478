"""Hard circuits as a list of gates, and their file `circuit.json`.

A cell computes on a vector of bits: first its 3x3 patch, `in[channel][patch]` at `9*channel + patch`
(patch index `3*dy + dx`: 0 top-left, 4 the cell itself, 8 bottom-right), then one bit per gate, in order.
A gate reads two earlier bits and is one of the sixteen (`difflogic.gates`: the id is the truth table).
The cell's new state is the bits named by `outputs`, one per channel.

circuit.json, version 1:

    {"format": "difflogic-circuit", "version": 1, "difflogic": "0.1.0",
     "channels": C, "periodic": false,            outside the grid: 0, or wrapped when periodic
     "gates": [{"id": "g0", "gate": 1, "name": "AND", "a": "in[0][3]", "b": "in[0][4]"}, ...],
     "outputs": ["g17", ...]}                     one per channel; a gate or an input

`gate` decides; `name` is for people. Perception gates are listed once per channel, since each is a gate
of its own in hardware.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import difflogic
from difflogic import gates, wiring
from difflogic.circuit import Circuit
from difflogic.errors import CircuitError
from difflogic.layout import flat_layout

FORMAT = "difflogic-circuit"
VERSION = 1

Bits = npt.NDArray[np.uint8]

_INPUT = re.compile(r"in\[(\d+)\]\[([0-8])\]")
_GATE = re.compile(r"g(\d+)")


@dataclass(frozen=True, eq=False)
class Netlist:
    """`gates` uint8 `[n]`; `wires` int64 `[n, 2]` and `outputs` int64 `[C]` index the bits of a cell."""

    channels: int
    periodic: bool
    gates: Bits
    wires: npt.NDArray[np.int64]
    outputs: npt.NDArray[np.int64]

    @classmethod
    def from_circuit(cls, circuit: Circuit) -> Netlist:
        """The hard gates of a circuit: the argmax of each gate's logits, ties to the lowest id."""
        layout = flat_layout(circuit)
        hard = circuit.flat_logits().argmax(axis=1).astype(np.uint8)
        return cls(
            channels=circuit.channels,
            periodic=circuit.periodic,
            gates=hard[layout.instance_gates],
            wires=layout.wires.astype(np.int64),
            outputs=np.arange(layout.nodes - circuit.channels, layout.nodes),
        )

    def rollout(self, x: npt.ArrayLike, steps: int) -> Bits:
        """States uint8 `[T+1, B, H, W, C]` from 0/1 grids `x [B, H, W, C]`, every cell updated in each step."""
        states = [np.asarray(x).astype(np.uint8)]
        for _ in range(steps):
            states.append(self._step(states[-1]))
        return np.stack(states)

    def _step(self, state: Bits) -> Bits:
        bits: list[Bits] = list(_patches(state, self.periodic))
        for gate, (a, b) in zip(self.gates, self.wires, strict=True):
            truth = gates.TRUTH[gate].astype(np.uint8)
            bits.append(truth[2 * bits[a] + bits[b]])
        return np.stack([bits[output] for output in self.outputs], axis=-1)

    def to_json(self) -> str:
        """The text of circuit.json, one gate per line."""
        head = {"format": FORMAT, "version": VERSION, "difflogic": difflogic.__version__}
        head |= {"channels": self.channels, "periodic": self.periodic}
        rows = ",\n".join(json.dumps(self._row(index)) for index in range(len(self.gates)))
        outputs = json.dumps([self._bit_name(int(output)) for output in self.outputs])
        return f'{json.dumps(head)[:-1]},\n"gates": [\n{rows}\n],\n"outputs": {outputs}}}\n'

    def _row(self, index: int) -> dict[str, Any]:
        gate = int(self.gates[index])
        a, b = (self._bit_name(int(bit)) for bit in self.wires[index])
        return {"id": f"g{index}", "gate": gate, "name": gates.NAMES[gate], "a": a, "b": b}

    def _bit_name(self, bit: int) -> str:
        inputs = wiring.PATCH * self.channels
        return f"in[{bit // wiring.PATCH}][{bit % wiring.PATCH}]" if bit < inputs else f"g{bit - inputs}"

    @classmethod
    def from_json(cls, text: str) -> Netlist:
        """The inverse of `to_json`. Raises CircuitError where the text is not such a circuit."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT or data["version"] != VERSION:
                raise CircuitError(
                    f"Expected {FORMAT} version {VERSION}, got {data['format']} version {data['version']}, "
                    f"written by difflogic {data.get('difflogic', 'of unknown version')}."
                )
            return cls._from_data(data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CircuitError(f"The text is not a circuit of format {FORMAT}: {error!r}.") from error

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> Netlist:
        channels = int(data["channels"])
        wires = []
        for index, row in enumerate(data["gates"]):
            if row["id"] != f"g{index}" or row["gate"] not in range(gates.GATE_COUNT):
                raise ValueError(f"gate {index} is {row}")
            wires.append([_bit(row[side], channels, index) for side in ("a", "b")])
        outputs = [_bit(name, channels, len(wires)) for name in data["outputs"]]
        if len(outputs) != channels:
            raise ValueError(f"{channels} outputs expected, {len(outputs)} given")
        return cls(
            channels=channels,
            periodic=bool(data["periodic"]),
            gates=np.array([row["gate"] for row in data["gates"]], dtype=np.uint8),
            wires=np.array(wires, dtype=np.int64).reshape(-1, 2),
            outputs=np.array(outputs, dtype=np.int64),
        )

    @classmethod
    def load(cls, path: Path) -> Netlist:
        """Read a circuit.json. Raises CircuitError."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise CircuitError(f"Cannot read the circuit {path}: {error}.") from error


def _bit(name: str, channels: int, before: int) -> int:
    """The index of a bit by name; a gate must come before gate `before`."""
    inputs = wiring.PATCH * channels
    if match := _INPUT.fullmatch(name):
        bit = wiring.PATCH * int(match[1]) + int(match[2])
        known = bit < inputs
    elif match := _GATE.fullmatch(name):
        bit = inputs + int(match[1])
        known = int(match[1]) < before
    else:
        known = False
    if not known:
        raise ValueError(f"{name!r} is neither an input nor an earlier gate")
    return bit


def _patches(state: Bits, periodic: bool) -> Bits:
    """`[B, H, W, C]` -> `[9*C, B, H, W]`, the order of `in[channel][patch]`."""
    height, width = state.shape[1:3]
    border = ((0, 0), (1, 1), (1, 1), (0, 0))
    padded = np.pad(state, border, mode="wrap" if periodic else "constant")
    views = [padded[:, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return np.stack(views, axis=-1).transpose(3, 4, 0, 1, 2).reshape(-1, *state.shape[:3])
