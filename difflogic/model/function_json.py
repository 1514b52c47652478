"""Read and write function.json and controller.json, which contain a function or controller as readable text.

Version 1:

    {"format": "difflogic-function", "version": 1, "difflogic": "0.1.0",
     "inputs": [{"name": "edge"}, ...],                              bits; or numbers with {"thresholds": [-0.25, 0.25]}
     "classes": ["cat", "dog"],                                      or, without a decision, "results": ["y0", ...]
     "gates": [{"id": "g0", "gate": 1, "name": "AND", "a": "edge", "b": "corner"}, ...],
     "outputs": ["g17"]}                    the bits of the class's number, the lowest first, or one for each result

    {"format": "difflogic-controller", "version": 1, "difflogic": "0.1.0",
     "environment": "CartPole-v1", "environment_version": "1.4.0",   "" if unknown
     "observations": [{"name": "angle", "thresholds": [-0.25, 0.25]}, ...],
     "memory": 2,                                                    number of memory bits; omitted without memory
     "actions": ["left", "right"],
     "gates": [{"id": "g0", "gate": 1, "name": "AND", "a": "angle>=-0.25", "b": "angle>=0.25"}, ...],
     "outputs": ["g17"]}

Thresholds are read back as the same 64-bit floating-point numbers. Gates are as in `difflogic.model.netlist_json`.
Memory bits are the last outputs of a step, and the last observations of the next step.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from difflogic.errors import CircuitError
from difflogic.model.controller import Controller
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist import gate_arrays
from difflogic.model.netlist_json import check_format, load_as, parse, read_gates, shown, typed, with_gates
from difflogic.model.thermometer import Thermometer
from difflogic.version import __version__

NAME, FUNCTION = "controller.json", "function.json"
"""Names of the files in a run folder that contain an agent's controller and a classifier's function."""
FORMAT, FUNCTION_FORMAT = FORMATS = "difflogic-controller", "difflogic-function"
VERSION = 1


def to_json(function: FunctionNetlist) -> str:
    """Return a function or controller as JSON text with one gate per line."""
    head: dict[str, Any] = {"format": FUNCTION_FORMAT, "version": VERSION, "difflogic": __version__}
    inputs, choices = "inputs", "classes"
    if isinstance(function, Controller):
        head |= {"format": FORMAT, "environment": function.environment}
        head |= {"environment_version": function.environment_version}
        head |= {"memory": function.memory} if function.memory else {}
        inputs, choices = "observations", "actions"
    rows = zip(function.observations, function.thermometer.thresholds, strict=True)
    head[inputs] = [{"name": name} | ({} if function.reads_bits else {"thresholds": values}) for name, values in rows]
    head |= {choices: function.choices} if function.choices else {"results": function.named_outputs}
    return with_gates(head, function)


def from_json(text: str) -> FunctionNetlist:
    """Parse the text of function.json or controller.json. Raise CircuitError if it is invalid."""
    return from_data(parse(text))


def load(path: Path) -> FunctionNetlist:
    """Read a function.json or controller.json. Raise CircuitError with the file's path if it is invalid."""
    return load_as(from_data, path)


def from_data(data: Mapping[str, Any]) -> FunctionNetlist:
    """Make a function or controller from parsed JSON. Raise CircuitError if the data is invalid."""
    if data.get("format") == FUNCTION_FORMAT:
        check_format(data, FUNCTION_FORMAT, VERSION)
        names, thermometer = _inputs(typed(data, "inputs", list), "An input", may_be_bits=True)
        empty = FunctionNetlist(
            thermometer=thermometer,
            observations=names,
            choices=_texts(data, "classes") if "classes" in data else (),
            named_outputs=() if "classes" in data else _texts(data, "results"),
            **gate_arrays([], [], []),
        )
    else:
        check_format(data, FORMAT, VERSION)
        names, thermometer = _inputs(typed(data, "observations", list), "An observation")
        empty = Controller(
            thermometer=thermometer,
            observations=names,
            choices=_texts(data, "actions"),
            environment=typed(data, "environment", str),
            environment_version=typed(data, "environment_version", str),
            memory=typed(data, "memory", int) if "memory" in data else 0,
            **gate_arrays([], [], []),
        )
    return empty.with_gates(*read_gates(data, empty.input_names))


def _inputs(rows: list[Any], subject: str, may_be_bits: bool = False) -> tuple[tuple[str, ...], Thermometer]:
    """Return the inputs' names and thresholds; if `may_be_bits` and no row has thresholds, the inputs are bits."""
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise CircuitError(f"{subject} must be an object with a name and thresholds, got {shown(row)}.")
    names = tuple(row["name"] for row in rows)
    if may_be_bits and not any("thresholds" in row for row in rows):
        return names, Thermometer.of_bits(len(rows))
    return names, Thermometer(tuple(_thresholds(row) for row in rows))


def _texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = typed(data, key, list)
    if not all(isinstance(name, str) for name in names):
        raise CircuitError(f"{key} must be a list of strings, got {shown(names)}.")
    return tuple(names)


def _thresholds(row: Mapping[str, Any]) -> tuple[float, ...]:
    values = typed(row, "thresholds", list)
    with suppress(OverflowError):  # a JSON integer may be too large for a float
        if all(type(value) in (int, float) for value in values):
            return tuple(map(float, values))
    raise CircuitError(f"thresholds must be a list of numbers, got {shown(values)}.")
