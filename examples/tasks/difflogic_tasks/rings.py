"""Tasks: density and synchronisation on a ring of cells that see only their two neighbours.

    difflogic train difflogic-tasks:density --seed 1 --stop-when-solved
    difflogic train difflogic-tasks:synchronisation --stop-when-solved

These are classic tests of emergent computation. Published rules see three cells to each side, and have one bit a cell
(Gacs, Kurdyumov and Levin 1978; Mitchell, Crutchfield and Das 1996; Juille and Pollack 1998). The rules here see one
cell to each side, and have several bits.
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
DENSITIES = ("fair", "even", "both", "taught")


@dataclass(frozen=True)
class Density(Task):
    """Every cell of a ring should end with the value of the initial majority.

    No rule of one bit a cell is right on every ring (Land and Belew 1995). With a second bit there is a solution: ones
    move like cars, to the right if there is space (rule 184), which loses none of them. After half a round, equal
    neighbours are all of the majority, and pass by every cell (Capcarrere, Sipper and Tomassini 1996; Fuks 1997). The
    target of the second bit is that traffic. The target of the first bit is the answer, at cells that could know it.
    """

    version = "2"
    size: int = setting(11, "Cells of the ring, an odd number", least=3, most=999)
    time: int = setting(12, "CA steps after which all should agree", least=1, most=999)
    starts: str = setting(
        "taught",
        "fair: independent bits; even: shares of ones are uniform; both: half of each; taught: both, and every "
        "second ring begins with traffic that has come to rest, and a random answer",
        among=DENSITIES,
    )

    def fields(self) -> Mapping[str, Any]:
        return {
            "model": circuit(channels=2, kernels=4, neighbourhood="line", periodic=True),
            "train": {"epochs": 1500, "batch": 32},
            "optimizer": {"lr": 0.06},
            "data": {"samples": 4096},
        }

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        bits = sampled(rng, count, self.size, "both" if self.starts == "taught" else self.starts)
        late = (np.arange(count)[:, None] % 2 == 1) & (self.starts == "taught")
        answer = np.where(late, rng.integers(0, 2, bits.shape, dtype=np.uint8), bits)
        frames = traffic(np.where(late, traffic(bits, self.size // 2)[-1], bits), self.time)
        paired = [(row == np.roll(row, 1, 1)) | (row == np.roll(row, -1, 1)) for row in frames]
        # Cells that a pair of the majority has passed; on a ring with random traffic, all cells at the end.
        known = np.logical_or.accumulate(paired)[:-1] & late
        known[-1] |= ~late & (2 * self.time >= 3 * self.size)
        steps = sorted({1, 2, 3, self.time // 2, 3 * self.time // 4, self.time} & set(range(1, self.time + 1)))
        most = np.broadcast_to(majority(bits)[:, None], bits.shape)
        y = np.stack([np.stack([most, frames[step]], axis=-1) for step in steps], axis=1)
        counts = np.stack([np.stack([known[step - 1], known[step - 1] | True], axis=-1) for step in steps], axis=1)
        return Dataset.of(np.stack([answer, frames[0]], axis=-1)[:, None], y[:, :, None], steps, counts[:, :, None])

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        right = states[:, -1, 0, :, 0] == majority(samples.x[:, 0, :, 1])[:, None]
        return {"rings that agree on what most were": float(right.all(axis=1).mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {"rings": space_time(film[:2, :, 0, :, :1])}


@dataclass(frozen=True)
class Synchronisation(Task):
    """Every cell of a ring should blink together with all others, from any initial state."""

    version = "2"
    size: int = setting(15, "Cells of the ring", least=3, most=999)
    time: int = setting(12, "CA steps that are evaluated", least=2, most=999)
    channels: int = setting(8, "Bits of a cell, all of which begin at random", least=1, most=32)

    def fields(self) -> Mapping[str, Any]:
        return {
            "model": circuit(self.channels, neighbourhood="line", periodic=True),
            "train": {"epochs": 1500, "batch": 32},
            "optimizer": {"lr": 0.06},
            "data": {"samples": 4096},
        }

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        bits = rng.integers(0, 2, (count, self.size, self.channels), dtype=np.uint8)
        bits[..., 0] = sampled(rng, count, self.size, "both")
        # Any common beat is right, but the target needs one. The beat of the clock can be found, because random cells
        # differ from blinking ones. The beat of the majority would require density, which is harder.
        steps = range(2, self.time + 1, 3)
        beat = np.array(steps)[None, :, None, None, None] % 2
        return Dataset.of(bits[:, None], np.broadcast_to(beat, (count, len(steps), 1, self.size, 1)), steps)

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        """Return the share of rings whose cells are equal after every third step, and change each time."""
        values = states[:, :, 0, :, 0]
        equal = (values == values[..., :1]).all(axis=(1, 2))
        blinks = (values[:, 1:, 0] != values[:, :-1, 0]).all(axis=1)
        return {"rings that blink together": float((equal & blinks).mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {"rings": space_time(film[:2, :, 0, :, :1])}


def sampled(rng: np.random.Generator, count: int, size: int, kind: str) -> Bits:
    """Return random bits `[count, size]`: fair ones, or with a share of ones that is sampled for each row."""
    share = np.full((count, 1), 0.5)
    if kind != "fair":
        share[count // 2 if kind == "both" else 0 :] = rng.random((count - (count // 2 if kind == "both" else 0), 1))
    return (rng.random((count, size)) < share).astype(np.uint8)


def traffic(bits: Bits, steps: int) -> Bits:
    """Return the states `[steps + 1, count, size]` of rule 184: a one moves to the right if there is a zero."""
    frames = [bits]
    for _ in range(steps):
        frames.append(np.where(frames[-1] == 1, np.roll(frames[-1], -1, 1), np.roll(frames[-1], 1, 1)))
    return np.stack(frames)


def majority(bits: Bits) -> Bits:
    """Return 1 for each row with more ones than zeros."""
    return (2 * bits.sum(axis=1, dtype=np.int64) > bits.shape[1]).astype(np.uint8)
