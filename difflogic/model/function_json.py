"""controller.json: a controller as text that people and other programs read.

Version 1:

    {"format": "difflogic-controller", "version": 1, "difflogic": "0.1.0",
     "environment": "CartPole-v1", "environment_version": "1.4.0",   "" where it is not known
     "observations": [{"name": "angle", "thresholds": [-0.25, 0.25]}, ...],
     "actions": ["left", "right"],
     "gates": [{"id": "g0", "gate": 1, "name": "AND", "a": "angle>=-0.25", "b": "angle>=0.25"}, ...],
     "outputs": ["g17"]}                    the bits of the action's number, the lowest first; a gate or an input

Thresholds are written so that they are read back as the same 64-bit floating-point numbers. Gates are as in
circuit.json (`difflogic.model.netlist_json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import difflogic
from difflogic.errors import CircuitError
from difflogic.model.controller import Controller
from difflogic.model.netlist import gate_arrays
from difflogic.model.netlist_json import check_format, load_as, parse, read_gates, shown, typed, with_gates
from difflogic.model.thermometer import Thermometer

NAME = "controller.json"
"""Of the file in a run folder."""
FORMAT = "difflogic-controller"
VERSION = 1


def to_json(controller: Controller) -> str:
    """The text of controller.json, one gate per line."""
    rows = zip(controller.observations, controller.thermometer.thresholds, strict=True)
    return with_gates(
        {
            "format": FORMAT,
            "version": VERSION,
            "difflogic": difflogic.__version__,
            "environment": controller.environment,
            "environment_version": controller.environment_version,
            "observations": [{"name": name, "thresholds": list(values)} for name, values in rows],
            "actions": list(controller.actions),
        },
        controller,
    )


def from_json(text: str) -> Controller:
    """The inverse of `to_json`. Raises CircuitError, in one sentence, where the text is not such a controller."""
    return from_data(parse(text))


def load(path: Path) -> Controller:
    """Read a controller.json. Raises CircuitError, which names the file."""
    return load_as(from_data, path)


def from_data(data: Mapping[str, Any]) -> Controller:
    """A controller from the parsed controller.json. Raises CircuitError."""
    check_format(data, FORMAT, VERSION)
    rows, actions = typed(data, "observations", list), typed(data, "actions", list)
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise CircuitError(f"An observation is an object with a name and thresholds, got {shown(row)}.")
    if not all(isinstance(name, str) for name in actions):
        raise CircuitError(f"Actions are called by texts, got {shown(actions)}.")
    empty = Controller(
        thermometer=Thermometer(tuple(_thresholds(row) for row in rows)),
        observations=tuple(row["name"] for row in rows),
        actions=tuple(actions),
        environment=typed(data, "environment", str),
        environment_version=typed(data, "environment_version", str),
        **gate_arrays([], [], []),
    )
    return empty.with_gates(*read_gates(data, empty.input_names))


def _thresholds(row: Mapping[str, Any]) -> tuple[float, ...]:
    values = typed(row, "thresholds", list)
    try:
        # A whole number may be larger than any floating-point number.
        if all(type(value) in (int, float) for value in values):
            return tuple(map(float, values))
    except OverflowError:
        pass
    raise CircuitError(f"Thresholds are numbers, got {shown(values)}.")
