"""The control block: the few words that steer a train step, uint32 `[8]`. The same words in
`shaders/common/control.wgsl` and in every engine.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.engine.job import OptimizerState, TrainState

DATA_KEY = slice(0, 2)
TRAIN_KEY = slice(2, 4)
STEP = 4
"""Optimiser steps taken."""
EPOCH = 5
"""Epochs done, skipped ones included."""
NONFINITE = 6
"""1 where the current gradient is not finite."""
SKIPPED = 7
"""Epochs that were skipped for it."""
WORDS = 8


def words_of(state: TrainState) -> npt.NDArray[np.uint32]:
    """The control block with which training goes on from a state."""
    words = np.zeros(WORDS, dtype=np.uint32)
    words[DATA_KEY], words[TRAIN_KEY] = state.data_key, state.train_key
    words[STEP], words[EPOCH], words[SKIPPED] = state.optimizer.step, state.epoch, state.skipped
    return words


def state_of(
    words: npt.NDArray[np.uint32],
    logits: npt.NDArray[Any],
    mu: npt.NDArray[Any],
    nu: npt.NDArray[Any],
    pool: npt.NDArray[np.uint8] | None,
) -> TrainState:
    """The inverse, with what a state holds besides; only the control block is copied."""
    return TrainState(
        logits=logits,
        optimizer=OptimizerState(mu, nu, int(words[STEP])),
        data_key=words[DATA_KEY].copy(),
        train_key=words[TRAIN_KEY].copy(),
        epoch=int(words[EPOCH]),
        skipped=int(words[SKIPPED]),
        pool=pool,
    )
