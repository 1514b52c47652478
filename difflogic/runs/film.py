"""Drawings of rollouts: an animated GIF or APNG, a PNG strip, and channels as tiles.

Cells with six neighbours are drawn as hexagons. Images of a one-row grid show all steps so far, earlier steps above.
"""

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Pixels = npt.NDArray[np.uint8]
"""RGB values uint8 `[..., h, w, 3]` with one pixel per cell."""

FRAME_MS = 120
LAST_FRAME_MS = 1500
WIDTH = 512
"""Default maximum length in pixels of the longer side of an animation."""
STRIP_SCALE = 8
"""Default maximum width of a cell in a strip, in pixels."""
STRIP_WIDTH = 1600
"""Maximum width of a strip in pixels; frames beyond it continue in the next row."""
MOST_ROWS = 256
"""Maximum number of steps, and of cells, in an animation of a one-row grid."""
GAP = (128, 128, 128)
PAPER, INK = (224, 224, 224), (0, 0, 0)
MARGIN = 6


def tiles(states: Pixels) -> Pixels:
    """Draw every channel of 0/1 states `[..., H, W, C]` in black and white, as RGB tiles `[..., h, w, 3]`."""
    channels = states.shape[-1]
    # Example: 8 channels need 3 columns and 3 rows, and one tile remains grey.
    columns = math.ceil(math.sqrt(channels))
    rows = math.ceil(channels / columns)
    height, width = states.shape[-3:-1]
    canvas = np.empty((*states.shape[:-3], rows * (height + 1) - 1, columns * (width + 1) - 1, 3), dtype=np.uint8)
    canvas[:] = GAP
    for channel in range(channels):
        top, left = channel // columns * (height + 1), channel % columns * (width + 1)
        canvas[..., top : top + height, left : left + width, :] = states[..., channel, None] * np.uint8(255)
    return canvas


def beside(images: Sequence[Pixels]) -> Pixels:
    """Join images `[h, w, 3]` of the same height side by side, separated by columns of grey cells."""
    gap = np.full((images[0].shape[0], 1, 3), GAP, dtype=np.uint8)
    parts = [part for image in images for part in (gap, image)]
    return np.concatenate(parts[1:], axis=1)


def scale_for(frames: Pixels) -> int:
    """Return the default width of a cell in pixels for an animation of `frames` `[..., h, w, 3]`."""
    longest: int = max(frames.shape[-3:-1])
    return max(1, WIDTH // longest)


def animation(
    frames: Pixels, kind: str, scale: int | None = None, frame_ms: int = FRAME_MS, neighbourhood: str = "moore"
) -> bytes:
    """Return `frames` `[n, h, w, 3]` of at most 256 colours as a looping `gif` or `apng`, with a longer last frame."""
    if frames.shape[1] == 1:
        frames = space_time(frames)
    images = _indexed(frames, pixels_of((frames.shape[1], frames.shape[2]), scale or scale_for(frames), neighbourhood))
    durations = [frame_ms] * (len(images) - 1) + [max(frame_ms, LAST_FRAME_MS)]
    form = {"gif": "GIF", "apng": "PNG"}[kind]
    return file_of(images[0], form, save_all=True, append_images=images[1:], duration=durations, loop=0)


def file_of(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """Return the contents of an image file in the format `form`; `options` are options of Pillow's `save`."""
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def space_time(frames: Pixels) -> Pixels:
    """Convert states of a one-row grid, `[n, 1, w, 3]`, to frames `[n, n, w, 3]` with all states so far, one per row.

    Steps and cells are thinned to at most MOST_ROWS, since the size of the frames grows with the square of the steps.
    """
    every = -(-len(frames) // MOST_ROWS)
    frames = frames[(len(frames) - 1) % every :: every, :, :: -(-frames.shape[2] // MOST_ROWS)]  # keeps the last frame
    count = len(frames)
    shown = np.where(np.tri(count, dtype=bool)[..., None, None], frames[None, :, 0], np.array(PAPER, dtype=np.uint8))
    return shown.astype(np.uint8)


def strip(frames: Pixels, labels: Sequence[str], scale: int | None = None, neighbourhood: str = "moore") -> bytes:
    """Return a PNG with `frames` `[n, h, w, 3]` side by side in one or more rows, each frame above its label."""
    if frames.shape[1] == 1:
        frames, labels = frames[None, :, 0], [" to ".join(dict.fromkeys([labels[0], labels[-1]]))]
    scale = scale or min(STRIP_SCALE, scale_for(frames))
    places = pixels_of((frames.shape[1], frames.shape[2]), scale, neighbourhood)
    pixels = np.stack([enlarged(frame, places, np.array(PAPER, dtype=np.uint8)) for frame in frames])
    # Unlike system fonts, the default font of Pillow is the same on every machine.
    font = ImageFont.load_default()
    line = math.ceil(font.getbbox("0123456789 step")[3]) + MARGIN
    height, width = pixels.shape[1] + line, pixels.shape[2]
    columns = min(len(frames), max(1, (STRIP_WIDTH - MARGIN) // (width + MARGIN)))
    rows = math.ceil(len(frames) / columns)
    size = (columns * (width + MARGIN) + MARGIN, rows * (height + MARGIN) + MARGIN)
    canvas = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(canvas)
    for index, (frame, label) in enumerate(zip(pixels, labels, strict=True)):
        left = MARGIN + index % columns * (width + MARGIN)
        top = MARGIN + index // columns * (height + MARGIN)
        canvas.paste(Image.fromarray(frame), (left, top))
        draw.text((left, top + pixels.shape[1] + 2), label, INK, font)
    return file_of(canvas)


def pixels_of(grid: tuple[int, int], scale: int, neighbourhood: str = "moore") -> npt.NDArray[np.int64]:
    """Return, for each pixel `[h, w]` of an image of an H*W grid, the index of its cell, or H*W outside all cells.

    Square cells have sides of `scale` pixels. Hexagons have a corner at the top and are `scale` pixels wide, at least
    4. Each row of hexagons is half a cell to the left of the row above, so that the cell in row r and column c
    touches the cells of row r - 1 in columns c - 1 and c, but not in column c + 1.
    """
    height, width = grid
    if neighbourhood != "hex":
        cells = np.arange(height * width, dtype=np.int64).reshape(height, width)
        return cells.repeat(scale, axis=0).repeat(scale, axis=1)
    # A pixel belongs to the cell with the nearest centre, which makes the cells hexagons. Candidates are the nearest
    # cell in the row of centres just above the pixel, and the nearest cell in the row below that.
    wide = max(4, scale)
    row_height, radius = wide * np.sqrt(3) / 2, wide / np.sqrt(3)
    y = np.arange(np.ceil((height - 1) * row_height + 2 * radius))[:, None] + 0.5 - radius
    x = np.arange(np.ceil((width + (height - 1) / 2) * wide))[None] + 0.5
    rows = np.floor(y / row_height) + np.arange(2)[:, None, None]
    left = ((height - 1 - rows) / 2 + 0.5) * wide
    columns = np.round((x - left) / wide)
    away = (x - left - columns * wide) ** 2 + (y - rows * row_height) ** 2
    nearer = away.argmin(axis=0)[None]
    row, column = (np.take_along_axis(np.broadcast_to(axis, away.shape), nearer, 0)[0] for axis in (rows, columns))
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return np.where(inside, row * width + column, height * width).astype(np.int64)


def enlarged(frame: npt.NDArray[Any], places: npt.NDArray[np.int64], around: npt.ArrayLike) -> npt.NDArray[Any]:
    """Enlarge a frame `[h, w, ...]`; `places` is the result of `pixels_of`, `around` the value outside all cells."""
    cells = frame.reshape(-1, *frame.shape[2:])
    return np.concatenate([cells, np.asarray(around, dtype=frame.dtype)[None]])[places]


def _indexed(frames: Pixels, pixels: npt.NDArray[np.int64]) -> list[Image.Image]:
    """Convert frames to images with a common palette, so that colours are exact and files are small."""
    # Each colour becomes a number 0xRRGGBB, for `unique`.
    packed = frames.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    around = [PAPER[0] << 16 | PAPER[1] << 8 | PAPER[2]] if pixels.max() == packed[0].size else []
    palette, places = np.unique(np.append(packed, np.array(around, dtype=np.uint32)), return_inverse=True)
    flat = [channel for color in palette.tolist() for channel in (color >> 16, color >> 8 & 255, color & 255)]
    images = []
    numbers = places.astype(np.uint8)
    for frame in numbers[: packed.size].reshape(packed.shape):
        image = Image.fromarray(enlarged(frame, pixels, numbers[-1]), mode="P")
        image.putpalette(flat)
        images.append(image)
    return images
