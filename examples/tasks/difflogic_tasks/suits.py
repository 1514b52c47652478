"""One rule grows four images: two fixed channels say which.

    difflogic train difflogic-tasks:suits --until-solved

Every cell keeps channels 1 and 2. They hold 00, 01, 10 or 11 in all cells, and nothing else differs at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from difflogic import Dataset, Task, circuit, presets

STEPS = 14
DIAMOND = (
    "....1.....",
    "...111....",
    "..11111...",
    ".1111111..",
    "111111111.",
    ".1111111..",
    "..11111...",
    "...111....",
    "....1.....",
    "..........",
)
SPADE = (
    "....1.....",
    "...111....",
    "..11111...",
    ".1111111..",
    "111111111.",
    "111111111.",
    ".11.1.11..",
    "....1.....",
    "...111....",
    "..........",
)
CLUB = (
    "...111....",
    "...111....",
    "...111....",
    ".11.1.11..",
    "111111111.",
    "111111111.",
    ".11.1.11..",
    "....1.....",
    "...111....",
    "..........",
)
SUITS = (presets.HEART, DIAMOND, SPADE, CLUB)
"""Images by the number in channels 1 and 2, the higher bit first."""


@dataclass(frozen=True)
class Suits(Task):
    """A heart, a diamond, a spade or a club, selected by two fixed channels."""

    version = "1"

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        """Return the four codes and their images, repeated; nothing is random."""
        codes = np.arange(count) % len(SUITS)
        pictures = np.array([[[[cell == "1"] for cell in row] for row in rows] for rows in SUITS], dtype=np.uint8)
        x = np.zeros((count, *pictures.shape[1:3], 3), dtype=np.uint8)
        x[..., 1], x[..., 2] = (codes >> 1)[:, None, None], (codes & 1)[:, None, None]
        return Dataset.of(x, pictures[codes], steps=STEPS)

    def fields(self) -> Mapping[str, Any]:
        model = circuit(channels=32, hidden=(256, 256, 256, 256, 128, 64))
        return {
            "model": replace(model, held=(1, 2)),
            "data": {"samples": len(SUITS), "held_out": 0.0},
            "train": {"epochs": 5000, "batch": len(SUITS)},
            "optimizer": {"lr": 0.06},
            "hardening": {"share": 0.8, "begin": 360, "end": 2000},
        }
