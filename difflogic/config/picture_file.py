"""Images as the bits of cells.

A cell is on or off (2 colours), has a bit each of red, green and blue (8), or two of each (64): the high bits in
channels 0, 1 and 2, the low ones in 3, 4 and 5. Colours are multiplied by their opacity. An image that is too large is
scaled down by Lanczos resampling in its own proportions, as in the authors' notebook. A pattern is an image too:
state 1 of two is white, and the bits of more states are those of the colours.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from difflogic.config.choices import COLORS
from difflogic.core import patterns
from difflogic.core.bits import Bits
from difflogic.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

CHANNELS = dict(zip(COLORS, (1, 3, 6), strict=True))
"""Number of channels for each number of colours."""
THRESHOLDS = {2: 0.26, 8: 0.5}
"""Brightness above which a bit is 1; the paper's lizard is on where red, green or blue is above the first."""
LEVELS = np.array([1 / 6, 3 / 6, 5 / 6], dtype=np.float32)
"""Thresholds between the four levels of 64 colours."""
MAX_SIDE = 128
MAX_PIXELS = 4096 * 4096
"""Largest file before it is scaled down: its size in memory is known before it is unpacked."""
FORMATS = ("PNG", "GIF", "JPEG", "BMP", "WEBP", "PPM")
"""Formats that describe pixels: others may be programs, or need some to be read."""


def load(
    path: Path, colors: int, size: tuple[int, int] | None = None, threshold: float | None = None, invert: bool = False
) -> Bits:
    """Read an image file as bits `[H, W, CHANNELS[colors]]`. Raises DataError if it has no fitting, still content.

    Args:
        path: The file.
        colors: 2, 8 or 64.
        size: Width and height into which the image is scaled down; None: as it is.
        threshold: Brightness above which a bit is 1; None: the usual one.
        invert: Whether the image is dark on light, and so is inverted.
    """
    if threshold is not None and colors not in THRESHOLDS:
        raise DataError(f"{colors} colours are told apart by four levels each of red, green and blue: no threshold.")
    picture = upright(path)
    if size is not None:
        from PIL.Image import Resampling

        picture.thumbnail(size, Resampling.LANCZOS)
    if max(picture.size) > MAX_SIDE:
        raise DataError(
            f"{path} is {_sides(picture.size)} pixels, at most {MAX_SIDE}x{MAX_SIDE} become cells: scale it down "
            "with `size` 32x32, say."
        )
    bits = _bits(picture, colors, threshold, invert)
    if not bits.any():
        too = "light" if invert else "dark"
        raise DataError(f"Every pixel of {path} is transparent or too {too} to count: expected some that are on.")
    return bits


def least_colors(path: Path) -> int:
    """Return the least number of colours that hold the states of a pattern; 2 for an image. Raises DataError."""
    largest = int(patterns.read(path, max(CHANNELS.values())).states.max(initial=0)) if patterns.is_pattern(path) else 0
    return next(colors for colors, channels in CHANNELS.items() if not largest >> channels)


def _drawn(path: Path, most: int) -> Image.Image:
    """Return a pattern as an image of as many colours as `least_colors`."""
    from PIL import Image

    states = patterns.read(path, max(CHANNELS.values())).states
    _check_pixels(path, (states.shape[1], states.shape[0]), most)
    if not states.any():
        raise DataError(f"No cell of the pattern {path} is on: expected some that are.")
    levels = patterns.bits_of(states, max(CHANNELS.values())).reshape(*states.shape, 2, 3)
    if states.max() == 1:
        levels[...] = states[..., None, None]
    elif states.max() < 1 << CHANNELS[8]:
        levels[..., 1, :] = levels[..., 0, :]
    return Image.fromarray((levels[..., 0, :] * 170 + levels[..., 1, :] * 85).astype(np.uint8)).convert("RGBA")


def saved(given: Any) -> Path:
    """Save an image of Pillow or an array `[H, W]`, `[H, W, 3]` or `[H, W, 4]` in a file, and return its path.

    An array without a value above 1 is of bits or shares of full brightness. The file lasts as long as this process.
    Raises DataError.
    """
    from PIL import Image

    try:
        if not isinstance(given, Image.Image):
            array = np.asarray(given, dtype=np.float32)
            array = array.squeeze(-1) if array.shape[-1] == 1 else array
            given = Image.fromarray((array * (255 if array.max() <= 1 else 1)).round().astype(np.uint8))
        picture = _rgba(given)
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"`target` must be an image: the path of a file, an image of Pillow, or an array [H, W], [H, W, 3] or "
            f"[H, W, 4], got an object of type {type(given).__name__}."
        ) from error
    folder = Path(tempfile.mkdtemp(prefix="difflogic-image-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    picture.save(folder / "target.png")
    return folder / "target.png"


def is_dark_on_light(bits: Bits) -> bool:
    """Return whether the surroundings of an image are on and something inside is off, like ink on paper."""
    on = np.asarray(bits.any(axis=-1))
    # Without the empty cells that padding put around it.
    rows, columns = (np.flatnonzero(on.any(axis=axis)) for axis in (1, 0))
    inner: npt.NDArray[np.bool_] = on[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    around = np.concatenate([inner[0], inner[-1], inner[:, 0], inner[:, -1]])
    # A drawing may touch a side, and ink is the smaller part, unlike a dark image on black.
    return bool(around.mean() > 0.9 and 0.5 < inner.mean() < 1)


def _bits(picture: Image.Image, colors: int, threshold: float | None, invert: bool) -> Bits:
    pixels = np.asarray(picture, dtype=np.float32) / 255
    # On black: a pixel that is half transparent is half as bright.
    light = (1 - pixels[..., :3] if invert else pixels[..., :3]) * pixels[..., 3:]
    if colors in THRESHOLDS:
        above: npt.NDArray[np.bool_] = light > (THRESHOLDS[colors] if threshold is None else threshold)
        return np.asarray(above.any(axis=-1, keepdims=True) if colors == 2 else above, dtype=np.uint8)
    # Levels 0 to 3 of red, green and blue in two bits each, the three higher bits first: level 2 is 1 there, 0 behind.
    levels = (light[..., None] > LEVELS).sum(axis=-1)
    return np.concatenate([levels >> 1, levels & 1], axis=-1).astype(np.uint8)


def upright(path: Path, most: int = MAX_PIXELS) -> Image.Image:
    """Return the image in a file as RGBA, turned upright. Raises DataError as `load` does, or for more pixels."""
    from PIL import Image, ImageOps

    if path.is_dir() or (path.exists() and not path.is_file()):
        raise DataError(f"{path} is not a file: expected a picture ({', '.join(FORMATS)}).")
    if patterns.is_pattern(path):
        return _drawn(path, most)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters in a damaged file is an error
            with Image.open(path, formats=FORMATS) as picture:
                _check_still(path, picture, most)
                return _rgba(ImageOps.exif_transpose(picture))
    except OSError as error:
        # The system's errors have a text of their own, Pillow's do not.
        if error.strerror:
            raise DataError(f"Cannot read the picture {path}: {error.strerror}.") from error
        raise _unreadable(path) from error
    except Image.DecompressionBombError as error:
        raise DataError(f"{path} unpacks to far more than {most:,} pixels: scale it down first.") from error
    except (ValueError, SyntaxError, EOFError, LookupError, TypeError, ArithmeticError, RuntimeError) as error:
        raise _unreadable(path) from error  # what Pillow's readers raise on damaged files


def _unreadable(path: Path) -> DataError:
    if path.stat().st_size == 0:
        return DataError(f"{path} is empty: expected a picture ({', '.join(FORMATS)}).")
    return DataError(f"{path} is not a picture that can be read, expected {', '.join(FORMATS)}, undamaged.")


def _check_pixels(path: Path, size: tuple[int, int], most: int) -> None:
    if size[0] * size[1] > most:
        raise DataError(f"{path} is {_sides(size)} pixels, more than {most:,}: scale it down first.")


def _check_still(path: Path, picture: Image.Image, most: int) -> None:
    _check_pixels(path, picture.size, most)
    if picture.format != "MPO" and getattr(picture, "is_animated", False):
        raise DataError(f"{path} is animated: expected a still picture, save one of its frames as PNG.")


def _rgba(picture: Image.Image) -> Image.Image:
    from PIL import Image

    if picture.mode == "F":
        raise ValueError("pixels without a known white")
    # Pillow would clip 16 bits a pixel at 255.
    if picture.mode.startswith("I"):
        picture = Image.fromarray((np.asarray(picture, dtype=np.int64).clip(0, 65535) // 257).astype(np.uint8))
    return picture.convert("RGBA")


def _sides(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
