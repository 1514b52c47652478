"""Limits of fields, each with a description and a test."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Allowed values of a field: a description, a test and a JSON Schema."""

    words: str
    holds: Callable[[Any], bool]
    names: Sequence[Any] = ()
    """Allowed values if the limits list them, otherwise empty."""
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Limits in JSON Schema, as far as JSON Schema can express them."""

    def allows(self, value: Any) -> bool:
        """Return whether the limits allow a value, which may have any type."""
        try:
            return self.holds(value)
        except TypeError:
            return False


def between(least: int, most: int) -> Limits:
    """Return limits that allow the integers from `least` to `most`."""
    words = f"an integer between {least} and {most}"
    is_between = lambda value: type(value) is int and least <= value <= most  # noqa: E731
    return Limits(words, is_between, schema={"minimum": least, "maximum": most})


def one_of(names: Sequence[Any]) -> Limits:
    """Return limits that allow only the values in `names`."""
    return Limits(
        f"one of {', '.join(map(str, names))}", lambda value: value in names, tuple(names), {"enum": [*names]}
    )


def matching(words: str, pattern: str) -> Limits:
    """Return limits that allow texts that fully match `pattern`; `words` describes these texts."""
    form = re.compile(pattern)
    return Limits(words, lambda value: form.fullmatch(value) is not None, schema={"pattern": f"^({pattern})$"})


MOST = 2**31
"""Maximum of integer fields, since engines count in 32 bits."""
WHOLE = between(0, MOST)
COUNT = between(1, MOST)
SEED = between(0, 2**32 - 1)
WIDTH = between(1, 2**20)
NOT_NEGATIVE = Limits("a number between 0 and 1e+30", lambda value: 0 <= value <= 1e30)
"""Non-negative numbers that are small enough for computations in float32."""
BELOW_ONE = Limits("a number in [0, 1)", lambda value: 0 <= value < 1, schema={"minimum": 0, "exclusiveMaximum": 1})
SHARE = Limits("a number in (0, 1]", lambda value: 0 < value <= 1)
UP_TO_ONE = Limits("a number in [0, 1]", lambda value: 0 <= value <= 1)
HIDDEN = (
    r"\x00-\x1f\x7f-\xa0\xad\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164"
    r"\ufeff\uffa0\ufff9-\ufffb"
)
"""Ranges, for a regular expression, of characters forbidden in names: controls, bidirectional marks and blanks."""
_NAME = rf"[^/\\{HIDDEN}]*[^ /\\{HIDDEN}][^/\\{HIDDEN}]*"
FILE_NAME = Limits(
    "text of 1 to 100 visible characters without slashes",
    lambda value: len(value) <= 100 and value.isprintable() and re.fullmatch(_NAME, value) is not None,
    schema={"pattern": f"^{_NAME}$", "maxLength": 100},
)
