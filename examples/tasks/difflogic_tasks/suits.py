"""A task of the package's own: one rule that grows four pictures, by what two held bits ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from difflogic.config import presets
from difflogic.config.dataset import Dataset
from difflogic.config.own_task import Task, circuit
from difflogic.core import text_picture

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
"""By the number that channels 1 and 2 say, the higher bit first."""


@dataclass(frozen=True)
class Suits(Task):
    """A heart, a diamond, a spade or a club, from nothing but the border, by two bits that every cell keeps."""

    version = "1"

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        """The four codes and their pictures, again and again; nothing is drawn."""
        codes = np.arange(count) % len(SUITS)
        pictures = np.stack([text_picture.decode(rows, 1) for rows in SUITS])
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
