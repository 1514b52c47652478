"""Types of option values that have a text form, and conversion of values that Python users pass."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from difflogic.config.fields import native, shown
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config.dataset import Dataset

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Within:
    """Limit of training in seconds, in epochs of all attempts and models, or both; training ends at the earlier one."""

    seconds: float | None = None
    epochs: int | None = None
    used: float = 0.0
    """Number of seconds of the limit that have already passed."""

    @classmethod
    def parse(cls, text: str) -> Within:
        """Parse `60s`, `5m`, `2h`, `2000 epochs`, or both, as `60s or 2000 epochs`. Raises UsageError."""
        before, both, after = text.partition(" or ")
        if both:
            first, second = cls.parse(before), cls.parse(after)
            if (first.epochs is None) != (second.epochs is None):
                return cls(first.seconds or second.seconds, first.epochs or second.epochs)
        match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*(s|m|min|h|epochs?)?\s*", text)
        if match is not None:
            number, unit = float(match[1]), match[2] or ""
            if unit.startswith("epoch") and number.is_integer() and number >= 1:
                return cls(epochs=int(number))
            if unit in _UNITS and number > 0:
                return cls(seconds=number * _UNITS[unit])
        raise UsageError(f"Expected a time or a number of epochs, such as 60s, 5m or 2000 epochs, got {text[:80]!r}.")

    def __str__(self) -> str:
        """Return the limit in the form that `parse` reads."""
        parts = [] if self.epochs is None else [f"{self.epochs} epochs"]
        if self.seconds is not None:
            # The largest unit of which the time is a multiple, by 2 or more: 60s, 5m and 48h, but 90s.
            size, unit = next(
                (size, unit)
                for size, unit in ((3600.0, "h"), (60.0, "m"), (1.0, "s"))
                if unit == "s" or (self.seconds >= 2 * size and not self.seconds % size)
            )
            parts.insert(0, f"{self.seconds / size:.15g}{unit}")
        return " or ".join(parts)


class Size(NamedTuple):
    """Width and height in cells."""

    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """Parse `24x24`. Raises UsageError."""
        match = re.fullmatch(r"([0-9]{1,9})[xX]([0-9]{1,9})", text)
        if match is None:
            raise UsageError(f"Expected a size WIDTHxHEIGHT in cells, such as 24x24, got {text[:80]!r}.")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        """Return the size in the form that `parse` reads."""
        return f"{self.width}x{self.height}"


def coerced(name: str, kind: Any, value: Any) -> Any:
    """Convert the value that a Python user passes for the option `name` to the type `kind`.

    Depending on the option, text becomes a path, a number of seconds becomes a limit, a tuple a size, an integer the
    name of a rule, and an array an image or samples. Raises UsageError or DataError for other types.
    """
    if name == "data":
        return _samples(value)
    if isinstance(value, os.PathLike) or (kind is Path and isinstance(value, str)):
        return Path(value)
    if kind is Path and name == "target":
        from difflogic.config import picture_file

        return picture_file.saved(value)
    if kind is Path:
        raise UsageError(f"`{name}` must be the path of a file, got {shown(value)}.")
    value = native(value)
    if hasattr(kind, "parse") and not isinstance(value, kind):
        return kind.parse("x".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
    return str(value) if kind is str and type(value) is int else value


def _samples(value: Any) -> Dataset:
    from difflogic.config import dataset

    if isinstance(value, dataset.Dataset):
        return value
    if isinstance(value, str | os.PathLike):
        return dataset.load(Path(value))
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return dataset.Dataset.of(*value)
    raise UsageError(f"`data` must be a Dataset, arrays (x, y) or the path of a file, got {type(value).__name__}.")
