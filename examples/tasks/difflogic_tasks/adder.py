"""Task: add two numbers in a row of cells, one bit in each, with carries that ripple to the left.

    difflogic train difflogic-tasks:adder

Every cell begins with a bit of each number and ends with a bit of their sum. The circuit has to discover carries.
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
    bits: int = setting(6, "Bits of a number; the number of cells and of steps", least=3, most=24)

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
        # The numbers (a xor b) and (2 * (a and b)) have the same sum as a and b, and carries one cell further.
        # A cell counts from the step at which no carry can reach it any more.
        final = []
        for _ in range(self.bits):
            first, second = first ^ second, (first & second) << 1
            final.append(self._cells(first) == sums)
        counts = np.logical_and.accumulate(final[::-1])[::-1].swapaxes(0, 1)
        steps = range(1, self.bits + 1)
        targets = np.broadcast_to(sums[:, None], counts.shape)
        return Dataset.of(x[:, None], targets[:, :, None, :, None], steps, counts[:, :, None, :, None])

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        right = (states[:, -1, ..., :1] == samples.y[:, -1]).all(axis=(1, 2, 3))
        return {"right sums": float(right.mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {"sums": space_time(film[:4, :, 0, :, :2])}

    def _pairs(self, rng: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
        """Return random pairs; of short numbers all pairs come once before one comes twice."""
        if self.bits > 10:
            return tuple(rng.integers(1 << self.bits, size=(2, count)))  # type: ignore[return-value]
        pairs = np.resize(rng.permutation(1 << 2 * self.bits), count)
        return np.divmod(pairs, 1 << self.bits)

    def _cells(self, numbers: Numbers) -> Bits:
        """Return the bits `[count, bits]` of numbers, highest bit first."""
        return (numbers[:, None] >> np.arange(self.bits)[::-1] & 1).astype(np.uint8)
