"""Samples from a recorded automaton: pairs of frames of a film, or of a pattern that a named rule moves.

    .gif     a picture a frame; colours are states, the darkest 0, and a cell may be a square of several pixels
    .npy     [T, H, W] or, of a line, [T, W] of states, or [T, H, W, C] of bits; of two values, say 0 and 255, the
             larger is 1
    pattern  RLE, plain text, Life 1.05 or 1.06, or MacroCell, moved by the rule that it states, or another

A state is a cell's channels as bits, channel 0 the lowest. Each pair is a sample of one step.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits import misread, rle
from difflogic.circuits.misread import bits_of
from difflogic.circuits.readers import rule as readers
from difflogic.circuits.readers import source, zoo
from difflogic.config.dataset import Dataset
from difflogic.core import patterns
from difflogic.errors import DataError, LimitError, UsageError
from difflogic.system.array_files import UNREADABLE, numbers_in, reason
from difflogic.system.cache import warn

FRAMES = 50
"""Of a pattern, where nobody says how many."""
ROOM = 4
"""A pattern moves on a torus so many times as large as itself, where nobody says how large."""
MOST_CHANNELS = 8
MOST_CELLS = 1 << 27
"""Of all frames: a GB, as they are compared."""

States = npt.NDArray[np.int64]
Rule = Callable[[States], States]
"""From the states `[H, W]` of a torus to the next."""


def samples(
    path: Path, rule: str | None = None, frames: int | None = None, size: tuple[int, int] | None = None
) -> Dataset:
    """Pairs of consecutive frames: the first `frames`, or all; `rule` and `size`, height and width, are for patterns.

    Raises DataError for what is no film, one frame, or a film that contradicts itself on a torus and with 0 outside
    alike; UsageError for what a film has no use for.
    """
    kind = path.suffix.lower()
    if patterns.is_pattern(path):
        film = _moved(path, rule, frames or FRAMES, size)
    elif kind in (".gif", ".npy"):
        if rule is not None or size is not None:
            raise UsageError(f"--recording-rule and --size are for patterns: {path} is a recording already.")
        film = (_gif(path) if kind == ".gif" else _npy(path))[:frames]
    else:
        raise UsageError(f"A film is .gif or .npy, a pattern {patterns.FORMATS}, got {str(path)!r}.")
    if len(film) < 2:
        raise DataError(f"{path} has one frame: a film needs at least 2.")
    bits = bits_of(film)
    dataset = Dataset.of(bits[:-1], bits[1:])
    contradictions = [dataset.contradiction(is_periodic) for is_periodic in (True, False)]
    if all(contradictions):
        raise DataError(
            f"{path} contradicts itself, so that no rule of 3x3 cells made it: {contradictions[0]}"
            f"{misread.explanation(film)}."
        )
    # No two cells look alike if an axis of the grid is taken for that of channels, so nothing contradicts itself.
    if film.ndim == 4 and film.shape[-1] > MOST_CHANNELS and (mistake := misread.first_fit(misread.other_axes(film))):
        raise DataError(f"{path} has {film.shape[-1]} channels as bits [T, H, W, C], but it follows a rule {mistake}.")
    return dataset


def _npy(path: Path) -> npt.NDArray[Any]:
    film = numbers_in(path, "film", "[T, W]", "[T, H, W]", "[T, H, W, C]")
    _check_size(path, film.size)
    if not film.size:
        raise DataError(f"{path} is empty: expected states [T, H, W], or bits [T, H, W, C].")
    if film.ndim == 2:
        film = np.expand_dims(film, 1)
    if film.dtype.kind == "f" and len(others := np.flatnonzero(film != np.rint(film))):
        value = film.flat[others[0]]
        raise DataError(f"{path} must hold the states or bits of cells, which are whole numbers, got {value}.")
    least, largest = film.min(), film.max()
    if least == 0 and largest > 1 and np.isin(film, (0, largest)).all():
        warn(f"The film {path} holds 0 and {largest} alone: {largest} is read as 1.")
        return np.asarray(film > 0, dtype=np.int64)
    most = 1 if film.ndim == 4 else (1 << MOST_CHANNELS) - 1
    if least < 0 or largest > most:
        raise DataError(f"The states in {path} must be 0 to {most}, got {least} to {largest}.")
    return np.asarray(film, dtype=np.int64)


def _gif(path: Path) -> States:
    from PIL import Image, ImageSequence

    try:
        with Image.open(path, formats=["GIF"]) as picture:
            _check_size(path, getattr(picture, "n_frames", 1) * math.prod(picture.size))
            pixels = np.stack([np.asarray(each.convert("RGB")) for each in ImageSequence.Iterator(picture)])
    except (*UNREADABLE, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"Cannot read the film {path}: {reason(error)}.") from error
    found, states = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    if len(found) > 1 << MOST_CHANNELS:
        raise DataError(f"{path} has {len(found)} colours: expected one for each state of a cell, as of a drawing.")
    # The darkest is 0, by the weights of the eye, so that black, or what is nearest to it, is a cell that is off.
    order = np.argsort(np.argsort(found @ np.array([299, 587, 114]), kind="stable"))
    film: States = order[states.reshape(pixels.shape[:3])]
    side = _cell_side(film)
    return film[:, ::side, ::side]


def _check_size(path: Path, cells: int) -> None:
    """Raises LimitError before they are made."""
    if cells > MOST_CELLS:
        raise LimitError(
            f"The film {path} has {cells} cells in all its frames: expected at most {MOST_CELLS}, give less of it."
        )


def _cell_side(film: States) -> int:
    """Pixels of a cell: what all places have in common at which a colour changes."""
    side = math.gcd(*film.shape[1:])
    for axis in (1, 2):
        changes = np.diff(film, axis=axis).any(axis=tuple({0, 1, 2} - {axis}))
        side = math.gcd(side, *(np.flatnonzero(changes) + 1).tolist())
    return side


def _moved(path: Path, rule: str | None, frames: int, size: tuple[int, int] | None) -> States:
    """`[frames, H, W]`: a pattern in the middle of a torus, and what becomes of it."""
    pattern, stated, is_periodic = patterns.read(path)
    name = rule or stated
    if not name:
        raise UsageError(f"{path} does not say which rule moves it: name one with --recording-rule, say B3/S23.")
    step = named(name)
    patterns.check_states(pattern, name)
    room = 1 if is_periodic is not None else ROOM
    height, width = size or tuple(max(3, room * side) for side in pattern.shape)
    if height < pattern.shape[0] or width < pattern.shape[1]:
        rows, columns = pattern.shape
        raise UsageError(f"The pattern in {path} is {columns} cells wide and {rows} high: give a larger --size.")
    _check_size(path, frames * height * width)
    top, left = (height - pattern.shape[0]) // 2, (width - pattern.shape[1]) // 2
    grid = np.zeros((height, width), dtype=np.int64)
    grid[top : top + pattern.shape[0], left : left + pattern.shape[1]] = pattern
    film = [grid]
    while len(film) < frames:
        # A torus with a border that is empty before each step is a plane.
        film.append(step(np.pad(film[-1], 1))[1:-1, 1:-1] if is_periodic is False else step(film[-1]))
    return np.stack(film)


def notation(path: Path, rule: str | None) -> str:
    """Return the rule that moves a pattern, its own or another one, with the grid that it bounds."""
    pattern = patterns.read(path)
    height, width = pattern.states.shape
    grid = "" if pattern.is_periodic is None else f":{'PT'[pattern.is_periodic]}{width},{height}"
    return (rule or pattern.rule) + grid


def named(name: str) -> Rule:
    """Return the rule of a notation, a `.rule` file or a circuit of the zoo on its states. Raises ConfigError."""
    is_known = name.lower() in zoo.names() or readers.named(Path(name)) is not None
    known = name.lower() if name.lower() in zoo.names() else name
    netlist = source.load(known).netlist if is_known else readers.rule_netlist(name, periodic=True)

    def step(grid: States) -> States:
        bits = (grid[..., None] >> np.arange(netlist.channels) & 1).astype(np.uint8)
        return rle.numbers(netlist.after(bits, 1))

    return step
