"""The table of a rule from a file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from difflogic.errors import ConfigError
from difflogic.rules import ENTRIES

DIGITS = ENTRIES // 4
MAX_BYTES = 1 << 16
EXPECTED = (
    f"expected {ENTRIES} digits 0 and 1, or {DIGITS} hexadecimal digits, as text in which white space does not count, "
    f"or {ENTRIES} numbers 0 and 1 in an .npy file; entry n is the next state of the cell whose patch, row by row, is "
    "the bits of n, most significant first"
)


def load(path: Path) -> str:
    """The rule as `TaskConfig.rule` holds it: its entries in hexadecimal digits. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"Cannot read the rule table {path}: {error.strerror or error}.") from error
    try:
        return _npy(data) if data.startswith(b"\x93NUMPY") else _text(data.decode("ascii"))
    except (ValueError, EOFError) as error:  # UnicodeDecodeError is a ValueError
        raise ConfigError(f"{path} is no rule table: {EXPECTED}.") from error


def _npy(data: bytes) -> str:
    entries = np.load(io.BytesIO(data), allow_pickle=False)
    if entries.size != ENTRIES or entries.dtype.kind not in "biuf" or not np.isin(entries, (0, 1)).all():
        raise ValueError("not a table")
    return np.packbits(entries.ravel().astype(bool)).tobytes().hex()


def _text(text: str) -> str:
    digits = "".join(text.split()).lower()
    if len(digits) == ENTRIES and set(digits) <= set("01"):
        return f"{int(digits, 2):0{DIGITS}x}"
    if len(digits) == DIGITS and set(digits) <= set("0123456789abcdef"):
        return digits
    raise ValueError("not a table")
