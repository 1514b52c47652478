"""Control block of a train step, uint32 `[8]`: random keys, counters and flags.

`shaders/common/control.wgsl` and every engine use the same layout.
"""

import numpy as np

from difflogic.engine.job import OptimizerState, TrainState
from difflogic.engine.shape import Array

DATA_KEY = slice(0, 2)
TRAIN_KEY = slice(2, 4)
STEP = 4
"""Index of the word with the number of optimiser steps taken."""
EPOCH = 5
"""Index of the word with the number of completed epochs, including skipped epochs."""
NONFINITE = 6
"""Index of the word that is 1 if the current loss or a gradient is not finite, otherwise 0."""
SKIPPED = 7
"""Index of the word with the number of skipped epochs."""
WORDS = 8


def words_of(state: TrainState) -> Array:
    """Return the control block, uint32 `[8]`, of a training state."""
    words = np.zeros(WORDS, dtype=np.uint32)
    words[DATA_KEY], words[TRAIN_KEY] = state.data_key, state.train_key
    words[STEP], words[EPOCH], words[SKIPPED] = state.optimizer.step, state.epoch, state.skipped
    return words


def state_of(words: Array, logits: Array, mu: Array, nu: Array, pool: Array | None) -> TrainState:
    """Return the training state with the counters and keys of control block `words`; arrays are not copied."""
    return TrainState(
        logits=logits,
        optimizer=OptimizerState(mu, nu, int(words[STEP])),
        data_key=words[DATA_KEY].copy(),
        train_key=words[TRAIN_KEY].copy(),
        epoch=int(words[EPOCH]),
        skipped=int(words[SKIPPED]),
        pool=pool,
    )
