"""Training samples from a recording of an automaton, or from a pattern and a rule that computes next states.

    .gif     one image per frame; colours are states, the darkest is 0, and a cell may be a square of several pixels
    .npy     states [T, H, W], states of a line [T, W], or bits [T, H, W, C]; if the only values are 0 and one larger
             value, this counts as 1
    pattern  RLE, plain text, Life 1.05 or 1.06, or MacroCell, run by the pattern's rule or by a named rule

The bits of a state are a cell's channels, lowest first. Each pair of successive frames is a sample of one step.
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
"""Default number of frames generated from a pattern."""
ROOM = 4
"""Default ratio of the torus's side to the pattern's side."""
MOST_CHANNELS = 8
MOST_CELLS = 1 << 27
"""Maximum total number of cells in all frames, since comparing them takes a gigabyte of memory."""

States = npt.NDArray[np.int64]
Rule = Callable[[States], States]
"""Function from states `[H, W]` on a torus to the next states."""


def samples(
    path: Path, rule: str | None = None, frames: int | None = None, size: tuple[int, int] | None = None
) -> Dataset:
    """Return the pairs of consecutive frames in a file as samples; `frames` is the maximum number of frames.

    `rule` and `size` (height, width) require a pattern. Raises UsageError for unsuitable files or options, or DataError
    for a single frame or a recording that contradicts itself both on a torus and with a zero boundary.
    """
    kind = path.suffix.lower()
    if patterns.is_pattern(path):
        recording = _animated(path, rule, frames or FRAMES, size)
    elif kind in (".gif", ".npy"):
        if rule is not None or size is not None:
            raise UsageError(f"--recording-rule and --size require a pattern, but {path} is a recording.")
        recording = (_gif(path) if kind == ".gif" else _npy(path))[:frames]
    else:
        raise UsageError(f"Expected a recording, .gif or .npy, or a pattern, {patterns.FORMATS}, got {str(path)!r}.")
    if len(recording) < 2:
        raise DataError(f"{path} has one frame: expected at least 2.")
    bits = bits_of(recording)
    dataset = Dataset.of(bits[:-1], bits[1:])
    contradictions = [dataset.contradiction(is_periodic) for is_periodic in (True, False)]
    if all(contradictions):
        raise DataError(
            f"{path} contradicts itself, so no rule of 3x3 cells can produce it: {contradictions[0]}"
            f"{misread.explanation(recording)}."
        )
    # If an axis of the grid is mistaken for channels, equal cells are so rare that contradictions hardly occur.
    channels = recording.shape[-1]
    if recording.ndim == 4 and channels > MOST_CHANNELS and (fix := misread.first_fit(misread.other_axes(recording))):
        raise DataError(f"{path} has {channels} channels as bits [T, H, W, C], but follows a rule if read {fix}.")
    return dataset


def _npy(path: Path) -> npt.NDArray[Any]:
    frames = numbers_in(path, "recording", "[T, W]", "[T, H, W]", "[T, H, W, C]")
    _check_size(path, frames.size)
    if not frames.size:
        raise DataError(f"{path} is empty: expected states [T, H, W], or bits [T, H, W, C].")
    if frames.ndim == 2:
        frames = np.expand_dims(frames, 1)
    if frames.dtype.kind == "f" and len(others := np.flatnonzero(frames != np.rint(frames))):
        value = frames.flat[others[0]]
        raise DataError(f"{path} must contain the states or bits of cells as integers, got {value}.")
    least, largest = frames.min(), frames.max()
    if least == 0 and largest > 1 and np.isin(frames, (0, largest)).all():
        warn(f"The recording {path} contains only 0 and {largest}: {largest} is read as 1.")
        return np.asarray(frames > 0, dtype=np.int64)
    most = 1 if frames.ndim == 4 else (1 << MOST_CHANNELS) - 1
    if least < 0 or largest > most:
        raise DataError(f"The states in {path} must be 0 to {most}, got {least} to {largest}.")
    return np.asarray(frames, dtype=np.int64)


def _gif(path: Path) -> States:
    from PIL import Image, ImageSequence

    try:
        with Image.open(path, formats=["GIF"]) as image:
            _check_size(path, getattr(image, "n_frames", 1) * math.prod(image.size))
            pixels = np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)])
    except (*UNREADABLE, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"Cannot read the recording {path}: {reason(error)}.") from error
    colours, states = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    if len(colours) > 1 << MOST_CHANNELS:
        raise DataError(
            f"{path} has {len(colours)} colours, one for each state, but cells have at most {1 << MOST_CHANNELS}."
        )
    # The darkest colour, by luma, is 0, so that black or the colour closest to it is a cell that is off.
    order = np.argsort(np.argsort(colours @ np.array([299, 587, 114]), kind="stable"))
    frames: States = order[states.reshape(pixels.shape[:3])]
    # A cell's width in pixels divides the position of every change of colour.
    side = math.gcd(*frames.shape[1:])
    for axis in (1, 2):
        changes = np.diff(frames, axis=axis).any(axis=tuple({0, 1, 2} - {axis}))
        side = math.gcd(side, *(np.flatnonzero(changes) + 1).tolist())
    return frames[:, ::side, ::side]


def _check_size(path: Path, cells: int) -> None:
    """Raise LimitError if a recording has more than MOST_CELLS cells in all frames."""
    if cells > MOST_CELLS:
        raise LimitError(
            f"The recording {path} has {cells} cells in all frames, expected at most {MOST_CELLS}: use a shorter one."
        )


def _animated(path: Path, rule: str | None, frames: int, size: tuple[int, int] | None) -> States:
    """Run a pattern from the centre of a grid, and return the states `[frames, H, W]`."""
    pattern, stated, is_periodic = patterns.read(path)
    name = rule or stated
    if not name:
        raise UsageError(f"{path} does not state its rule: name one with --recording-rule, for example B3/S23.")
    step = named(name)
    patterns.check_states(pattern, name)
    room = 1 if is_periodic is not None else ROOM
    height, width = size or tuple(max(3, room * side) for side in pattern.shape)
    if height < pattern.shape[0] or width < pattern.shape[1]:
        rows, columns = pattern.shape
        raise UsageError(f"The pattern in {path} is {columns} cells wide and {rows} high: use a larger --size.")
    _check_size(path, frames * height * width)
    top, left = (height - pattern.shape[0]) // 2, (width - pattern.shape[1]) // 2
    grid = np.zeros((height, width), dtype=np.int64)
    grid[top : top + pattern.shape[0], left : left + pattern.shape[1]] = pattern
    states = [grid]
    while len(states) < frames:
        # To simulate a plane on a torus, add an empty border before each step and remove it afterwards.
        states.append(step(np.pad(states[-1], 1))[1:-1, 1:-1] if is_periodic is False else step(states[-1]))
    return np.stack(states)


def notation(path: Path, rule: str | None) -> str:
    """Return `rule`, by default the pattern's, with the pattern's bounded grid if any, as in `B3/S23:T20,10`."""
    pattern = patterns.read(path)
    height, width = pattern.states.shape
    grid = "" if pattern.is_periodic is None else f":{'PT'[pattern.is_periodic]}{width},{height}"
    return (rule or pattern.rule) + grid


def named(name: str) -> Rule:
    """Return the step function of a rule's notation, a `.rule` file or a zoo circuit. Raises ConfigError."""
    path = name.lower() if name.lower() in zoo.names() else name
    is_loaded = path in zoo.names() or readers.named(Path(name)) is not None
    netlist = source.load(path).netlist if is_loaded else readers.rule_netlist(name, periodic=True)

    def step(grid: States) -> States:
        bits = (grid[..., None] >> np.arange(netlist.channels) & 1).astype(np.uint8)
        return rle.numbers(netlist.after(bits, 1))

    return step
