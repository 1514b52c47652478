"""Initial states of a simulation: random, a seed cell, zeros, the circuit's own image, or a file."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from difflogic.circuits.simulation import pictures
from difflogic.core import bernoulli, patterns
from difflogic.core.bits import Bits, Planes, pack_planes
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError, UsageError
from difflogic.system.array_files import bits_in, numbers_in

NAMES = ("random", "seed", "zeros", "picture")
SHAPES = ("[H, W]", "[H, W, C]")
"""Shapes of arrays in .npy files of initial states."""
GRAMMAR = "expected random, seed, zeros, picture (the circuit's own), or a file: a pattern, .png or .npy"


class StartFile(NamedTuple):
    """Size and boundary of a file's initial state, or of the bounded grid that a pattern's rule specifies."""

    height: int
    width: int
    is_periodic: bool | None = None
    """True if a pattern's rule specifies a torus, False for a plane; None if no boundary is specified."""


def file_of(start: str) -> Path | None:
    """Return `start` as the path of a file, or None if it is one of `NAMES`. Raises UsageError if it is neither."""
    if start in NAMES:
        return None
    path = Path(start)
    if path.is_file():
        return path
    raise UsageError(
        f"The file {path} does not exist." if path.suffix else f"Unknown initial state {start!r}: {GRAMMAR}."
    )


def start_file(start: str) -> StartFile | None:
    """Return the size of the file `start`, or None if `start` is one of `NAMES`. Raises DataError or UsageError."""
    if (path := file_of(start)) is None:
        return None
    kind = _kind_of(path)
    if kind == ".npy":
        height, width = numbers_in(path, "start", *SHAPES).shape[:2]
        return StartFile(height, width)
    if kind == ".png":
        return StartFile(*pictures.size(path))
    pattern = patterns.read(path)
    height, width = pattern.states.shape
    return StartFile(height, width, pattern.is_periodic)


def _kind_of(path: Path) -> str:
    """Return `.npy` or `.png`, or an empty text for a pattern, which is recognised by its contents."""
    suffix = path.suffix.lower()
    return suffix if suffix in (".npy", ".png") and not patterns.is_pattern(path) else ""


def planes_of(spec: SimulationSpec, start: str, units: int) -> Planes:
    """Return the initial state named `start`; in a random state, each bit is 1 with probability `units / 2^16`.

    The cells of a file are centred in the grid. Raises DataError or UsageError.
    """
    path = file_of(start)
    if path is not None:
        return _placed(spec, _read(spec, path), str(path))
    if start == "picture":
        scenario = spec.netlist.scenario
        own = scenario.grid(spec.netlist.origin) if scenario and scenario.start == "picture" else None
        if own is None:
            raise UsageError(f"The circuit has no initial image for `picture`: {GRAMMAR}.")
        return _placed(spec, own, "The circuit's own image")
    planes = np.zeros((spec.height, spec.channels, spec.words), dtype=np.uint64)
    if start == "random":
        for channel in range(spec.channels):
            key = bernoulli.start_key(spec.seed, channel)
            planes[:, channel] = bernoulli.coins(key, spec.height, spec.words, units)
        # The last word of a row may contain fewer than 64 cells, and the bits after these must be 0.
        planes[..., -1] &= spec.last_word
    elif start == "seed":
        planes[spec.height // 2, :, spec.width // 2 // 64] = 1 << spec.width // 2 % 64
    return planes


def _placed(spec: SimulationSpec, cells: Bits, name: str) -> Planes:
    """Return a grid of zeros with `cells`, uint8 `[h, w, c]`, in the centre. Raises DataError, which names `name`."""
    height, width = cells.shape[:2]
    if height > spec.height or width > spec.width:
        raise DataError(
            f"{name} has {width}x{height} cells, more than the grid of {spec.width}x{spec.height}: use a larger "
            "--size, or omit it."
        )
    grid = np.zeros((spec.height, spec.width, spec.channels), dtype=np.uint8)
    top, left = (spec.height - height) // 2, (spec.width - width) // 2
    grid[top : top + height, left : left + width, : cells.shape[2]] = cells
    return pack_planes(grid)


def _read(spec: SimulationSpec, path: Path) -> Bits:
    """Return the cells of a start file, uint8 `[h, w, c]`, with at most the circuit's channels. Raises DataError."""
    kind = _kind_of(path)
    if not kind:
        return patterns.bits_of(patterns.read(path, spec.channels).states, spec.channels)
    if kind == ".png":
        return pictures.read(path, spec.channels, spec.netlist.visible)
    array = bits_in(path, "start", *SHAPES)
    cells = array if array.ndim == 3 else array[..., None]
    if cells.shape[2] not in (1, spec.channels):
        raise DataError(
            f"{path} has {cells.shape[2]} channels, but the circuit has {spec.channels}: expected an array [H, W] or "
            f"[H, W, {spec.channels}]."
        )
    return cells
