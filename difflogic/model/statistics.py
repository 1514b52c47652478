"""The gates of a circuit, layer by layer: what they are, and how sure of it."""

from dataclasses import dataclass, replace

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


def undecided_gates(logits: npt.NDArray[np.floating], wires: npt.NDArray[np.floating] | None = None) -> int:
    """Return the number of gates of which no function, or no candidate of a wire, has a probability of DECIDED.

    `logits` are `[G, 16]`, those of candidates `wires [G, 2, k]`.
    """
    is_undecided = _most(logits) < DECIDED
    return int((is_undecided if wires is None else is_undecided | (_most(wires) < DECIDED).any(axis=1)).sum())


def _most(logits: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The largest probability of each row of logits `[..., n]`."""
    # The largest logit becomes exp(0) = 1, so its probability is 1 over the sum of the row.
    return np.asarray(1 / np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(axis=-1))


def decided(circuit: Circuit) -> Circuit:
    """The circuit with its undecided gates nearly certain to be what they most probably were; hard it is the same."""
    wires = None if circuit.wire_logits is None else _certain(circuit.wire_logits)
    return replace(circuit.with_gate_logits(_certain(circuit.gate_logits)), wire_logits=wires)


def _certain(logits: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Logits `[..., n]` of which the largest has at least the probability CERTAIN."""
    # For a probability p the logit must lie log(p / (1 - p)) above the log of the others' sum of exponentials.
    is_best = np.arange(logits.shape[-1]) == logits.argmax(axis=-1, keepdims=True)
    rest = np.logaddexp.reduce(np.where(is_best, -np.inf, logits), axis=-1, keepdims=True)
    return np.where(is_best, np.maximum(logits, rest + np.log(CERTAIN / (1 - CERTAIN))), logits).astype(logits.dtype)


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
