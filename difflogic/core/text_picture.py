"""Encode small images as rows of text, with one character per cell for the bits of its first channels.

A character's value is the sum of `bit[channel] << channel`: `.` is 0, then follow `1` to `9`, `A` to `Z`, `a` to `z`,
`+` and `/`. In one channel, black is `.` and white `1`; in three channels, red is `1`, green `2` and blue `4`.
"""

import string
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from difflogic.errors import DataError

ALPHABET = "." + string.digits[1:] + string.ascii_uppercase + string.ascii_lowercase + "+/"
MAX_BITS = 6
"""Maximum number of channels that one character can represent."""


def encode(bits: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    """Encode `bits [H, W, channels]`, 0 or 1, with at most `MAX_BITS` channels, as rows of text."""
    values = (bits.astype(np.int64) << np.arange(bits.shape[-1])).sum(axis=-1)
    return tuple("".join(ALPHABET[value] for value in row) for row in values)


def decode(rows: Sequence[str], channels: int) -> npt.NDArray[np.uint8]:
    """Decode rows of text to bits, uint8 `[H, W, channels]`; channels from index MAX_BITS on are 0.

    Raises DataError for rows of unequal length, unknown characters, or bits beyond `channels`.
    """
    if not rows or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise DataError(f"expected rows of equal length, got lengths {[len(row) for row in rows][:8]}.")
    if unknown := sorted(set("".join(rows)) - set(ALPHABET)):
        raise DataError(f"expected only the characters {ALPHABET}, got {unknown[0]!r}.")
    # `7` is 0b111, which sets channels 0, 1 and 2: white.
    values = np.array([[ALPHABET.index(character) for character in row] for row in rows])
    if values.max() >> channels:
        raise DataError(f"the character {ALPHABET[values.max()]!r} requires more channels than {channels}.")
    return (values[..., None] >> np.arange(channels) & 1).astype(np.uint8)
