"""Count the gates of each layer of a circuit: all, active and unconverged gates, and gates per function."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from difflogic.core import gates
from difflogic.model.circuit import NETWORKS, Circuit

DECIDED = 0.9
"""Minimum probability that a converged gate gives to its most probable function."""
CERTAIN = 0.99
"""Minimum probability of each gate's most probable function after `decided`."""
WIRE_GATES = (gates.NAMES.index("A"), gates.NAMES.index("B"))
"""Ids of the functions A and B, which only pass on an input; gates with other functions are active."""


def active_gates(logits: npt.NDArray[np.floating]) -> int:
    """Return the number of gates of `logits [G, 16]` whose most probable function is neither A nor B."""
    return int((~np.isin(logits.argmax(axis=1), WIRE_GATES)).sum())


def undecided_gates(logits: npt.NDArray[np.floating], wires: npt.NDArray[np.floating] | None = None) -> int:
    """Return the number of unconverged gates for `logits [G, 16]` and logits of candidate wires, `wires [G, 2, k]`.

    A gate has converged if one function, and one candidate for each wire, has at least the probability DECIDED.
    """
    is_undecided = _most(logits) < DECIDED
    return int((is_undecided if wires is None else is_undecided | (_most(wires) < DECIDED).any(axis=1)).sum())


def _most(logits: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the largest softmax probability, `[...]`, of each row of logits `[..., n]`."""
    # The largest logit becomes exp(0) = 1, so its probability is 1 divided by the sum of the row.
    return np.asarray(1 / np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(axis=-1))


def decided(circuit: Circuit) -> Circuit:
    """Return a copy in which each most probable function and wire has at least probability CERTAIN."""
    wires = None if circuit.wire_logits is None else _certain(circuit.wire_logits)
    return replace(circuit.with_gate_logits(_certain(circuit.gate_logits)), wire_logits=wires)


def _certain(logits: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return logits `[..., n]`, increasing each row's largest so that its probability is at least CERTAIN."""
    # For a probability p the logit must be log(p / (1 - p)) above the log-sum-exp of the others.
    is_best = np.arange(logits.shape[-1]) == logits.argmax(axis=-1, keepdims=True)
    rest = np.logaddexp.reduce(np.where(is_best, -np.inf, logits), axis=-1, keepdims=True)
    return np.where(is_best, np.maximum(logits, rest + np.log(CERTAIN / (1 - CERTAIN))), logits).astype(logits.dtype)


@dataclass(frozen=True)
class Layer:
    """Gate counts of one layer. A perception gate counts once per kernel, not once per channel."""

    name: str
    """Network and number of the layer, counted from 0, such as `update 3`."""
    gates: int
    active: int
    """Number of gates whose most probable function is neither A nor B."""
    undecided: int
    """Number of unconverged gates, whose most probable function has a probability below 0.9."""
    kinds: tuple[int, ...]
    """Number of gates per most probable function, indexed by the sixteen gate ids."""


def census(circuit: Circuit) -> tuple[Layer, ...]:
    """Return the gate counts of every layer, perception layers first."""
    layers = []
    for network in NETWORKS:
        for index, logits in enumerate(circuit.logits[network]):
            flat = logits.reshape(-1, gates.GATE_COUNT)
            kinds = np.bincount(flat.argmax(axis=1), minlength=gates.GATE_COUNT)
            counts = len(flat), active_gates(flat), undecided_gates(flat), tuple(kinds.tolist())
            layers.append(Layer(f"{network} {index}", *counts))
    return tuple(layers)
