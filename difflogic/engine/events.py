"""An epoch draws events beside its fire masks: starts, places in a pool, damage, faults, hardened gates.

**Damage**: squares of cells that are zeroed in all channels on the way, as the paper damages its automata. A square's
corner is uniform over the grid's cells, drawn for each sample and step, and the square is clipped at the border, on a
torus too.

**Faults**: before a CA step bits flip, and cells are stuck at 0 or 1 in all channels. Each bit of each sample and step
has a random word of its own, each cell of a sample has one for the whole rollout. Soft states are treated alike: a
flip makes `1 - x` of `x`, and its adjoint changes its sign; no adjoint reaches a cell that is stuck. Gates may be stuck
for an epoch: they give 0 or 1 whatever they read, and their logits get no gradient. What happens to one state happens
in this order: it is judged, then squares are zeroed, then bits flip, then cells are stuck.

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

from difflogic.config.task import STUCK_AT, TaskConfig
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
FLIP_STREAM, STUCK_STREAM, GATE_STREAM = 0x666C6970, 0x73747563, 0x67617465
"""`fold_in` data of faults ("flip", "stuc", "gate"): of an epoch's training subkey, as that of damage."""
HARDENING_STREAM = 0x68617264
"""`fold_in` data of hardening ("hard"): of an epoch's training subkey, whose chain of splits the fire masks follow."""
EITHER = STUCK_AT.index("either")
MOST_WORD = (1 << 32) - 1
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


class FaultRates(NamedTuple):
    """Fault rates are counted as engines do: a word below `p * 2^32` is a fault of probability `p`."""

    flip: int = 0
    """Of a bit before a step."""
    stuck: int = 0
    """Of a cell in a sample."""
    gates: int = 0
    """Of a gate in an epoch."""
    value: int = EITHER
    """At which what is drawn is stuck: 0, 1, or EITHER, drawn as well."""
    listed: int = 0
    """How many cells are stuck in every sample."""

    @classmethod
    def of(cls, task: TaskConfig) -> FaultRates:
        flip, stuck, gates = (min(MOST_WORD, round(p * 2**32)) for p in (task.flip, task.stuck_cells, task.stuck_gates))
        return cls(flip, stuck, gates, STUCK_AT.index(task.stuck_at), len(task.stuck_list))

    @property
    def states(self) -> bool:
        """Return whether states are changed."""
        return bool(self.flip or self.stuck or self.listed)

    def draw_gates(self, key: prng.Key, gates: int) -> npt.NDArray[np.uint8]:
        """`[G]`: 0 for a gate that works, 1 for one that is stuck at 0 and 2 at 1; `key` is the training subkey."""
        return self._draw(prng.fold_in(key, GATE_STREAM), gates, self.gates)

    def draw_cells(self, key: prng.Key, cells: int) -> npt.NDArray[np.uint8]:
        """`[cells]`, the same of the cells of all samples."""
        return self._draw(prng.fold_in(key, STUCK_STREAM), cells, self.stuck)

    def draw_flips(self, key: prng.Key, step: int, values: int) -> npt.NDArray[np.bool_]:
        """`[values]`: which bits flip before `step`, counted in the order of `[B, H, W, C]`."""
        # Counters are the bit's number and the step, so that a sample's flips do not depend on how many samples follow.
        words, _ = _words(prng.fold_in(key, FLIP_STREAM), values, step)
        flips: npt.NDArray[np.bool_] = words < self.flip
        return flips

    def _draw(self, key: prng.Key, count: int, below: int) -> npt.NDArray[np.uint8]:
        words, values = _words(key, count)
        stuck_at = values & np.uint32(1) if self.value == EITHER else np.uint32(self.value)
        return np.where(words < below, 1 + stuck_at, 0).astype(np.uint8)


def _words(key: prng.Key, count: int, step: int = 0) -> tuple[prng.Words, prng.Words]:
    """Two words for each of `count` things: by the first it fails or not, by the second it is stuck at 0 or 1."""
    return prng.threefry2x32(key, np.arange(count, dtype=np.uint32), np.full(count, step, dtype=np.uint32))


NO_FAULTS = FaultRates()
"""Nothing is ever wrong."""


@dataclass(frozen=True, eq=False)
class Faults:
    """The faults of a rollout."""

    rates: FaultRates
    key: prng.Key
    """The training subkey of the epoch, or a key of the probes."""
    listed: npt.NDArray[np.uint8] | None = None
    """`[H*W]`: cells that are stuck in every sample, as `FaultRates.draw_cells` says it; None: no cell."""
    first: int = 0
    """What happens before earlier steps has been done: 1 where the start is given as the first step saw it."""

    __repr__ = brief

    def flips(self, step: int, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return which bits of a state `shape = [B, H, W, C]` flip before `step`."""
        if step < self.first or not self.rates.flip:
            return np.zeros(shape, dtype=np.bool_)
        return self.rates.draw_flips(self.key, step, int(np.prod(shape))).reshape(shape)

    def stuck(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        """`[B, H, W]` for a state of that shape: 0 for a cell that works, 1 for one that is stuck at 0 and 2 at 1."""
        drawn = self.rates.draw_cells(self.key, int(np.prod(shape[:3]))).reshape(shape[:3])
        if self.listed is None:
            return drawn
        listed = np.broadcast_to(self.listed.reshape(shape[1:3]), shape[:3])
        return np.where(listed > 0, listed, drawn)


@dataclass(frozen=True, eq=False)
class Damage:
    """Damage is what happens to states on the way: squares of `side` cells are zeroed before the CA steps `steps`, 0
    being the start itself, and faults happen before every step.
    """

    side: int
    steps: tuple[int, ...]
    corners: npt.NDArray[np.int64]
    """`[len(steps), B, 2]`: row and column of each sample's square."""
    faults: Faults | None = None

    __repr__ = brief

    def undamaged(self, index: int, height: int, width: int) -> npt.NDArray[np.bool_]:
        """Return `[B, H, W]`: False in the squares of `steps[index]`."""
        if self.faults is not None and self.steps[index] < self.faults.first:
            return np.ones((self.corners.shape[1], height, width), dtype=np.bool_)
        rows, columns = np.indices((height, width))
        # Each `[B, 1, 1]`, beside `[H, W]`. A square of 2x2 at (0, 2) on 3x3 cells is clipped to (0, 2) and (1, 2).
        row, column = self.corners[index, :, :, None, None].swapaxes(0, 1)
        below, beyond = rows - row, columns - column
        inside: npt.NDArray[np.bool_] = (below >= 0) & (below < self.side) & (beyond >= 0) & (beyond < self.side)
        return ~inside


def draw_masks(
    key: prng.Key, steps: int, shape: tuple[int, ...], fire_rate: float
) -> tuple[prng.Key, npt.NDArray[np.float32]]:
    """Which cells fire in each step, `[steps, *shape]` of 0 and 1, after the key with which the next steps go on.

    Each step `key, sub = split(key)`; a cell fires where its number is at most the rate, float32 on both sides.
    """
    # The notebook's own order: the chain goes on by the first key of each split, a step's mask is drawn by the second.
    # With a key for each step, masks do not depend on how the steps are cut into stretches.
    masks = np.empty((steps, *shape), dtype=np.float32)
    for mask in masks:
        key, sub = prng.split(key)
        mask[:] = prng.uniform(sub, shape) <= np.float32(fire_rate)
    return key, masks


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
