"""Fields of a configuration by their names alone, for tests that vary many."""

from dataclasses import fields
from typing import Any

from difflogic.config.train import OptimizerConfig

_OPTIMIZER = {each.name for each in fields(OptimizerConfig)}


def sections(**given: Any) -> dict[str, dict[str, Any]]:
    """Return settings by section: `sections(lr=0.1, pool={"size": 4})`. Single names are of optimizer or train."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            found.setdefault(name, {}).update(value)
        else:
            found.setdefault("optimizer" if name in _OPTIMIZER else "train", {})[name] = value
    return found
