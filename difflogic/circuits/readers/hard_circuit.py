"""HardCircuit JSON, as rplsmn/logicars writes it (github.com/rplsmn/logicars, `src/circuit.rs`).

    {"channels": C,
     "perception": {"channels": C, "kernels": [{"input_size": 9, "layers": [LAYER, ...]}, ...]},
     "update": {"input_size": ..., "output_size": C, "layers": [LAYER, ...]}}
    LAYER = {"gates": [{"op": 0..15, "wire_a": i, "wire_b": j}, ...]}

`op` is the id that is the truth table, wires count the outputs of the layer before, perception reads the patch
row by row, and update reads `[centre] ++ [channel, output, kernel]`: all as here. Its boundary is zero. Sizes that are
written must be those of the layers: a file that contradicts itself is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from difflogic.core import gates, wiring
from difflogic.errors import CircuitError
from difflogic.model.circuit import Array, Circuit

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
        raise CircuitError(f"The file is not a HardCircuit: {error!r:.80} where its parts were expected.") from error
    if type(channels) is not int or not all(kernels) or not kernels or not update:
        raise CircuitError("A HardCircuit needs channels, at least one perception kernel and update layers.")
    if len({tuple(len(wires[0]) for _, wires in kernel) for kernel in kernels}) != 1:
        raise CircuitError("The perception kernels must have layers of the same sizes.")
    _compare_sizes(data, channels, channels * (1 + len(kernels) * len(kernels[0][-1][0])))
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


def _compare_sizes(data: Mapping[str, Any], channels: int, perceived: int) -> None:
    """Raises CircuitError where a size that is written is not the one that the layers have."""
    perception, update = data["perception"], data["update"]
    sizes = [("channels of perception", perception.get("channels", channels), channels)]
    for index, kernel in enumerate(perception["kernels"]):
        sizes.append((f"input_size of kernel {index}", kernel.get("input_size", wiring.PATCH), wiring.PATCH))
    sizes.append(("input_size of update", update.get("input_size", perceived), perceived))
    sizes.append(("output_size of update", update.get("output_size", channels), channels))
    for what, said, found in sizes:
        if type(said) is not int or said != found:
            raise CircuitError(
                f"The HardCircuit contradicts itself: {what} is {said!r:.40}, but its gates make {found}."
            )


def _network(layers: list[dict[str, Any]]) -> list[tuple[Array, Array]]:
    """Logits `[out, 16]` and wires `[2, out]` of each layer."""
    found = []
    for layer in layers:
        rows = [(gate["op"], gate["wire_a"], gate["wire_b"]) for gate in layer["gates"]]
        if not all(type(value) is int for row in rows for value in row) or not rows:
            raise ValueError("gates with op, wire_a and wire_b as whole numbers")
        ops, *wires = np.array(rows, dtype=np.int64).T
        for op in ops[(ops < 0) | (ops >= gates.GATE_COUNT)][:1]:
            raise CircuitError(f"A gate is of unknown type {op}: expected 0 to {gates.GATE_COUNT - 1}.")
        # A decided gate is a circuit with one logit far above the others, so that the paper's count applies to it too.
        logits = np.zeros((len(ops), gates.GATE_COUNT), dtype=np.float32)
        logits[np.arange(len(ops)), ops] = _DECIDED
        found.append((logits, np.stack(wires)))
    return found
