"""Comparison of the shapes of two agents, which must match if one agent starts from the weights of the other."""

from collections.abc import Mapping
from typing import Any

_FIELDS = ("environment", "table", "policy", "algorithm", "logic", "automaton", "mlp", "critic")
_SIZES = ("id", "label", "bits", "thresholds", "widths", "memory", "side", "channels", "steps", "kernels")
"""Fields that are compared in each section named in `_FIELDS`."""


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Return the first difference in shape between two configurations as a clause, or None if the shapes match."""
    for name in _FIELDS:
        own, other = (
            {size: value[size] for size in _SIZES if value.get(size)} if isinstance(value, dict) else value
            for value in (config.get(name) for config in (ours, theirs))
        )
        if own != other:
            return f"expected {name} {own}, got {other}"
    return None
