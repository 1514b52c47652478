"""Fields of a configuration by their names alone, for tests that vary many."""

from dataclasses import fields
from typing import Any

from difflogic.config.model import ModelConfig
from difflogic.config.task import TaskConfig
from difflogic.config.train import OptimizerConfig, TrainConfig

_SECTIONS = {"model": ModelConfig, "task": TaskConfig, "train": TrainConfig, "optimizer": OptimizerConfig}
_SECTION_OF = {field.name: name for name, section in _SECTIONS.items() for field in fields(section)}


def sections(**given: Any) -> dict[str, dict[str, Any]]:
    """Return settings by section: `sections(lr=0.1, steps=3, pool={"size": 4})`."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            found.setdefault(name, {}).update(value)
        else:
            found.setdefault(_SECTION_OF[name], {})[name] = value
    return found
