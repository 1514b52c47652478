"""One CA step of the hard circuit, 32 samples per word. Twin of `hard_forward.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import gates
from difflogic.layout import Layout
from difflogic.reference.gate_forward import fires
from difflogic.reference.grid import write_patches
from difflogic.shape import WORD, Shape

Array = npt.NDArray[Any]


def hard_forward(
    shape: Shape, at: int, layout: Layout, gate_ids: Array, masks: Array | None, words: Array, hard_nodes: Array
) -> None:
    """`words[at] -> words[at+1]`, uint32 `[T+1, C, groups*H*W]`; `shape.batch` counts groups of 32 samples.

    Bit `3 - (2a + b)` of a gate's id is its output, so a gate on words is four masked terms.
    """
    write_patches(shape, words[at], hard_nodes)
    truth = np.where(gates.TRUTH == 1, np.uint32(0xFFFFFFFF), np.uint32(0))
    for level in layout.levels:
        span = slice(level.first_instance, level.first_instance + level.count)
        a, b = hard_nodes[layout.wires[span, 0]], hard_nodes[layout.wires[span, 1]]
        f00, f01, f10, f11 = truth[gate_ids[layout.instance_gates[span]]].T[:, :, None]
        out = (~a & ((~b & f00) | (b & f01))) | (a & ((~b & f10) | (b & f11)))
        hard_nodes[layout.patch_nodes + span.start : layout.patch_nodes + span.stop] = out
    new = hard_nodes[-shape.channels :]
    words[at + 1] = new if masks is None else np.where(fires(shape, masks, at), new, words[at])


def pack(grids: Array) -> Array:
    """0/1 grids `[B, H, W, C]` -> uint32 words `[C, groups*H*W]`; unused high bits are 0."""
    batch, height, width, channels = grids.shape
    groups = -(-batch // WORD)
    bits = np.zeros((groups * WORD, height, width, channels), dtype=np.uint32)
    bits[:batch] = grids
    shifts = np.arange(WORD, dtype=np.uint32)[None, :, None, None, None]
    words = np.bitwise_or.reduce(bits.reshape(groups, WORD, height, width, channels) << shifts, axis=1)
    return np.ascontiguousarray(words.transpose(3, 0, 1, 2).reshape(channels, -1))


def unpack(words: Array, grid: tuple[int, ...]) -> Array:
    """The inverse of `pack` for states `[..., C, groups*H*W]`: float32 `[..., B, H, W, C]`."""
    batch, height, width, channels = grid
    lead = words.shape[:-2]
    split = words.reshape(*lead, channels, -1, 1, height, width)
    shifts = np.arange(WORD, dtype=np.uint32)[:, None, None]
    bits = (split >> shifts & np.uint32(1)).reshape(*lead, channels, -1, height, width)[..., :batch, :, :]
    return np.moveaxis(bits, -4, -1).astype(np.float32)


def count_wrong(words: Array, target: Array, batch: int) -> tuple[int, int]:
    """Wrong values, and samples with any, of one state.

    `words [C, groups*H*W]`, `target [H, W, loss_channels]`, `batch` samples.
    """
    height, width, loss_channels = target.shape
    got = unpack(words, (batch, height, width, words.shape[0]))[..., :loss_channels]
    wrong = got != target
    return int(wrong.sum()), int(wrong.any(axis=(1, 2, 3)).sum())
