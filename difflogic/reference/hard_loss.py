"""Wrong values of a hard state. Twin of `hard_loss.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from difflogic.bits import unpack

Array = npt.NDArray[Any]


def hard_loss(words: Array, target: Array, batch: int) -> tuple[int, int]:
    """Wrong values, and samples with any, of one state.

    `words [C, groups*H*W]`, `target [H, W, loss_channels]`, `batch` samples.
    """
    height, width, loss_channels = target.shape
    got = unpack(words, (batch, height, width, words.shape[0]))[..., :loss_channels]
    wrong = got != target
    return int(wrong.sum()), int(wrong.any(axis=(1, 2, 3)).sum())
