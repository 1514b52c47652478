"""Conversion of images to the bits of cells.

A cell has one bit (2 colours), one bit each for red, green and blue (8), or two bits each (64): the high bits in
channels 0, 1 and 2, the low bits in 3, 4 and 5. Lanczos resampling scales a large image down and keeps its proportions,
as in the authors' notebook. Transparent pixels are off; if an image has any, all opaque pixels are on. A drawing that
is dark on light is inverted in lightness, so that its ink is on and keeps its hue. Pattern files of cellular automata
are read as images: with two states, state 1 is white; with more, the bits of a state are the bits of its colour.
`page/picture.js` follows the same rules.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.config.choices import COLORS
from difflogic.core import patterns
from difflogic.core.bits import Bits
from difflogic.errors import DataError
from difflogic.system.words import counted

if TYPE_CHECKING:
    from PIL import Image

CHANNELS = dict(zip(COLORS, (1, 3, 6), strict=True))
"""Number of channels for each number of colours."""
THRESHOLD = 0.26
"""Brightness above which a cell is on, and opacity above which a pixel is opaque, from 0 to 1. The paper's lizard is on
where red, green or blue is above it."""
LEVELS = np.array([1 / 6, 3 / 6, 5 / 6], dtype=np.float32)
"""Thresholds between the four levels of a channel in images of 64 colours."""
MAX_SIDE = 128
USUAL_SIZE = (24, 24)
"""Default width and height to which an image with a side above MAX_SIDE is scaled down."""
MAX_PIXELS = 4096 * 4096
"""Maximum number of pixels of a file, which is checked before the file is decoded."""
FORMATS = ("PNG", "GIF", "JPEG", "BMP", "WEBP", "PPM")
"""Accepted bitmap formats; files in other formats may contain programs, or need external programs to read them."""


class Picture(NamedTuple):
    """Image converted to the bits of cells."""

    bits: Bits
    """Bits of the cells, `[H, W, channels]`."""
    notices: tuple[str, ...] = ()
    """Sentences for the user about changes and lost details."""


def load(
    path: Path, colors: int | None = None, size: tuple[int, int] | None = None, threshold: float | None = None,
    invert: bool | None = None, channels: int = max(CHANNELS.values()),
) -> Picture:  # fmt: skip
    """Convert an image file to cells. Raises DataError if it is unreadable, animated, too large or dark everywhere.

    Args:
        path: The file.
        colors: Number of colours, 2, 8 or 64; None: the minimum that represents the image exactly, otherwise 8.
        size: Width and height to which the image is scaled down; None: USUAL_SIZE if a side is above MAX_SIDE.
        threshold: Brightness above which a cell is on; None: THRESHOLD.
        invert: Whether to invert the lightness; None: only if the image is dark on light.
        channels: Maximum number of channels that the default of `colors` may need.
    """
    if threshold is not None and colors == COLORS[-1]:
        raise DataError(f"For {colors} colours, omit `threshold`: they have four levels each of red, green and blue.")
    image, notices = upright(path), list[str]()
    sides = image.size
    if size is not None or max(sides) > MAX_SIDE:
        from PIL.Image import Resampling

        image.thumbnail(size or USUAL_SIZE, Resampling.LANCZOS)
    if image.size != sides:
        notices.append(f"The image is scaled down from {_sides(sides)} pixels to {_sides(image.size)} cells.")
    pixels = np.asarray(image)
    number = colors or _own_colors(pixels, channels)
    invert = False if invert is None and patterns.is_pattern(path) else invert  # states have no lightness
    bits, changed = _cells(path, pixels, number, THRESHOLD if threshold is None else threshold, invert)
    # A drawing whose only colour is white has identical channels.
    if colors is None and number > 2 and (bits == bits[..., :1]).all():
        bits = bits[..., :1]
    before, after = (len(np.unique(cells[_opaque(pixels)], axis=0)) for cells in (pixels, bits))
    if before > after:
        changed.append(f"The image's {before} colours are reduced to {after}.")
    return Picture(bits, (*notices, *changed))


def _cells(path: Path, pixels: Bits, colors: int, threshold: float, invert: bool | None) -> tuple[Bits, list[str]]:
    """Return the bits of pixels, and notices about inversion and about cells turned on or off. Raises DataError."""
    opaque, notices = _opaque(pixels), list[str]()
    rgb = pixels[..., :3].astype(np.float32) / np.float32(255)
    bits = _bits(rgb, opaque, colors, threshold)
    if invert is None and opaque.all() and is_dark_on_light(bits):
        invert = True
        notices.append("The image is dark on light and is inverted: set `invert` to false to learn its background.")
    if invert:
        rgb = rgb + 1 - rgb.max(axis=-1, keepdims=True) - rgb.min(axis=-1, keepdims=True)
        bits = _bits(rgb, opaque, colors, threshold)
    dark = opaque & ~bits.any(axis=-1)
    if dark.any() and not (opaque.all() or invert):
        has_white = colors > 2 and bits.all(axis=-1).any()
        bits[dark] = np.eye(bits.shape[-1], dtype=np.uint8)[-1] if has_white else 1
        notices.append(
            f"Opaque cells turn on: {counted(int(dark.sum()), 'dark cell')} in {'blue' if has_white else 'white'}."
        )
    elif dropped := int((rgb[dark].max(axis=-1) > threshold / 2).sum()):
        notices.append(f"{counted(dropped, 'faint cell')} of the image turned off: `threshold` is {threshold:g}.")
    if not bits.any():
        too = "light" if invert else "dark"
        raise DataError(f"{path} has no pixel that is on: all are transparent or too {too}.")
    return bits, notices


def _opaque(pixels: Bits) -> npt.NDArray[np.bool_]:
    return np.asarray(pixels[..., 3] > THRESHOLD * 255)


def _own_colors(pixels: Bits, channels: int) -> int:
    """Return an image's number of colours: 64 if these are exact and 8 are not, or 8; fewer for few `channels`."""
    rgb = pixels[_opaque(pixels)][:, :3]
    most = 8 if (rgb % 85).any() or not (rgb % 255).any() else 64
    return max(number for number in COLORS if CHANNELS[number] <= channels and number <= most)


def _drawn(path: Path, most: int) -> Image.Image:
    """Return a pattern file as an image of at most `most` pixels, with as few colours as possible. Raises DataError."""
    from PIL import Image

    states = patterns.read(path, max(CHANNELS.values())).states
    _check_pixels(path, (states.shape[1], states.shape[0]), most)
    if not states.any():
        raise DataError(f"No cell of the pattern {path} is on: expected at least one.")
    levels = patterns.bits_of(states, max(CHANNELS.values())).reshape(*states.shape, 2, 3)
    if states.max() == 1:
        levels[...] = states[..., None, None]
    elif states.max() < 1 << CHANNELS[8]:
        levels[..., 1, :] = levels[..., 0, :]
    return Image.fromarray((levels[..., 0, :] * 170 + levels[..., 1, :] * 85).astype(np.uint8)).convert("RGBA")


def saved(source: Any) -> Path:
    """Save a Pillow image or an array `[H, W]`, `[H, W, 3]` or `[H, W, 4]` in a temporary file; return its path.

    In an array without a value above 1, the value 1 is full brightness. The file is deleted when this process ends.
    Raises DataError.
    """
    from PIL import Image

    try:
        image = source
        if not isinstance(image, Image.Image):
            array = np.asarray(image, dtype=np.float32)
            array = array.squeeze(-1) if array.shape[-1] == 1 else array
            image = Image.fromarray((array * (255 if array.max() <= 1 else 1)).round().astype(np.uint8))
        image = _rgba(image)
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"`target` must be an image: the path of a file, an image of Pillow, or an array [H, W], [H, W, 3] or "
            f"[H, W, 4], got an object of type {type(source).__name__}."
        ) from error
    folder = Path(tempfile.mkdtemp(prefix="difflogic-image-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    image.save(folder / "target.png")
    return folder / "target.png"


def is_dark_on_light(bits: Bits) -> bool:
    """Return whether an image is white at its border and in most cells, but not all, like ink on paper."""
    white = np.asarray(bits.all(axis=-1))
    around = np.concatenate([white[0], white[-1], white[:, 0], white[:, -1]])
    # A drawing may touch the border, and ink is less than half of it, unlike a dark image on black.
    return bool(around.mean() > 0.9 and 0.5 < white.mean() < 1)


def _bits(rgb: npt.NDArray[np.float32], opaque: npt.NDArray[np.bool_], colors: int, threshold: float) -> Bits:
    above: npt.NDArray[np.bool_] = rgb > np.maximum(threshold, rgb.max(axis=-1, keepdims=True) / 2)
    bits = np.asarray(above.any(axis=-1, keepdims=True) if colors == 2 else above)
    if colors == COLORS[-1]:
        # Levels 0 to 3 of red, green and blue in two bits each, the three higher bits first: level 2 is 1, then 0.
        levels = (rgb[..., None] > LEVELS).sum(axis=-1)
        bits = np.concatenate([levels >> 1, levels & 1], axis=-1)
    return (bits & opaque[..., None]).astype(np.uint8)


def upright(path: Path, most: int = MAX_PIXELS) -> Image.Image:
    """Read an image file as RGBA, rotated as its metadata says. Raises DataError, also above `most` pixels."""
    from PIL import Image, ImageOps

    if path.is_dir() or (path.exists() and not path.is_file()):
        raise DataError(f"{path} is not a file: expected an image ({', '.join(FORMATS)}).")
    if patterns.is_pattern(path):
        return _drawn(path, most)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about minor damage; other damage raises an error
            with Image.open(path, formats=FORMATS) as image:
                _check_pixels(path, image.size, most)
                if image.format != "MPO" and getattr(image, "is_animated", False):
                    raise DataError(f"{path} is animated: expected a still image, such as a frame saved as PNG.")
                return _rgba(ImageOps.exif_transpose(image))
    except OSError as error:
        # Errors of the operating system have `strerror`, Pillow's errors do not.
        if error.strerror:
            raise DataError(f"Cannot read the image {path}: {error.strerror}.") from error
        raise _unreadable(path) from error
    except Image.DecompressionBombError as error:
        raise DataError(f"{path} unpacks to far more than {most:,} pixels: scale it down first.") from error
    except (ValueError, SyntaxError, EOFError, LookupError, TypeError, ArithmeticError, RuntimeError) as error:
        raise _unreadable(path) from error  # what Pillow's readers raise on damaged files


def _unreadable(path: Path) -> DataError:
    if path.stat().st_size == 0:
        return DataError(f"{path} is empty: expected an image ({', '.join(FORMATS)}).")
    return DataError(f"{path} is not an image that can be read, expected {', '.join(FORMATS)}, undamaged.")


def _check_pixels(path: Path, size: tuple[int, int], most: int) -> None:
    if size[0] * size[1] > most:
        raise DataError(f"{path} is {_sides(size)} pixels, more than {most:,}: scale it down first.")


def _rgba(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode == "F":
        raise ValueError("pixels without a known white")
    # Pillow would clip 16-bit values at 255.
    if image.mode.startswith("I"):
        image = Image.fromarray((np.asarray(image, dtype=np.int64).clip(0, 65535) // 257).astype(np.uint8))
    return image.convert("RGBA")


def _sides(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
