"""What is drawn for an epoch beside the fire masks: start grids, places in a sample pool, damage and hardened gates.

**Damage**: squares of cells that are zeroed in all channels on the way, as the paper damages its automata. A square's
corner is uniform over the grid's cells, drawn for each sample and step, and the square is clipped at the border, on a
torus too.

**Stochastic hardening**: in each epoch a random share of the gates is evaluated as its most probable gate alone. The
gradient stays that of the softmax, at what the hard gate computes. So training feels, ever more as the share grows,
what the circuit loses when every gate is decided. The share is 0 until an epoch, then grows evenly up to another, and
stays: a function of the epoch alone, in whole numbers, the same on every engine and after a resume.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.config.train import HardeningConfig
from difflogic.core import prng
from difflogic.system.brief import brief

POOL_STREAM = 0x706F6F6C
"""`fold_in` data ("pool"): of a run's first data key for the grids that fill the pool, and of an epoch's data subkey
for the places that it takes grids from."""
DATA_STREAM = 0x73616D70
"""`fold_in` data of samples ("samp"): of an epoch's data subkey."""
DAMAGE_STREAM = 0x64616D61
"""`fold_in` data of damage ("dama"): of an epoch's training subkey, whose chain of splits the fire masks follow."""
HARDENING_STREAM = 0x68617264
"""`fold_in` data of hardening ("hard"): of an epoch's training subkey, whose chain of splits the fire masks follow."""
UNITS = 1 << 16
"""Shares are counted in units of 2^-16."""

Grids = npt.NDArray[np.uint8]


def boards(numbers: npt.NDArray[np.integer], height: int, width: int) -> Grids:
    """`[N, H, W, 1]`: board `i` is the bits of `i`, row by row, most significant first."""
    # Board 5 of 2x2 cells is 0101, so its rows are 0 1 and 0 1.
    bits = numbers[:, None] >> np.arange(height * width, dtype=numbers.dtype)[::-1] & 1
    return bits.reshape(-1, height, width, 1).astype(np.uint8)


def draw_starts(kind: str, key: prng.Key, shape: tuple[int, int, int, int], same: Grids | None) -> Grids:
    """`shape = [N, H, W, C]` of 0 and 1: fair bits (`random`), boards drawn from all (`boards`), or all `same`."""
    count, height, width, _ = shape
    if same is not None:
        return np.repeat(same[None], count, axis=0)
    if kind == "boards":
        return boards(prng.randint_power_of_two(key, (count,), 1 << height * width), height, width)
    return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def draw_places(key: prng.Key, batch: int, pool: int) -> npt.NDArray[np.int64]:
    """`[batch]`: sample `b` takes its grid from the pool's `b`-th part; `key` is the epoch's data subkey."""
    # Each sample has a part of its own, so that no two samples of a batch write back to the same place. With a pool of
    # 8 and a batch of 2, sample 1 takes one of the places 4 to 7.
    part = pool // batch
    within = prng.randint_power_of_two(prng.fold_in(key, POOL_STREAM), (batch,), part)
    found: npt.NDArray[np.int64] = part * np.arange(batch) + within
    return found


def draw_samples(key: prng.Key, batch: int, samples: int) -> npt.NDArray[np.int64]:
    """`[batch]` of all `samples`, with replacement; `key` is the epoch's data subkey."""
    return _below(prng.random_bits(prng.fold_in(key, DATA_STREAM), batch), samples)


def _below(words: npt.NDArray[np.uint32], bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Each word as a number below its bound."""
    # A word times the bound, shifted down by 32 bits, is a number below it without a division, the same in a shader.
    found: npt.NDArray[np.int64] = (words.astype(np.uint64) * np.array(bounds, dtype=np.uint64) >> 32).astype(np.int64)
    return found


@dataclass(frozen=True, eq=False)
class Damage:
    """Squares of `side` cells, zeroed before the CA steps `steps`: 0 is the start itself."""

    side: int
    steps: tuple[int, ...]
    corners: npt.NDArray[np.int64]
    """`[len(steps), B, 2]`: row and column of each sample's square."""

    __repr__ = brief

    def kept(self, index: int, height: int, width: int) -> npt.NDArray[np.bool_]:
        """`[B, H, W]`: False in the squares of `steps[index]`."""
        rows, columns = np.indices((height, width))
        row, column = self.corners[index, :, :, None, None].swapaxes(0, 1)
        below, beyond = rows - row, columns - column
        inside: npt.NDArray[np.bool_] = (below >= 0) & (below < self.side) & (beyond >= 0) & (beyond < self.side)
        return ~inside


def draw_corners(key: prng.Key, steps: int, batch: int, height: int, width: int) -> npt.NDArray[np.int64]:
    """`[steps, batch, 2]` of row and column: the high words of 32-bit words times the grid's sides."""
    words = prng.random_bits(prng.fold_in(key, DAMAGE_STREAM), 2 * steps * batch).reshape(steps, batch, 2)
    return _below(words, [height, width])


class Hardening(NamedTuple):
    """`HardeningConfig` in whole numbers, as engines count."""

    first: int = 0
    """Epochs before the share begins to grow."""
    length: int = 1
    """Epochs in which it grows, fewer than UNITS: products stay below 2^32."""
    peak: int = 0
    """The last share, in UNITS; 0: no gate is ever hardened."""

    @classmethod
    def of(cls, config: HardeningConfig) -> Hardening:
        return cls(config.begin, max(1, config.end - config.begin), round(config.share * UNITS))

    def share(self, epochs: int) -> int:
        """The share, in UNITS, in the epoch that comes after so many."""
        grown = min(max(epochs - self.first, 0), self.length)
        # Whole numbers, so that every engine has the same share. After 150 epochs, of a growth from 100 to 200 to
        # one half, it is 32768 * 50 // 100 = 16384 units, a quarter.
        return self.peak * grown // self.length

    def draw(self, key: prng.Key, epochs: int, gates: int) -> npt.NDArray[np.bool_]:
        """`[G]`: which gates are hard in that epoch, `key` being its training subkey."""
        words = prng.random_bits(prng.fold_in(key, HARDENING_STREAM), gates)
        # The high half of a word is compared, 16 bits as the share has.
        hard: npt.NDArray[np.bool_] = words >> np.uint32(16) < self.share(epochs)
        return hard


NO_HARDENING = Hardening()
"""No gate is ever hard."""
