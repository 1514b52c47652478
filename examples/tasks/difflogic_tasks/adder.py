"""Two numbers are added by a row of cells, one bit a cell: carries ripple to the left, a cell a step.

    difflogic train difflogic-tasks:adder

Every cell begins with a bit of each number and ends with a bit of their sum. What a carry is, it has to find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import Dataset, Task, circuit, setting
from difflogic_tasks.pictures import space_time

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Adder(Task):
    """The sum of two numbers in binary."""

    version = "1"
    bits: int = setting(6, "Bits of a number, which is as many cells and as many steps", least=3, most=24)

    def fields(self) -> Mapping[str, Any]:
        return {
            "model": circuit(channels=3, neighbourhood="line"),
            "train": {"epochs": 1000, "batch": 32},
            "optimizer": {"lr": 0.06},
            "data": {"samples": 4096},
        }

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        first, second = self._pairs(rng, count)
        x = np.stack([self._cells(first), self._cells(second)], axis=-1)
        sums = self._cells(first + second)
        # The numbers (a xor b) and (2 * (a and b)) have the same sum as a and b, and carries that are a cell further.
        # A cell counts from the step on at which no carry can reach it any more.
        settled = []
        for _ in range(self.bits):
            first, second = first ^ second, (first & second) << 1
            settled.append(self._cells(first) == sums)
        counts = np.logical_and.accumulate(settled[::-1])[::-1].swapaxes(0, 1)
        steps = range(1, self.bits + 1)
        targets = np.broadcast_to(sums[:, None], counts.shape)
        return Dataset.of(x[:, None], targets[:, :, None, :, None], steps, counts[:, :, None, :, None])

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        right = (states[:, -1, ..., :1] == samples.y[:, -1]).all(axis=(1, 2, 3))
        return {"right sums": float(right.mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {"sums": space_time(film[:4, :, 0, :, :2])}

    def _pairs(self, rng: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
        """Of short numbers no pair comes twice before all have come once."""
        if self.bits > 10:
            return tuple(rng.integers(1 << self.bits, size=(2, count)))  # type: ignore[return-value]
        drawn = np.resize(rng.permutation(1 << 2 * self.bits), count)
        return np.divmod(drawn, 1 << self.bits)

    def _cells(self, numbers: Numbers) -> Bits:
        """`[count, bits]`, the highest bit first."""
        return (numbers[:, None] >> np.arange(self.bits)[::-1] & 1).astype(np.uint8)
