"""Images of states: PNG and GIF files, and arrays for display, scaled down for large grids."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits, Planes, unpack_planes
from difflogic.errors import DataError
from difflogic.runs.film import FRAME_MS, LAST_FRAME_MS, PAPER, enlarged, pixels_of, space_time

Picture = npt.NDArray[np.uint8]
"""Image with values 0 to 255: grey, `[h, w]`, or red, green and blue, `[h, w, 3]`."""

GREY: Picture = np.zeros((0, 3), dtype=np.uint8)
"""Empty palette, for circuits whose states have no colours."""
THRESHOLD = 128
"""Minimum value of a pixel in an image file for a bit of 1."""
GIF_SIDE = 512
"""Maximum length of a GIF's longer side in pixels; larger grids are scaled down."""
LEAST_SIDE = 256
"""Length of a GIF's longer side in pixels up to which the cells of a small grid are enlarged."""
_PIXELS = 1 << 24
"""Approximate number of bits to unpack at once."""


def shown(visible: int) -> int:
    """Return the number of channels in an image: three (red, green, blue) for three or more visible, otherwise one."""
    return 3 if visible >= 3 else 1


def picture(
    planes: Planes, width: int, visible: int, most: tuple[int, int] | None = None, palette: Picture = GREY
) -> Picture:
    """Return a state as an image; if it exceeds `most`, `(height, width)`, pixels are means of squares of cells."""
    channels = visible if len(palette) else shown(visible)
    height = len(planes)
    side = 1 if most is None else max(1, -(-height // most[0]), -(-width // most[1]))
    # A large grid is unpacked and scaled down in strips; the height of a strip is a multiple of `side`.
    rows = max(1, _PIXELS // (width * side * channels)) * side
    parts = []
    for top in range(0, height, rows):
        bits = unpack_planes(planes[top : top + rows, :channels], width)
        values = palette[bits @ (1 << np.arange(channels))] if len(palette) else bits * np.uint8(255)
        parts.append(_shrunk(values, side))
    image = np.concatenate(parts)
    return image if image.shape[-1] == 3 else image[..., 0]


def _shrunk(cells: Picture, side: int) -> Picture:
    """Return the means of squares with `side` cells per side; those at the right and bottom may be smaller."""
    if side == 1:
        return cells
    rows, columns = (np.arange(0, extent, side) for extent in cells.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(cells.astype(np.uint32), rows, axis=0), columns, axis=1)
    heights, widths = np.diff(rows, append=cells.shape[0]), np.diff(columns, append=cells.shape[1])
    means: Picture = (sums // (heights[:, None] * widths)[..., None]).astype(np.uint8)
    return means


def png(planes: Planes, width: int, visible: int, palette: Picture = GREY) -> bytes:
    """Return a state as the contents of a PNG file with one pixel per cell."""
    from PIL import Image

    image = Image.fromarray(picture(planes, width, visible, palette=palette))
    buffer = io.BytesIO()
    (image.convert("1") if image.mode == "L" else image).save(buffer, "PNG")
    return buffer.getvalue()


def history(rows: Sequence[Picture]) -> bytes:
    """Return the states of a one-dimensional automaton, from top to bottom, as the contents of a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.concatenate(rows)).save(buffer, "PNG")
    return buffer.getvalue()


def gif(pictures: Sequence[Picture], neighbourhood: str = "moore") -> bytes:
    """Return a looping GIF file with a pause on the last frame; hexagons and lines are drawn as in `runs.film`."""
    from PIL import Image

    images = np.stack(pictures)
    if images.ndim == 3:
        images = images[..., None].repeat(3, axis=3)
    if images.shape[1] == 1:
        images = space_time(images)
    height, width = images.shape[1:3]
    places = pixels_of((height, width), max(1, LEAST_SIDE // max(height, width)), neighbourhood)
    frames: list[Any] = [Image.fromarray(enlarged(image, places, PAPER)) for image in images]
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_FRAME_MS]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
    return buffer.getvalue()


def size(path: Path) -> tuple[int, int]:
    """Return height and width of an image file in pixels. Raises DataError."""
    width, height = _open(path).size
    return height, width


def read(path: Path, channels: int, visible: int) -> Bits:
    """Return an image file as bits, 1 for light pixels, uint8 `[H, W, C]`, C at most `channels`. Raises DataError."""
    image = _open(path)
    try:
        pixels = np.asarray(image.convert("RGB" if shown(visible) == 3 else "L"))
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{path} is a damaged image: {error}.") from error
    bits: Bits = (pixels >= THRESHOLD).astype(np.uint8).reshape(*pixels.shape[:2], -1)
    return bits[..., :channels]


def _open(path: Path) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(path.read_bytes()))
    except UnidentifiedImageError as error:
        raise DataError(f"{path} cannot be read as an image.") from error
    except Image.DecompressionBombError as error:
        raise DataError(f"{path} is too large for an image: save an initial state of this size as .npy.") from error
