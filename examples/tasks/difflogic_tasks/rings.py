"""What a ring of cells can agree on, though each sees only its two neighbours: tests of emergent computation.

    difflogic train difflogic-tasks:density
    difflogic train difflogic-tasks:synchronisation

Published rules see three cells to each side, and have one bit a cell (Gacs, Kurdyumov and Levin 1978; Mitchell,
Crutchfield and Das 1996; Juille and Pollack 1998). These see one cell to each side, and have several bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import Dataset, Task, circuit, setting
from difflogic_tasks.pictures import space_time

Bits = npt.NDArray[np.uint8]
DENSITIES = ("fair", "even", "both")


@dataclass(frozen=True)
class Density(Task):
    """Every cell of a ring becomes what most of them were."""

    version = "1"
    size: int = setting(29, "Cells of the ring, an odd number", least=3, most=999)
    time: int = setting(29, "CA steps after which all should agree", least=1, most=999)
    starts: str = setting(
        "both", "fair: every bit is thrown; even: each share of ones is as likely; both: half of each", among=DENSITIES
    )

    def fields(self) -> Mapping[str, Any]:
        return {
            "model": circuit(channels=6, kernels=4, neighbourhood="line", periodic=True),
            "train": {"epochs": 2000, "batch": 32},
            "optimizer": {"lr": 0.06},
            "data": {"samples": 8192},
        }

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        bits = thrown(rng, count, self.size, self.starts)
        # After t steps a cell can have seen the cells within t of it: until it can have seen all, most of these count.
        steps = sorted({min(2**power, self.time) for power in range(self.time.bit_length() + 1)})
        most = np.stack([around(bits, step) for step in steps], axis=1)
        return Dataset.of(bits[:, None, :, None], most[:, :, None, :, None], steps)

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        right = (states[:, -1, ..., :1] == samples.y[:, -1]).all(axis=(1, 2, 3))
        return {"rings that agree on what most were": float(right.mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {"rings": space_time(film[:2, :, 0, :, :1])}


@dataclass(frozen=True)
class Synchronisation(Task):
    """Every cell of a ring comes to blink in time with all others, whatever they begin with."""

    version = "1"
    size: int = setting(29, "Cells of the ring, an odd number", least=3, most=999)
    time: int = setting(30, "CA steps after which all should blink together, an even number", least=2, most=998)
    channels: int = setting(4, "Bits of a cell, all of which begin at random", least=1, most=32)

    def fields(self) -> Mapping[str, Any]:
        return {
            "model": circuit(self.channels, neighbourhood="line", periodic=True),
            "train": {"epochs": 2000, "batch": 32},
            "optimizer": {"lr": 0.06},
            "data": {"samples": 8192},
        }

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        bits = rng.integers(0, 2, (count, self.size, self.channels), dtype=np.uint8)
        bits[..., 0] = thrown(rng, count, self.size, "both")
        # Any common beat will do; one has to be asked for. What most cells begin with is a beat that a ring can find.
        most = np.broadcast_to(majority(bits[..., 0])[:, None], bits.shape[:2])
        steps = [self.time + later for later in range(-2, 2)]
        beat = [most ^ (step % 2) for step in steps]
        return Dataset.of(bits[:, None], np.stack(beat, axis=1)[:, :, None, :, None].astype(np.uint8), steps)

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        """Whatever the beat: all cells alike after each of the last steps, and each time the other way round."""
        shown = states[:, :, 0, :, 0]
        alike = (shown == shown[..., :1]).all(axis=(1, 2))
        blinks = (shown[:, 1:, 0] != shown[:, :-1, 0]).all(axis=1)
        return {"rings that blink together": float((alike & blinks).mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {"rings": space_time(film[:2, :, 0, :, :1])}


def thrown(rng: np.random.Generator, count: int, size: int, kind: str) -> Bits:
    """`[count, size]` of 0 and 1: fair bits, or of a share that is drawn first."""
    share = np.full((count, 1), 0.5)
    if kind != "fair":
        share[count // 2 if kind == "both" else 0 :] = rng.random((count - (count // 2 if kind == "both" else 0), 1))
    return (rng.random((count, size)) < share).astype(np.uint8)


def around(bits: Bits, reach: int) -> Bits:
    """What most of the cells within `reach` of each are; of the whole ring, where that is all."""
    size = bits.shape[1]
    if 2 * reach + 1 >= size:
        return np.broadcast_to(majority(bits)[:, None], bits.shape)
    seen = np.stack([np.roll(bits, offset, axis=1) for offset in range(-reach, reach + 1)], axis=-1)
    return majority(seen.reshape(-1, 2 * reach + 1)).reshape(bits.shape)


def majority(bits: Bits) -> Bits:
    """Of every row; of none where as many are 0 as are 1."""
    return (2 * bits.sum(axis=1, dtype=np.int64) > bits.shape[1]).astype(np.uint8)
