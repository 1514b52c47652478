"""Data prints itself briefly at the end of a notebook's cell: in a few lines, whatever it holds."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

LONGEST, LONGEST_VALUE = 480, 100
"""Characters of a whole text, and of a value in it."""
MOST = 8
"""Values of a collection that are shown; of a longer one, how many there are."""


def brief(self: Any) -> str:
    """A dataclass in short, for its body: `__repr__ = brief`. Fields that are as they would be unasked are left out."""
    values = [(field, getattr(self, field.name)) for field in fields(self)]
    # A configuration of forty fields is mostly defaults: what differs from them is what one wants to see.
    shown = [f"{field.name}={_short(value)}" for field, value in values if not _is_default(field, value)]
    return _cut(f"{type(self).__name__}({', '.join(shown)})", LONGEST)


def _is_default(field: Field[Any], value: Any) -> bool:
    return field.default is not MISSING and type(value) is type(field.default) and bool(value == field.default)


def _short(value: Any) -> str:
    # Without NumPy, which this module need not import: whatever has a dtype is shown by its shape.
    if hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str) and len(value) > MOST:
        return f"<{type(value).__name__} of {len(value)}>"
    text = f"({', '.join(map(_short, value))})" if isinstance(value, tuple | list) else repr(value)
    return _cut(text, LONGEST_VALUE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
