"""The gates of a circuit, layer by layer: what they are, and how sure of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from difflogic import gates
from difflogic.circuit import NETWORKS, Circuit
from difflogic.train.summary import active_gates, undecided_gates


@dataclass(frozen=True)
class Layer:
    """The gates of one layer. A perception gate counts once per perception kernel, not once per channel."""

    name: str
    """`update 3`, counted from 0."""
    gates: int
    active: int
    """Whose most probable gate is neither A nor B."""
    undecided: int
    """Where none of the sixteen has a probability of 0.9."""
    kinds: tuple[int, ...]
    """How many are each of the sixteen."""


def census(circuit: Circuit) -> tuple[Layer, ...]:
    """Every layer, perception first."""
    layers = []
    for network in NETWORKS:
        for index, logits in enumerate(circuit.logits[network]):
            flat = logits.reshape(-1, gates.GATE_COUNT)
            kinds = np.bincount(flat.argmax(axis=1), minlength=gates.GATE_COUNT)
            layers.append(
                Layer(
                    name=f"{network} {index}",
                    gates=len(flat),
                    active=active_gates(flat),
                    undecided=undecided_gates(flat),
                    kinds=tuple(kinds.tolist()),
                )
            )
    return tuple(layers)
