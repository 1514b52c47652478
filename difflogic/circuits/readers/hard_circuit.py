"""HardCircuit JSON, as rplsmn/logicars writes it (github.com/rplsmn/logicars, `src/circuit.rs`).

    {"channels": C,
     "perception": {"channels": C, "kernels": [{"input_size": 9, "layers": [LAYER, ...]}, ...]},
     "update": {"input_size": ..., "output_size": C, "layers": [LAYER, ...]}}
    LAYER = {"gates": [{"op": 0..15, "wire_a": i, "wire_b": j}, ...]}

`op` is the id that is the truth table, wires count the outputs of the layer before, perception reads the patch
row by row, and update reads `[centre] ++ [channel, output, kernel]`: all as here. Its boundary is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from difflogic import gates
from difflogic.circuit import Array, Circuit
from difflogic.errors import CircuitError

KEYS = {"perception", "update"}
"""What such a file has at its top, among others."""

_DECIDED = 10.0


def from_data(data: Mapping[str, Any]) -> Circuit:
    """The circuit, each gate decided. Raises CircuitError."""
    try:
        kernels = [_network(kernel["layers"]) for kernel in data["perception"]["kernels"]]
        update = _network(data["update"]["layers"])
        channels = data["channels"]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CircuitError(f"The file is not a HardCircuit: {error!r} where its parts were expected.") from error
    if type(channels) is not int or not kernels or not update:
        raise CircuitError("A HardCircuit needs channels, at least one perception kernel and update layers.")
    if len({tuple(len(wires[0]) for _, wires in kernel) for kernel in kernels}) != 1:
        raise CircuitError("The perception kernels must have layers of the same sizes.")
    perceive = list(zip(*kernels, strict=True))
    return Circuit.from_arrays(
        logits={
            "perceive": [np.stack([logits for logits, _ in layer]) for layer in perceive],
            "update": [logits for logits, _ in update],
        },
        wires={
            "perceive": [np.stack([wires for _, wires in layer]) for layer in perceive],
            "update": [wires for _, wires in update],
        },
        channels=channels,
    )


def _network(layers: list[dict[str, Any]]) -> list[tuple[Array, Array]]:
    """Logits `[out, 16]` and wires `[2, out]` of each layer."""
    found = []
    for layer in layers:
        rows = [(gate["op"], gate["wire_a"], gate["wire_b"]) for gate in layer["gates"]]
        if not all(type(value) is int for row in rows for value in row) or not rows:
            raise ValueError("gates with op, wire_a and wire_b as whole numbers")
        ops, *wires = np.array(rows, dtype=np.int64).T
        if ops.min() < 0 or ops.max() >= gates.GATE_COUNT:
            raise CircuitError(f"A gate is of unknown type {ops.max()}: expected 0 to {gates.GATE_COUNT - 1}.")
        logits = np.zeros((len(ops), gates.GATE_COUNT), dtype=np.float32)
        logits[np.arange(len(ops)), ops] = _DECIDED
        found.append((logits, np.stack(wires)))
    return found
