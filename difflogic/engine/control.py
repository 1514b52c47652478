"""The control block: the few words that steer a train step, uint32 `[8]`. The same words in
`shaders/common/control.wgsl` and in every engine.
"""

from __future__ import annotations

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
