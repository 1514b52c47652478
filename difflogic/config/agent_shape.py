"""Shapes of agents: fields in which two configurations must agree if one agent starts from the other's weights."""

from collections.abc import Mapping
from typing import Any

_FIELDS = ("environment", "table", "policy", "algorithm", "logic", "automaton", "mlp", "critic")
_SIZES = ("id", "label", "bits", "thresholds", "widths", "memory", "side", "channels", "steps", "kernels")
"""Fields that are compared inside each section of `_FIELDS`."""


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Describe the first difference in shape of two configurations as the end of a sentence; None if they match."""
    for name in _FIELDS:
        own, other = (
            {size: value[size] for size in _SIZES if value.get(size)} if isinstance(value, dict) else value
            for value in (config.get(name) for config in (ours, theirs))
        )
        if own != other:
            return f"{name} should be {own}, that of the other is {other}"
    return None
