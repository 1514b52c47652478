"""Diagnosis of recordings that contradict themselves: search for a common mistake, such as swapped axes, as the cause.

A recording follows a rule if cells with equal neighbourhoods always have equal next states. This is evidence of a rule
only if several neighbourhoods occur more than once.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.core.neighbourhoods import neighbourhoods

CELLS = 1 << 18
"""Approximate number of cells compared per possible mistake, which takes a fraction of a second."""
SIDE = 512
"""Maximum number of rows and of columns that are compared; the rest of a larger grid is ignored."""
REPEATED = 8
"""Minimum number of neighbourhoods that must occur more than once as evidence of a rule."""
MOST_CHANNELS = 32
"""Maximum number of channels to compare; with more channels, equal cells are too rare."""
COLOURS = 16
"""Maximum number of colours in a drawing; images that were scaled or compressed have more."""

Frames = npt.NDArray[Any]
"""Recording as states `[T, H, W]` or bits `[T, H, W, C]`."""
Reading = tuple[str, Frames, Frames]
"""Possible mistake, as part of a sentence, and the cells before and after each step once it is corrected."""


def explanation(recording: Frames) -> str:
    """Return the end of an error message that explains a contradiction; empty if there is no explanation."""
    some = recording[: max(6, 16 * CELLS // math.prod(recording.shape[1:3]))]
    if mistake := first_fit(chain(other_axes(recording), _other_frames(some), _other_cells(some))):
        return f"; but it follows a rule {mistake}"
    if (share := _agreement(recording[:-1], recording[1:])) > 0.9:
        return f"; {100 * share:.1f} % of the cells follow a rule, and --data allows noise"
    if recording.ndim == 3 and (colours := len(np.unique(some))) > COLOURS:
        return f"; its {colours} colours may come from smooth scaling or compression: save one pixel per cell"
    return "; states [T, W] are those of a line: save states of a grid as [T, H, W]" if recording.shape[1] == 1 else ""


def first_fit(readings: Iterable[Reading]) -> str:
    """Return the first mistake whose correction makes the recording follow a rule; empty if there is none."""
    return next((mistake for mistake, before, after in readings if _agreement(before, after) == 1), "")


def bits_of(frames: Frames) -> Bits:
    """Return a recording as bits `[T, H, W, C]`; states `[T, H, W]` are converted to the fewest possible channels."""
    if frames.ndim == 3:
        frames = frames[..., None] >> np.arange(max(1, int(frames.max(initial=0)).bit_length())) & 1
    return frames.astype(np.uint8)


def _agreement(before: Frames, after: Frames) -> float:
    """Return the share of cells with the most frequent next state for their neighbourhood; 0 without evidence."""
    shown = max(2, CELLS // max(1, math.prod(before.shape[1:3])))
    x, y = (bits_of(frames[:shown, :SIDE, :SIDE]) for frames in (before, after))
    # Cells at the border of a cropped grid lack some neighbours.
    inner = np.s_[:, 1:-1, 1:-1] if x.shape[1:3] != before.shape[1:3] else np.s_[:]
    channels, shares = y.shape[-1], [0.0]
    for is_periodic in (True, False) if x.size and channels <= MOST_CHANNELS else ():
        kinds = neighbourhoods(x, is_periodic, "moore").reshape(x.shape[:3])[inner].ravel()
        successors = (y @ (1 << np.arange(channels)))[inner].ravel()
        pairs, counts = np.unique(kinds << channels | successors, return_counts=True)
        most = np.zeros(kinds.max() + 1, dtype=np.int64)
        np.maximum.at(most, pairs >> channels, counts)
        if np.count_nonzero(np.bincount(kinds) > 1) >= REPEATED:
            shares.append(most.sum() / len(kinds))
    return max(shares)


def other_axes(frames: Frames) -> Iterator[Reading]:
    """Yield possible readings of an array that has its axes in the wrong order."""
    orders = [(-1, 0, "with its last axis as time")]
    if frames.ndim == 4:
        orders += [(1, -1, "with its second axis as channels"), (2, 0, "with its third axis as time")]
        cells = (-1, *frames.shape[2:])
        several = f"as {len(frames)} recordings [T, H, W]: give them to --data as frames [N, T, H, W, 1]"
        yield several, frames[:, :-1].reshape(cells), frames[:, 1:].reshape(cells)
    for source, target, mistake in orders:
        moved = np.moveaxis(frames, source, target)
        yield f"{mistake}: save np.moveaxis(frames, {source}, {target})", moved[:-1], moved[1:]


def _other_frames(frames: Frames) -> Iterator[Reading]:
    """Yield possible readings of a recording that has superfluous frames or lacks frames."""
    new = frames[np.r_[True, (frames[1:] != frames[:-1]).reshape(len(frames) - 1, -1).any(axis=1)]]
    yield "without repeated frames", new[:-1], new[1:]
    yield "with every second frame left out: save frames[::2]", frames[::2][:-1], frames[::2][1:]
    # A cell after two steps depends on 5x5 cells, the neighbourhoods of its 3x3 neighbours.
    bits = bits_of(frames[: max(3, CELLS // math.prod(frames.shape[1:3]))])
    for is_periodic in (True, False):
        around = 1 + neighbourhoods(bits[:-1], is_periodic, "moore").reshape(bits[1:].shape[:3])
        yield "of two steps per frame: record every step, not every second one", around, bits[1:]


def _other_cells(frames: Frames) -> Iterator[Reading]:
    """Yield possible readings of images as cells: without the margin or grid lines, or with one pixel per cell."""
    if frames.ndim == 4:
        return
    rows, columns = (np.flatnonzero((frames != frames[0, 0, 0]).any(axis=(0, axis))) for axis in (2, 1))
    for margin in ("", "its margin")[: 1 + bool(len(rows))]:
        part = frames[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if margin else frames
        for width in range(4):  # width of the grid lines in pixels
            faults = " and ".join(filter(None, (margin, "its grid lines" if width else "")))
            for cells, scale in ((part, ""), (_sampled(part), "with one pixel per cell")):
                yield f"{f'without {faults}' if faults else ''} {scale}".strip(), cells[:-1], cells[1:]
            part = _without_lines(_without_lines(part, 1), 2)


def _sampled(frames: Frames) -> Frames:
    """Return frames with one pixel per cell, from cells of any width and height in pixels."""
    for axis in (1, 2):
        changes = np.diff(frames, axis=axis).any(axis=(0, 3 - axis))
        frames = frames.take(np.flatnonzero(np.r_[True, changes]), axis=axis)
    return frames


def _without_lines(frames: Frames, axis: int) -> Frames:
    """Return frames without grid lines along `axis`: equally spaced rows or columns of a single colour."""
    are_plain = (frames == frames.take([0], 3 - axis)[:1]).all(axis=(0, 3 - axis))
    for distance in range(2, min(64, len(are_plain) // 2) + 1):
        for start in range(distance):
            if are_plain[start::distance].all():
                return np.delete(frames, np.s_[start::distance], axis)
    return frames
