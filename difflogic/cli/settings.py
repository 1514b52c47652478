"""`--set train.lr=0.06`: fields of a configuration by their path."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from difflogic.errors import UsageError
from difflogic.train.wanted import merged


def parse(assignments: Sequence[str]) -> dict[str, Any]:
    """Nested dicts of fields; of two values for one field the last counts. Raises UsageError."""
    data: dict[str, Any] = {}
    for each in assignments:
        path, equals, text = each.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names):
            raise UsageError(f"--set takes SECTION.FIELD=VALUE, say train.lr=0.06, got {each!r}.")
        value = _value(text)
        for name in reversed(names):
            value = {name: value}
        data = merged(data, value)
    return data


def _value(text: str) -> Any:
    """A value as TOML writes it; what is not TOML is text, since shells strip quotes."""
    try:
        data = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text.strip()
    return data["value"] if len(data) == 1 else text.strip()
