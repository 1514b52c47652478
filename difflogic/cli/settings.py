"""`--set train.lr=0.06`: fields of a configuration by their path."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from difflogic.config import Config
from difflogic.errors import UsageError


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


def merged(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with the fields in `changes` replaced, tables inside tables field by field."""
    result = dict(data)
    for name, value in changes.items():
        inside = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if inside else value
    return result


def applied(config: Config, changes: Mapping[str, Any]) -> Config:
    """A copy with these fields. Raises ConfigError as `Config.from_dict` does."""
    return Config.from_dict(merged(config.to_dict(), changes))
