"""Types of options that texts stand for: a limit of time or epochs, and a size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from difflogic.errors import UsageError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Within:
    """A limit of a solution is in seconds, or in epochs of all attempts and models together.

    Where both are given, whichever is over first.
    """

    seconds: float | None = None
    epochs: int | None = None
    used: float = 0.0
    """Of the seconds, so many are over already."""

    @classmethod
    def parse(cls, text: str) -> Within:
        """`60s`, `5m`, `2h`, `2000 epochs`, or one of each as in `60s or 2000 epochs`. Raises UsageError."""
        one, both, other = text.partition(" or ")
        if both:
            first, second = cls.parse(one), cls.parse(other)
            if (first.epochs is None) != (second.epochs is None):
                return cls(first.seconds or second.seconds, first.epochs or second.epochs)
        found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*(s|m|min|h|epochs?)?\s*", text)
        if found is not None:
            number, unit = float(found[1]), found[2] or ""
            if unit.startswith("epoch") and number.is_integer() and number >= 1:
                return cls(epochs=int(number))
            if unit in _UNITS and number > 0:
                return cls(seconds=number * _UNITS[unit])
        raise UsageError(f"A limit is a time or a number of epochs, say 60s, 5m, 2h or 2000 epochs, got {text[:80]!r}.")

    def __str__(self) -> str:
        """The limit in the form that `parse` reads."""
        told = [] if self.epochs is None else [f"{self.epochs} epochs"]
        if self.seconds is not None:
            # 60s, 5m and 48h, but 90s: the largest unit of which there are several, and no part of one.
            sizes = ((size, unit) for unit, size in (("h", 3600.0), ("m", 60.0)) if not self.seconds % size)
            size, unit = next((each for each in sizes if self.seconds >= 2 * each[0]), (1.0, "s"))
            told.insert(0, f"{self.seconds / size:.15g}{unit}")
        return " or ".join(told)


class Size(NamedTuple):
    """Width and height in cells."""

    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """`24x24`. Raises UsageError."""
        found = re.fullmatch(r"([0-9]{1,9})[xX]([0-9]{1,9})", text)
        if found is None:
            raise UsageError(f"A size is WIDTHxHEIGHT in cells, say 24x24, got {text[:80]!r}.")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        """The size in the form that `parse` reads."""
        return f"{self.width}x{self.height}"
