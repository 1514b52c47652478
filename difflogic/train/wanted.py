"""The configuration that somebody asks for: a base, another target or start, and fields by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from difflogic.config import Config
from difflogic.train.retarget import Changes, Wishes, changes


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


def configured(base: Config, wishes: Wishes, fields: Mapping[str, Any], keep_grid: bool) -> tuple[Config, Changes]:
    """`base` with another target or start, then with `fields`; and what the former changed.

    The grid stays where `keep_grid` says so or a field sets one of its sides. Raises ConfigError, DataError,
    UsageError.
    """
    cells = _asked(fields, "task", "height"), _asked(fields, "task", "width")
    is_fixed = keep_grid or cells != (None, None)
    grid = (cells[0] or base.task.height, cells[1] or base.task.width) if is_fixed else None
    found = changes(base, wishes, grid, _asked(fields, "model", "channels") or base.model.channels)
    return applied(base, merged(found, fields)), found


def _asked(fields: Mapping[str, Any], section: str, field: str) -> int | None:
    """A whole number among the fields; anything else is refused where the configuration is built."""
    inside = fields.get(section)
    value = inside.get(field) if isinstance(inside, dict) else None
    return value if type(value) is int else None
