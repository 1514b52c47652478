"""A simulation begins at random, at a seed cell, at nothing, at the circuit's own picture, or as a file says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from difflogic.circuits import rle
from difflogic.circuits.simulation import pictures
from difflogic.config.dataset import bits_in, numbers_in
from difflogic.core import bernoulli
from difflogic.core.bits import Bits, Planes, pack_planes
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError, UsageError

NAMES = ("random", "seed", "zeros", "picture")
FILES = (".rle", ".png", ".npy")
SHAPES = ("[H, W]", "[H, W, C]")
"""Of the cells in a file."""
GRAMMAR = "a start is random, seed, zeros, picture (the circuit's own), or a file that ends in .rle, .png or .npy"


def file_of(start: str) -> Path | None:
    """The file that a start names, None where it is one of `NAMES`. Raises UsageError."""
    if start in NAMES:
        return None
    path = Path(start)
    if path.suffix.lower() not in FILES:
        raise UsageError(f"{start!r} is not a start: {GRAMMAR}.")
    if not path.is_file():
        raise UsageError(f"There is no start file {path}.")
    return path


def size_of(path: Path) -> tuple[int, int]:
    """Height and width of a start's file. Raises DataError."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return numbers_in(path, "start", *SHAPES).shape[:2]
    return rle.size(path) if suffix == ".rle" else pictures.size(path)


def planes_of(spec: SimulationSpec, start: str, units: int) -> Planes:
    """The start of a simulation; `units` is the probability of a 1 of a random one, as in `bernoulli`.

    What a file holds is put in the middle of the grid. Raises DataError and UsageError.
    """
    path = file_of(start)
    if path is not None:
        _check_room(spec, size_of(path), str(path))
        return _placed(spec, _read(spec, path))
    if start == "picture":
        return _placed(spec, _own_picture(spec))
    planes = np.zeros((spec.height, spec.channels, spec.words), dtype=np.uint64)
    if start == "random":
        for channel in range(spec.channels):
            key = bernoulli.start_key(spec.seed, channel)
            planes[:, channel] = bernoulli.coins(key, spec.height, spec.words, units)
        # The last word of a row may hold fewer than 64 cells, and the bits beyond them must be 0.
        planes[..., -1] &= spec.last_word
    elif start == "seed":
        planes[spec.height // 2, :, spec.width // 2 // 64] = 1 << spec.width // 2 % 64
    return planes


def _own_picture(spec: SimulationSpec) -> Bits:
    netlist = spec.netlist
    own = netlist.scenario.grid(netlist.origin) if netlist.scenario and netlist.scenario.start == "picture" else None
    if own is None:
        raise UsageError(f"The circuit has no start picture of its own: {GRAMMAR}.")
    _check_room(spec, own.shape[:2], "The circuit's own picture")
    return own


def _check_room(spec: SimulationSpec, size: tuple[int, ...], name: str) -> None:
    height, width = size
    if height > spec.height or width > spec.width:
        raise DataError(
            f"{name} has {width}x{height} cells, more than the grid of {spec.width}x{spec.height}: give a larger "
            "--size, or leave it out."
        )


def _placed(spec: SimulationSpec, cells: Bits) -> Planes:
    """`cells [h, w, c]` in the middle, in the first channels."""
    height, width = cells.shape[:2]
    grid = np.zeros((spec.height, spec.width, spec.channels), dtype=np.uint8)
    top, left = (spec.height - height) // 2, (spec.width - width) // 2
    grid[top : top + height, left : left + width, : cells.shape[2]] = cells
    return pack_planes(grid)


def _read(spec: SimulationSpec, path: Path) -> Bits:
    """uint8 `[h, w, c]`, at most the channels of the circuit."""
    suffix = path.suffix.lower()
    if suffix == ".rle":
        return rle.read(path, spec.channels)
    if suffix == ".png":
        return pictures.read(path, spec.channels, spec.netlist.visible)
    array = bits_in(path, "start", *SHAPES)
    cells = array if array.ndim == 3 else array[..., None]
    if cells.shape[2] not in (1, spec.channels):
        raise DataError(
            f"{path} has {cells.shape[2]} channels, but the circuit has {spec.channels}: expected an array [H, W] or "
            f"[H, W, {spec.channels}]."
        )
    return cells
