"""The gates of a circuit, layer by layer: what they are, and how sure of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from difflogic.core import gates
from difflogic.model.circuit import NETWORKS, Circuit

DECIDED = 0.9
"""A gate is decided where one of the sixteen has at least this probability."""
CERTAIN = 0.99
"""The probability that a gate is given where it is decided for good."""
WIRE_GATES = (gates.NAMES.index("A"), gates.NAMES.index("B"))
"""Gates that only pass an input on: the others are the active ones."""


def active_gates(logits: npt.NDArray[np.floating]) -> int:
    """Return how many gates of `logits [G, 16]` compute something: argmax neither A nor B."""
    return int((~np.isin(logits.argmax(axis=1), WIRE_GATES)).sum())


def undecided_gates(logits: npt.NDArray[np.floating]) -> int:
    """Return how many gates of `logits [G, 16]` have no gate with a probability of DECIDED."""
    # The largest logit becomes exp(0) = 1, so its probability is 1 over the sum of the row.
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return int((1 / exponentials.sum(axis=1) < DECIDED).sum())


def decided(circuit: Circuit) -> Circuit:
    """The circuit with its undecided gates nearly certain to be what they most probably were; hard it is the same."""
    logits = circuit.flat_logits()
    found, best = logits.copy(), logits.argmax(axis=1)
    rows = np.arange(len(logits))
    # For a probability p the logit must lie log(p / (1 - p)) above the log of the others' sum of exponentials.
    others = np.where(np.arange(logits.shape[1]) == best[:, None], -np.inf, logits)
    rest = np.logaddexp.reduce(others, axis=1)
    found[rows, best] = np.maximum(logits[rows, best], rest + np.log(CERTAIN / (1 - CERTAIN)))
    return circuit.with_logits(found)


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
            # The logits of K kernels count K times, since each kernel has its own.
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
