"""Short text representations of data, such as for the output of a notebook cell."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

LONGEST, LONGEST_VALUE = 480, 100
"""Maximum numbers of characters of a representation and of each value in it."""
MOST = 8
"""Maximum number of displayed values of a collection; a longer collection is represented by its length."""


def brief(self: Any) -> str:
    """Return a representation of a dataclass with its non-default fields, for use as `__repr__ = brief`."""
    values = [(field, getattr(self, field.name)) for field in fields(self)]
    # Most of a configuration's forty fields have default values; a reader looks for the other fields.
    shown = [f"{field.name}={_short(value)}" for field, value in values if not _is_default(field, value)]
    return _cut(f"{type(self).__name__}({', '.join(shown)})", LONGEST)


def _is_default(field: Field[Any], value: Any) -> bool:
    return field.default is not MISSING and type(value) is type(field.default) and bool(value == field.default)


def _short(value: Any) -> str:
    # Arrays are recognized by their dtype, so that NumPy need not be imported, and represented by their shape.
    if hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str) and len(value) > MOST:
        return f"<{type(value).__name__} of {len(value)}>"
    text = f"({', '.join(map(_short, value))})" if isinstance(value, tuple | list) else repr(value)
    return _cut(text, LONGEST_VALUE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
