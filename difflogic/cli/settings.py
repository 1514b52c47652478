"""Fields of a configuration: `--set train.lr=0.06`, by their path, and options that are fields by another name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from difflogic.errors import UsageError
from difflogic.train.wanted import merged

FIELDS = ("epochs", "batch", "eval_interval", "precision")
"""Options that are fields of `train`; `seed` is one of the whole."""


def asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """All fields that a command's options ask for, at once, since some go only together: one by its own option counts.

    Raises UsageError.
    """
    fields = parse(options.get("assignments", ()))
    if options.get("seed") is not None:
        fields["seed"] = options["seed"]
    if isinstance(fields.setdefault("train", {}), dict):  # else it is refused where the configuration is built
        fields["train"] |= {name: options[name] for name in FIELDS if options.get(name) is not None}
    return fields


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
