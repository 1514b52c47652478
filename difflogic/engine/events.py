"""Random events of an epoch: initial states, samples of pool and data, fire masks, damage, faults and hard gates.

**Damage** zeroes squares of cells in all channels during a rollout, as in the paper. The corner of a square is uniform
over the cells of the grid, sampled for each sample and step; the square is clipped at the border, on a torus too.

**Faults**: before a CA step bits flip, and cells are stuck at 0 or 1 in all channels. Each bit of each sample and step
has its own random word; each cell of a sample has one for the complete rollout. For soft states, a flip turns `x` into
`1 - x` and changes the sign of the adjoint; the adjoint of a stuck cell is 0. A gate may be stuck for an epoch: it is 0
or 1 for all inputs, and its logits get no gradient. The order for a state: first its loss, then
damage, then flips, then stuck cells.

**Stochastic hardening**: in each epoch a random share of the gates is evaluated as the most probable function. The
gradient stays that of the softmax, at the values that the hard gate computes. As the share grows, the loss includes
more of the error that discretisation causes. The share is 0 up to an epoch, then grows linearly until another, and
then is constant: an integer function of the epoch, the same on every engine and after a resume.
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
"""`fold_in` data ("pool") into a run's first data key for the grids that fill the pool, and into an epoch's data subkey
for the grids that are taken from it."""
DATA_STREAM = 0x73616D70
"""`fold_in` data ("samp") into an epoch's data subkey for data samples."""
DAMAGE_STREAM = 0x64616D61
"""`fold_in` data ("dama") into an epoch's training subkey, whose chain of splits is that of fire masks, for damage."""
FLIP_STREAM, STUCK_STREAM, GATE_STREAM = 0x666C6970, 0x73747563, 0x67617465
"""`fold_in` data ("flip", "stuc", "gate") into an epoch's training subkey for faults."""
HARDENING_STREAM = 0x68617264
"""`fold_in` data ("hard") into an epoch's training subkey for hard gates."""
EITHER = STUCK_AT.index("either")
MOST_WORD = (1 << 32) - 1
UNITS = 1 << 16
"""Number of units of a share: shares are multiples of 2^-16."""

Grids = npt.NDArray[np.uint8]


def boards(numbers: npt.NDArray[np.integer], height: int, width: int) -> Grids:
    """Return boards `[N, H, W, 1]`: the bits of each number, row by row, the most significant first."""
    # Board 5 of 2x2 cells is 0101: its rows are 0 1 and 0 1.
    bits = numbers[:, None] >> np.arange(height * width, dtype=numbers.dtype)[::-1] & 1
    return bits.reshape(-1, height, width, 1).astype(np.uint8)


def draw_starts(kind: str, key: prng.Key, shape: tuple[int, int, int, int], same: Grids | None) -> Grids:
    """Sample initial states `shape = [N, H, W, C]`: random bits (`random`), boards (`boards`), or copies of `same`."""
    count, height, width, _ = shape
    if same is not None:
        return np.repeat(same[None], count, axis=0)
    if kind == "boards":
        return boards(prng.randint_power_of_two(key, (count,), 1 << height * width), height, width)
    return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def draw_places(key: prng.Key, batch: int, pool: int) -> npt.NDArray[np.int64]:
    """Sample `[batch]` indices in the pool, one from each of `batch` parts; `key` is the epoch's data subkey."""
    # Each sample has its own part, so that no two samples of a batch write back to the same grid. With a pool of 8 and
    # a batch of 2, sample 1 takes one of grids 4 to 7.
    part = pool // batch
    within = prng.randint_power_of_two(prng.fold_in(key, POOL_STREAM), (batch,), part)
    return np.asarray(part * np.arange(batch) + within, dtype=np.int64)


def draw_samples(key: prng.Key, batch: int, samples: int) -> npt.NDArray[np.int64]:
    """Sample `[batch]` indices below `samples`, with replacement; `key` is the epoch's data subkey."""
    return _below(prng.random_bits(prng.fold_in(key, DATA_STREAM), batch), samples)


def _below(words: npt.NDArray[np.uint32], bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Map each 32-bit word to a number below its bound."""
    # The high word of the product with the bound: no division, and the same in a shader.
    numbers = words.astype(np.uint64) * np.array(bounds, dtype=np.uint64) >> 32
    return np.asarray(numbers.astype(np.int64))


class FaultRates(NamedTuple):
    """Fault probabilities as engines use them: a random word below `p * 2^32` is a fault of probability `p`."""

    flip: int = 0
    """Rate of flips, per bit and step."""
    stuck: int = 0
    """Rate of stuck cells, per cell and sample."""
    gates: int = 0
    """Rate of stuck gates, per gate and epoch."""
    value: int = EITHER
    """Value of stuck cells and gates: 0, 1, or EITHER to sample it."""
    listed: int = 0
    """Number of cells that are stuck in every sample."""

    @classmethod
    def of(cls, task: TaskConfig) -> FaultRates:
        flip, stuck, gates = (min(MOST_WORD, round(p * 2**32)) for p in (task.flip, task.stuck_cells, task.stuck_gates))
        return cls(flip, stuck, gates, STUCK_AT.index(task.stuck_at), len(task.stuck_list))

    @property
    def states(self) -> bool:
        """True if states have faults."""
        return bool(self.flip or self.stuck or self.listed)

    def draw_gates(self, key: prng.Key, gates: int) -> npt.NDArray[np.uint8]:
        """Sample `[G]`: 0 for a gate that works, 1 if it is stuck at 0, 2 if at 1; `key` is the training subkey."""
        return self._draw(prng.fold_in(key, GATE_STREAM), gates, self.gates)

    def draw_cells(self, key: prng.Key, cells: int) -> npt.NDArray[np.uint8]:
        """Sample `[cells]`: 0 for a cell that works, 1 if it is stuck at 0, 2 if at 1."""
        return self._draw(prng.fold_in(key, STUCK_STREAM), cells, self.stuck)

    def draw_flips(self, key: prng.Key, step: int, values: int) -> npt.NDArray[np.bool_]:
        """Sample bool `[values]`: the bits that flip before `step`, in the order of `[B, H, W, C]`."""
        # The counters are bit and step, so that the flips of a sample do not depend on the number of samples.
        words, _ = _words(prng.fold_in(key, FLIP_STREAM), values, step)
        flips: npt.NDArray[np.bool_] = words < self.flip
        return flips

    def _draw(self, key: prng.Key, count: int, below: int) -> npt.NDArray[np.uint8]:
        words, values = _words(key, count)
        stuck_at = values & np.uint32(1) if self.value == EITHER else np.uint32(self.value)
        return np.where(words < below, 1 + stuck_at, 0).astype(np.uint8)


def _words(key: prng.Key, count: int, step: int = 0) -> tuple[prng.Words, prng.Words]:
    """Return two random words for each of `count` cells or gates: one for the failure, one for the stuck value."""
    return prng.threefry2x32(key, np.arange(count, dtype=np.uint32), np.full(count, step, dtype=np.uint32))


NO_FAULTS = FaultRates()
"""Rates without any fault."""


@dataclass(frozen=True, eq=False)
class Faults:
    """Faults of a rollout."""

    rates: FaultRates
    key: prng.Key
    """Random key: the training subkey of the epoch, or a key of the evaluation grids."""
    listed: npt.NDArray[np.uint8] | None = None
    """`[H*W]`: cells that are stuck in every sample, coded as in `FaultRates.draw_cells`; None for no cell."""
    first: int = 0
    """First step with faults: 1 if the initial state already contains those before step 0."""

    __repr__ = brief

    def flips(self, step: int, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return the bits of a state that flip before `step`, bool in `shape` `[B, H, W, C]`."""
        if step < self.first or not self.rates.flip:
            return np.zeros(shape, dtype=np.bool_)
        return self.rates.draw_flips(self.key, step, int(np.prod(shape))).reshape(shape)

    def stuck(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        """Return `[B, H, W]` for states of `shape`: 0 for a cell that works, 1 if it is stuck at 0, 2 if at 1."""
        cells = self.rates.draw_cells(self.key, int(np.prod(shape[:3]))).reshape(shape[:3])
        if self.listed is None:
            return cells
        listed = np.broadcast_to(self.listed.reshape(shape[1:3]), shape[:3])
        return np.where(listed > 0, listed, cells)


@dataclass(frozen=True, eq=False)
class Damage:
    """Damage and faults of states in a rollout.

    Squares of `side` x `side` cells are zeroed before each of the CA steps `steps`; 0 damages the initial state. Faults
    occur before every step.
    """

    side: int
    steps: tuple[int, ...]
    corners: npt.NDArray[np.int64]
    """`[len(steps), B, 2]`: row and column of the corner of each sample's square."""
    faults: Faults | None = None

    __repr__ = brief

    def undamaged(self, index: int, height: int, width: int) -> npt.NDArray[np.bool_]:
        """Return `[B, H, W]`: False in the squares of `steps[index]`."""
        if self.faults is not None and self.steps[index] < self.faults.first:
            return np.ones((self.corners.shape[1], height, width), dtype=np.bool_)
        rows, columns = np.indices((height, width))
        # `[B, 1, 1]` each, to broadcast with `[H, W]`. A 2x2 square at (0, 2) of 3x3 cells is clipped to (0, 2) and (1,
        # 2).
        row, column = self.corners[index, :, :, None, None].swapaxes(0, 1)
        below, beyond = rows - row, columns - column
        inside: npt.NDArray[np.bool_] = (below >= 0) & (below < self.side) & (beyond >= 0) & (beyond < self.side)
        return ~inside


def draw_masks(
    key: prng.Key, steps: int, shape: tuple[int, ...], fire_rate: float
) -> tuple[prng.Key, npt.NDArray[np.float32]]:
    """Sample fire masks, `[steps, *shape]` of 0 and 1; return them after the key for further steps.

    Each step `key, sub = split(key)`; a cell fires if its random number is at most the rate, both float32.
    """
    # The order of the notebook: the first key of each split continues the chain, the second samples the mask. With a
    # key per step, masks do not depend on the division of a rollout into calls.
    masks = np.empty((steps, *shape), dtype=np.float32)
    for mask in masks:
        key, sub = prng.split(key)
        mask[:] = prng.uniform(sub, shape) <= np.float32(fire_rate)
    return key, masks


def draw_corners(key: prng.Key, steps: int, batch: int, height: int, width: int) -> npt.NDArray[np.int64]:
    """Sample row and column of each square, `[steps, batch, 2]`, uniform over the cells of the grid."""
    words = prng.random_bits(prng.fold_in(key, DAMAGE_STREAM), 2 * steps * batch).reshape(steps, batch, 2)
    return _below(words, [height, width])


class Hardening(NamedTuple):
    """Stochastic hardening in integers, as engines use it, from `HardeningConfig`."""

    first: int = 0
    """Number of epochs before the share begins to grow."""
    length: int = 1
    """Number of epochs in which the share grows, fewer than UNITS, so that products stay below 2^32."""
    peak: int = 0
    """Final share, in UNITS; 0 for no hardening."""

    @classmethod
    def of(cls, config: HardeningConfig) -> Hardening:
        return cls(config.begin, max(1, config.end - config.begin), round(config.share * UNITS))

    def share(self, epochs: int) -> int:
        """Return the share, in UNITS, in the epoch after `epochs` epochs."""
        grown = min(max(epochs - self.first, 0), self.length)
        # Integers, so that every engine has the same share. Growing to one half from epoch 100 to 200, for example, it
        # is 32768 * 50 // 100 = 16384 units after 150 epochs, a quarter.
        return self.peak * grown // self.length

    def draw(self, key: prng.Key, epochs: int, gates: int) -> npt.NDArray[np.bool_]:
        """Sample bool `[G]`: the gates that are hard in this epoch; `key` is its training subkey."""
        words = prng.random_bits(prng.fold_in(key, HARDENING_STREAM), gates)
        # The high 16 bits of a word are compared, as many as the share has.
        hard: npt.NDArray[np.bool_] = words >> np.uint32(16) < self.share(epochs)
        return hard


NO_HARDENING = Hardening()
"""Hardening that makes no gate hard."""
