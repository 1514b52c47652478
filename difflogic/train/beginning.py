"""The circuit that training begins with: of several drawn wirings the one whose signals meet most of the picture.

What a cell should show can be made of what is there after T steps: a cell of the picture that no signal is in then
has to be led one first, by kernels and gates that all cells share. Which cells have one is known before training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from difflogic import gates, prng
from difflogic.circuit import Array, Circuit
from difflogic.config import Config
from difflogic.train import tasks
from difflogic.wiring import PATCH

STREAM = 0x64726177
"""`fold_in` data of the second wiring's seed ("draw"); later ones follow."""

Bools = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]


def circuit_of(config: Config) -> Circuit:
    """Drawn from `config.seed`; of `draws` wirings the first one of those that meet most."""
    train = config.train
    drawn = (
        Circuit.initial(config.model, seed, train.initial_logit, train.narrow_drop, train.logit_noise)
        for seed in (_seed_of(config.seed, number) for number in range(train.draws))
    )
    return max(drawn, key=lambda circuit: met(circuit, config)) if train.draws > 1 else next(drawn)


def _seed_of(seed: int, number: int) -> int:
    """The seed of a drawn wiring, counted from 0; the first one's is the run's own."""
    return int(prng.fold_in(prng.key_from_seed(seed), STREAM + number - 1)[1]) if number else seed


def met(circuit: Circuit, config: Config) -> int:
    """Cells that should show something and have a signal in any channel after T steps.

    Gates count as the OR of what they pass on: those that begin as neither A nor OR as A.
    """
    start, target = tasks.start(config), tasks.target(config.task)
    assert start is not None
    assert target is not None
    kernels = [
        _sources([layer[k] for layer in circuit.perceive], [wires[k] for wires in circuit.perceive_wires], PATCH)
        for k in range(circuit.kernels)
    ]
    update = _sources(circuit.update, circuit.update_wires, circuit.channels * (1 + len(kernels) * len(kernels[0])))
    state = start.transpose(2, 0, 1) > 0
    for _ in range(config.task.steps):
        state = _step(state, kernels, update, circuit.periodic)
    return int((state.any(axis=0) & target.any(axis=-1)).sum())


def _sources(logits: Sequence[Array], wires: Sequence[Array], inputs: int) -> list[Index]:
    """Which inputs of a network each of its outputs passes on."""
    passed: npt.NDArray[np.bool_] = np.eye(inputs, dtype=bool)
    for layer, (a, b) in zip(logits, wires, strict=True):
        either = layer.argmax(axis=-1) == gates.OR
        passed = passed[a] | passed[b] & either[:, None]
    return [np.flatnonzero(row) for row in passed]


def _step(state: Bools, kernels: Sequence[Sequence[Index]], update: Sequence[Index], periodic: bool) -> Bools:
    """The next `state [C, H, W]`."""
    height, width = state.shape[1:]
    around = np.pad(state, ((0, 0), (1, 1), (1, 1)), mode="wrap" if periodic else "constant")
    patch = np.stack([around[:, y : y + height, x : x + width] for y in range(3) for x in range(3)])
    # the update network reads [C, S, K]
    seen = np.stack([[patch[cells].any(axis=0) for cells in outputs] for outputs in kernels]).transpose(2, 1, 0, 3, 4)
    inputs = np.concatenate([state, seen.reshape(-1, height, width)])
    return np.stack([inputs[bits].any(axis=0) for bits in update])
