"""Stochastic hardening: in each epoch a random share of the gates is evaluated as its most probable gate alone.

The gradient stays that of the softmax, at what the hard gate computes. So training feels, ever more as the share grows,
what the circuit loses when every gate is decided. The share is 0 until an epoch, then grows evenly up to another, and
stays: a function of the epoch alone, in whole numbers, the same on every engine and after a resume.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic import prng
from difflogic.config import TrainConfig

STREAM = 0x68617264
"""`fold_in` data of hardening ("hard"): of an epoch's training subkey, whose chain of splits the fire masks follow."""
UNITS = 1 << 16
"""Shares are counted in units of 2^-16."""


class Hardening(NamedTuple):
    """`harden_from`, `harden_to` and `hardening` of TrainConfig."""

    first: int = 0
    """Epochs before the share begins to grow."""
    length: int = 1
    """Epochs in which it grows, fewer than UNITS: products stay below 2^32."""
    peak: int = 0
    """The last share, in UNITS; 0: no gate is ever hardened."""

    @classmethod
    def of(cls, train: TrainConfig) -> Hardening:
        return cls(train.harden_from, max(1, train.harden_to - train.harden_from), round(train.hardening * UNITS))

    def share(self, epochs: int) -> int:
        """The share, in UNITS, in the epoch that comes after so many."""
        grown = min(max(epochs - self.first, 0), self.length)
        return self.peak * grown // self.length

    def draw(self, key: prng.Key, epochs: int, gates: int) -> npt.NDArray[np.bool_]:
        """`[G]`: which gates are hard in that epoch, `key` being its training subkey."""
        words = prng.random_bits(prng.fold_in(key, STREAM), gates)
        hard: npt.NDArray[np.bool_] = words >> np.uint32(16) < self.share(epochs)
        return hard


NO_HARDENING = Hardening()
"""No gate is ever hard."""
