"""What a ring of cells can agree on, though each sees only its two neighbours: tests of emergent computation.

    difflogic train difflogic-tasks:density --seed 1 --stop-when-solved
    difflogic train difflogic-tasks:synchronisation --stop-when-solved

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
DENSITIES = ("fair", "even", "both", "taught")


@dataclass(frozen=True)
class Density(Task):
    """Every cell of a ring comes to show what most of them were.

    No rule of one bit a cell can do it on every ring (Land and Belew 1995). With a second bit there is a way: ones move
    like cars, to the right where there is room (rule 184), which loses none of them. After half a round, neighbours
    that are alike are all of the majority, and pass by every cell (Capcarrere, Sipper and Tomassini 1996; Fuks 1997).
    The second bit is taught to be that traffic. What it is good for has to be found: the first bit is told the answer
    alone, at cells that could know it.
    """

    version = "2"
    size: int = setting(11, "Cells of the ring, an odd number", least=3, most=999)
    time: int = setting(12, "CA steps after which all should agree", least=1, most=999)
    starts: str = setting(
        "taught",
        "fair: every bit is thrown; even: each share of ones is as likely; both: half of each; taught: both, and every "
        "second ring begins when its traffic has come to rest, with any answer",
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
        bits = thrown(rng, count, self.size, "both" if self.starts == "taught" else self.starts)
        late = (np.arange(count)[:, None] % 2 == 1) & (self.starts == "taught")
        answer = np.where(late, rng.integers(0, 2, bits.shape, dtype=np.uint8), bits)
        film = traffic(np.where(late, traffic(bits, self.size // 2)[-1], bits), self.time)
        alike = [(each == np.roll(each, 1, 1)) | (each == np.roll(each, -1, 1)) for each in film]
        # Cells by which a pair of the majority has come; of a ring that begins with any bits, all when it is over.
        known = np.logical_or.accumulate(alike)[:-1] & late
        known[-1] |= ~late & (2 * self.time >= 3 * self.size)
        steps = sorted({1, 2, 3, self.time // 2, 3 * self.time // 4, self.time} & set(range(1, self.time + 1)))
        most = np.broadcast_to(majority(bits)[:, None], bits.shape)
        y = np.stack([np.stack([most, film[step]], axis=-1) for step in steps], axis=1)
        counts = np.stack([np.stack([known[step - 1], known[step - 1] | True], axis=-1) for step in steps], axis=1)
        return Dataset.of(np.stack([answer, film[0]], axis=-1)[:, None], y[:, :, None], steps, counts[:, :, None])

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        right = states[:, -1, 0, :, 0] == majority(samples.x[:, 0, :, 1])[:, None]
        return {"rings that agree on what most were": float(right.all(axis=1).mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {"rings": space_time(film[:2, :, 0, :, :1])}


@dataclass(frozen=True)
class Synchronisation(Task):
    """Every cell of a ring comes to blink in time with all others, whatever they begin with."""

    version = "2"
    size: int = setting(15, "Cells of the ring", least=3, most=999)
    time: int = setting(12, "CA steps for which they are watched", least=2, most=999)
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
        bits[..., 0] = thrown(rng, count, self.size, "both")
        # Any common beat will do; one has to be asked for. That of the clock is one that cells can find: what begins at
        # random looks unlike what blinks. The beat of the majority would be the harder question of density again.
        steps = range(2, self.time + 1, 3)
        beat = np.array(steps)[None, :, None, None, None] % 2
        return Dataset.of(bits[:, None], np.broadcast_to(beat, (count, len(steps), 1, self.size, 1)), steps)

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        """Whatever the beat: all cells alike after every third step, and each time the other way round."""
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


def traffic(bits: Bits, steps: int) -> Bits:
    """`[steps + 1, count, size]`: in each step a one moves to the right where there is a zero."""
    film = [bits]
    for _ in range(steps):
        film.append(np.where(film[-1] == 1, np.roll(film[-1], -1, 1), np.roll(film[-1], 1, 1)))
    return np.stack(film)


def majority(bits: Bits) -> Bits:
    """Of every row; of none where as many are 0 as are 1."""
    return (2 * bits.sum(axis=1, dtype=np.int64) > bits.shape[1]).astype(np.uint8)
