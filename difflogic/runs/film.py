"""The states of a rollout as pictures: a GIF or APNG that moves, a PNG strip that does not, and channels as tiles."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from PIL import Image

Pixels = npt.NDArray[np.uint8]
"""RGB `[..., h, w, 3]`, a pixel per cell."""

FRAME_MS = 120
LAST_FRAME_MS = 1500
WIDTH = 512
"""A picture is scaled so that its longer side comes near to so many pixels..."""
MAX_SCALE = 8
"""...by at most so many pixels a cell."""
STRIP_WIDTH = 1600
"""A strip goes on in the next row when it is wider."""
GAP = (128, 128, 128)
"""Between tiles."""
PAPER, INK = (224, 224, 224), (0, 0, 0)
MARGIN = 6


def tiles(states: Pixels) -> Pixels:
    """RGB `[..., h, w, 3]` of 0/1 states `[..., H, W, C]`: every channel in black and white, row by row, C of them."""
    channels = states.shape[-1]
    # As square as can be: 8 channels are 3 columns in 3 rows, and one tile stays grey.
    columns = math.ceil(math.sqrt(channels))
    rows = math.ceil(channels / columns)
    height, width = states.shape[-3:-1]
    canvas = np.empty((*states.shape[:-3], rows * (height + 1) - 1, columns * (width + 1) - 1, 3), dtype=np.uint8)
    canvas[:] = GAP
    for channel in range(channels):
        top, left = channel // columns * (height + 1), channel % columns * (width + 1)
        canvas[..., top : top + height, left : left + width, :] = states[..., channel, None] * np.uint8(255)
    return canvas


def scale_for(frames: Pixels) -> int:
    """Pixels a cell, where nobody asked for others."""
    longest: int = max(frames.shape[-3:-1])
    return max(1, min(MAX_SCALE, WIDTH // longest))


def animation(frames: Pixels, kind: str, scale: int | None = None, frame_ms: int = FRAME_MS) -> bytes:
    """An endless `gif` or `apng` of `frames [n, h, w, 3]`, at most 256 colours, a pause on the last one."""
    images = _indexed(frames, scale or scale_for(frames))
    # The end is what a viewer wants to see: an animation that begins again at once would hide it.
    durations = [frame_ms] * (len(images) - 1) + [max(frame_ms, LAST_FRAME_MS)]
    buffer = io.BytesIO()
    images[0].save(
        buffer,
        {"gif": "GIF", "apng": "PNG"}[kind],
        save_all=True,
        append_images=images[1:],
        duration=durations,
        loop=0,
    )
    return buffer.getvalue()


def strip(frames: Pixels, labels: Sequence[str], scale: int | None = None) -> bytes:
    """A PNG of `frames [n, h, w, 3]` side by side, in as many rows as it takes, each above its label."""
    from PIL import Image, ImageDraw, ImageFont

    pixels = _scaled(frames, scale or scale_for(frames))
    # The font that Pillow brings along, so that a strip looks alike everywhere.
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
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG")
    return buffer.getvalue()


def _scaled(frames: Pixels, scale: int) -> Pixels:
    return frames.repeat(scale, axis=-3).repeat(scale, axis=-2)


def _indexed(frames: Pixels, scale: int) -> list[Image.Image]:
    """Frames over one palette, so that no colour is approximated and files stay small."""
    from PIL import Image

    # A pixel as one number, 0xRRGGBB, so that `unique` finds the colours, of which there are few.
    packed = frames.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    palette, places = np.unique(packed, return_inverse=True)
    flat = [channel for color in palette.tolist() for channel in (color >> 16, color >> 8 & 255, color & 255)]
    images = []
    for frame in places.reshape(packed.shape).astype(np.uint8):
        image = Image.fromarray(frame.repeat(scale, axis=0).repeat(scale, axis=1), mode="P")
        image.putpalette(flat)
        images.append(image)
    return images
