"""Random events of an epoch: initial states, pool and data samples, fire masks, damage, faults and hard gates.

**Damage** zeroes squares of cells in all channels during a rollout, as in the paper. The corner of a square is
sampled uniformly from all cells, per sample and step; the square is clipped at the border, even on a torus.

**Faults**: before each CA step, bits flip, and stuck cells become 0 or 1 in all channels. Flips use a random word per
bit, sample and step; stuck cells use a random word for each cell and sample of a rollout. For soft states, a flip turns
`x` into `1 - x` and changes the sign of the adjoint; the adjoint of a stuck cell is 0. A gate may be stuck for an
epoch: its output is 0 or 1 for all inputs, and its logits get no gradient. Each state is processed in this order: loss,
damage, flips, stuck cells.

**Stochastic hardening**: in each epoch a random share of the gates is evaluated as hard gates, with their most probable
functions. Their gradient is that of the softmax, at the values that the hard gates compute. As the share grows, the
loss includes more of the error that discretisation causes. The share is 0 at first, grows linearly between two epochs,
and then stays constant. It is an integer function of the epoch, the same on every engine and after a resume.
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
"""Constant ("pool") that `fold_in` mixes into a run's first data key to sample the grids that fill the pool, and into
an epoch's data subkey to select grids from the pool."""
DATA_STREAM = 0x73616D70
"""Constant ("samp") that `fold_in` mixes into an epoch's data subkey to select data samples."""
DAMAGE_STREAM = 0x64616D61
"""Constant ("dama") that `fold_in` mixes into an epoch's training subkey to sample damage."""
FLIP_STREAM, STUCK_STREAM, GATE_STREAM = 0x666C6970, 0x73747563, 0x67617465
"""Constants ("flip", "stuc", "gate") that `fold_in` mixes into an epoch's training subkey to sample faults."""
HARDENING_STREAM = 0x68617264
"""Constant ("hard") that `fold_in` mixes into an epoch's training subkey to select hard gates."""
EITHER = STUCK_AT.index("either")
MOST_WORD = (1 << 32) - 1
UNITS = 1 << 16
"""Number of units into which a share is divided: shares are multiples of 2^-16."""

Grids = npt.NDArray[np.uint8]


def boards(numbers: npt.NDArray[np.integer], height: int, width: int) -> Grids:
    """Return boards `[N, H, W, 1]` whose cells, row by row, are the bits of each number, most significant bit first."""
    # Board 5 of 2x2 cells is 0101: its rows are 0 1 and 0 1.
    bits = numbers[:, None] >> np.arange(height * width, dtype=numbers.dtype)[::-1] & 1
    return bits.reshape(-1, height, width, 1).astype(np.uint8)


def draw_starts(kind: str, key: prng.Key, shape: tuple[int, int, int, int], same: Grids | None) -> Grids:
    """Return initial states of `shape` (N, H, W, C): copies of `same` or, if None, random boards or bits (`kind`)."""
    count, height, width, _ = shape
    if same is not None:
        return np.repeat(same[None], count, axis=0)
    if kind == "boards":
        return boards(prng.randint_power_of_two(key, (count,), 1 << height * width), height, width)
    return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def draw_places(key: prng.Key, batch: int, pool: int) -> npt.NDArray[np.int64]:
    """Sample `batch` indices of grids in a pool, one from each of `batch` equal parts; `key` is the data subkey."""
    # Each sample has its own part, so that no two samples of a batch write back to the same grid. With a pool of 8 and
    # a batch of 2, sample 1 takes one of grids 4 to 7.
    part = pool // batch
    within = prng.randint_power_of_two(prng.fold_in(key, POOL_STREAM), (batch,), part)
    return np.asarray(part * np.arange(batch) + within, dtype=np.int64)


def draw_samples(key: prng.Key, batch: int, samples: int) -> npt.NDArray[np.int64]:
    """Sample `batch` indices of data samples, below `samples`, with replacement; `key` is the epoch's data subkey."""
    return _below(prng.random_bits(prng.fold_in(key, DATA_STREAM), batch), samples)


def _below(words: npt.NDArray[np.uint32], bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Map each random 32-bit word uniformly to an integer below its bound."""
    # The high word of the product with the bound needs no division, and shaders can compute it too.
    numbers = words.astype(np.uint64) * np.array(bounds, dtype=np.uint64) >> 32
    return np.asarray(numbers.astype(np.int64))


class FaultRates(NamedTuple):
    """Fault probabilities p as integer rates, `p * 2^32`: a fault occurs if a random uint32 is below its rate."""

    flip: int = 0
    """Rate of bit flips, per bit and step."""
    stuck: int = 0
    """Rate of stuck cells, per cell and sample."""
    gates: int = 0
    """Rate of stuck gates, per gate and epoch."""
    value: int = EITHER
    """Value of stuck cells and gates: 0, 1, or EITHER to sample 0 or 1."""
    listed: int = 0
    """Number of cells that the task lists as stuck in every sample."""

    @classmethod
    def of(cls, task: TaskConfig) -> FaultRates:
        flip, stuck, gates = (min(MOST_WORD, round(p * 2**32)) for p in (task.flip, task.stuck_cells, task.stuck_gates))
        return cls(flip, stuck, gates, STUCK_AT.index(task.stuck_at), len(task.stuck_list))

    @property
    def states(self) -> bool:
        """True if states can have faults, which are flipping bits or stuck cells."""
        return bool(self.flip or self.stuck or self.listed)

    def draw_gates(self, key: prng.Key, gates: int) -> npt.NDArray[np.uint8]:
        """Sample a code per gate, `[G]`: 0 if it works, 1 if stuck at 0, 2 if stuck at 1; `key` is as in `Faults`."""
        return self._draw(prng.fold_in(key, GATE_STREAM), gates, self.gates)

    def draw_cells(self, key: prng.Key, cells: int) -> npt.NDArray[np.uint8]:
        """Sample a code per cell, `[cells]`: 0 if it works, 1 if stuck at 0, 2 if stuck at 1; `key` as in `Faults`."""
        return self._draw(prng.fold_in(key, STUCK_STREAM), cells, self.stuck)

    def draw_flips(self, key: prng.Key, step: int, values: int) -> npt.NDArray[np.bool_]:
        """Sample which of a state's bits flip before `step`, bool `[values]`, in the order of `[B, H, W, C]`."""
        # The counters are the bit's index and the step, so that flips do not depend on the number of samples.
        words, _ = _words(prng.fold_in(key, FLIP_STREAM), values, step)
        return words < self.flip

    def _draw(self, key: prng.Key, count: int, below: int) -> npt.NDArray[np.uint8]:
        words, values = _words(key, count)
        stuck_at = values & np.uint32(1) if self.value == EITHER else np.uint32(self.value)
        return np.where(words < below, 1 + stuck_at, 0).astype(np.uint8)


def _words(key: prng.Key, count: int, step: int = 0) -> tuple[prng.Words, prng.Words]:
    """Return two arrays of `count` random words, which decide whether an item fails and at which value it is stuck."""
    return prng.threefry2x32(key, np.arange(count, dtype=np.uint32), np.full(count, step, dtype=np.uint32))


NO_FAULTS = FaultRates()
"""Fault rates of a task without faults, all 0."""


@dataclass(frozen=True, eq=False)
class Faults:
    """Faults of the states of a rollout: flipping bits and stuck cells."""

    rates: FaultRates
    key: prng.Key
    """Random key of the faults: the epoch's training subkey, or a key for the evaluation grids."""
    listed: npt.NDArray[np.uint8] | None = None
    """Codes of cells that are stuck in every sample, `[H*W]`, as in `FaultRates.draw_cells`; None for no cell."""
    first: int = 0
    """First step with faults: 0, or 1 if the initial state already contains the faults that precede step 0."""

    __repr__ = brief

    def flips(self, step: int, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return a mask, bool `[B, H, W, C]`, of the bits that flip before `step` in a state of this `shape`."""
        if step < self.first or not self.rates.flip:
            return np.zeros(shape, dtype=np.bool_)
        return self.rates.draw_flips(self.key, step, int(np.prod(shape))).reshape(shape)

    def stuck(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        """Return a code per cell, `[B, H, W]`, as in `FaultRates.draw_cells`, for states of `shape` (B, H, W, C)."""
        cells = self.rates.draw_cells(self.key, int(np.prod(shape[:3]))).reshape(shape[:3])
        if self.listed is None:
            return cells
        listed = np.broadcast_to(self.listed.reshape(shape[1:3]), shape[:3])
        return np.where(listed > 0, listed, cells)


@dataclass(frozen=True, eq=False)
class Damage:
    """Damage and faults of the states of a rollout.

    Squares of `side` x `side` cells are zeroed before each CA step listed in `steps`; step 0 damages the initial state.
    Faults occur before every step.
    """

    side: int
    steps: tuple[int, ...]
    corners: npt.NDArray[np.int64]
    """Row and column of each square's top left corner, `[len(steps), B, 2]`: one square per step and sample."""
    faults: Faults | None = None

    __repr__ = brief

    def undamaged(self, index: int, height: int, width: int) -> npt.NDArray[np.bool_]:
        """Return a mask, bool `[B, H, W]`, that is False in the squares that are zeroed before step `steps[index]`."""
        if self.faults is not None and self.steps[index] < self.faults.first:
            return np.ones((self.corners.shape[1], height, width), dtype=np.bool_)
        rows, columns = np.indices((height, width))
        # Shape `[B, 1, 1]`, to broadcast with `[H, W]`. For example, a 2x2 square at (0, 2) of a grid of 3x3 cells is
        # clipped to the cells (0, 2) and (1, 2).
        row, column = self.corners[index, :, :, None, None].swapaxes(0, 1)
        below, beyond = rows - row, columns - column
        inside: npt.NDArray[np.bool_] = (below >= 0) & (below < self.side) & (beyond >= 0) & (beyond < self.side)
        return ~inside


def draw_masks(
    key: prng.Key, steps: int, shape: tuple[int, ...], fire_rate: float
) -> tuple[prng.Key, npt.NDArray[np.float32]]:
    """Sample fire masks; return the random key for later steps and the masks, `[steps, *shape]` of 0 and 1.

    Each step splits the key: `key, sub = split(key)`. A cell fires if its random float32 is at most `fire_rate`.
    """
    # As in the notebook, the first key of each split continues the chain, and the second samples the mask. With a key
    # per step, masks do not depend on the division of a rollout into calls.
    masks = np.empty((steps, *shape), dtype=np.float32)
    for mask in masks:
        key, sub = prng.split(key)
        mask[:] = prng.uniform(sub, shape) <= np.float32(fire_rate)
    return key, masks


def draw_corners(key: prng.Key, steps: int, batch: int, height: int, width: int) -> npt.NDArray[np.int64]:
    """Sample the corners (row, column) of damaged squares, `[steps, batch, 2]`, uniformly from the grid's cells."""
    words = prng.random_bits(prng.fold_in(key, DAMAGE_STREAM), 2 * steps * batch).reshape(steps, batch, 2)
    return _below(words, [height, width])


class Hardening(NamedTuple):
    """Integer form of `HardeningConfig`, from which engines compute each epoch's share of hard gates."""

    first: int = 0
    """Number of epochs before the share of hard gates begins to grow."""
    length: int = 1
    """Number of epochs during which the share grows; it is below UNITS, so that products with it are below 2^32."""
    peak: int = 0
    """Final share of hard gates in units of 1/UNITS; 0 for no hardening."""

    @classmethod
    def of(cls, config: HardeningConfig) -> Hardening:
        return cls(config.begin, max(1, config.end - config.begin), round(config.share * UNITS))

    def share(self, epochs: int) -> int:
        """Return the share of hard gates, in units of 1/UNITS, in the epoch after `epochs` completed epochs."""
        grown = min(max(epochs - self.first, 0), self.length)
        # With integers, every engine computes the same share. A share that grows to one half from epoch 100 to 200, for
        # example, is 32768 * 50 // 100 = 16384 units after 150 epochs, a quarter.
        return self.peak * grown // self.length

    def draw(self, key: prng.Key, epochs: int, gates: int) -> npt.NDArray[np.bool_]:
        """Sample the hard gates, bool `[G]`, of the epoch after `epochs` epochs; `key` is its training subkey."""
        words = prng.random_bits(prng.fold_in(key, HARDENING_STREAM), gates)
        # The share has 16 bits, so the high 16 bits of a word are compared.
        return words >> np.uint32(16) < self.share(epochs)


NO_HARDENING = Hardening()
"""Hardening of training without hard gates."""
