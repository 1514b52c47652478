"""Read and write circuit.json, which contains a cell netlist as readable text.

Version 1:

    {"format": "difflogic-circuit", "version": 1, "difflogic": "0.1.0",
     "channels": C, "visible": 1, "periodic": false,   true: torus; false: cells outside the grid are 0
     "neighbourhood": "hex",                           only if not moore: von-neumann, hex or line
     "colours": [[0, 0, 0], [255, 0, 0]],              only if a rule specifies them: red, green, blue of each state
     "origin": [0, 3],                                 only if channels were removed: old numbers of the others
     "habitat": {"start": "seed", "height": 20,        only if training is known; `start` is random, seed, zeros or
      "width": 20, "steps": 12, "fire_rate": 1.0},     "picture", with a field "picture" of rows of text
     "gates": [{"id": "g0", "gate": 1, "name": "AND", "a": "in[0][3]", "b": "in[0][4]"}, ...],
     "outputs": ["g17", ...]}                          one per channel; a gate or an input

`gate` is the gate's id, which is its truth table; `name` is for people and is ignored by readers. The first `visible`
channels are displayed; by default, all. Gates are written in topological order with the ids `g0, g1, ...`. A file from
another program may list them in any order with any unique ids, but without a cycle.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from difflogic.core import gates, wiring
from difflogic.core.topology import Wire, topological_sort
from difflogic.errors import CircuitError, DataError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from difflogic.model.netlist import Netlist
from difflogic.system import files
from difflogic.version import __version__

T = TypeVar("T")
FORMAT = "difflogic-circuit"
VERSION = 1

MOST_CHARACTERS = 400
"""Maximum number of characters of an error message, since names and values in a file may have any length."""

MAX_BYTES = 1 << 29
"""Maximum number of bytes of a file, enough for five million gates; parsing takes ten times as much memory."""

KINDS = {bool: "true or false", int: "an integer", str: "text", list: "a list", dict: "a JSON object"}
"""Mapping from the Python types of JSON values to their names in error messages."""

_INPUT = re.compile(r"in\[(\d{1,9})\]\[([0-8])\]")


def to_json(netlist: CellNetlist) -> str:
    """Return the contents of circuit.json for a netlist, with one gate per line."""
    return with_gates(head(netlist), netlist)


def head(netlist: CellNetlist) -> dict[str, Any]:
    """Return the fields of circuit.json that precede the gates."""
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "difflogic": __version__}
    head |= {"channels": netlist.channels, "visible": netlist.visible, "periodic": netlist.periodic}
    if netlist.neighbourhood != "moore":
        head["neighbourhood"] = netlist.neighbourhood
    if netlist.colours:
        head["colours"] = [list(colour) for colour in netlist.colours]
    if netlist.origin != tuple(range(netlist.channels)):
        head["origin"] = list(netlist.origin)
    if netlist.scenario is not None:
        head["habitat"] = {name: value for name, value in asdict(netlist.scenario).items() if value != ()}
    return head


def with_gates(head: Mapping[str, Any], netlist: Netlist) -> str:
    """Return the text of a JSON object that contains the fields of `head`, then the netlist's gates and outputs."""
    # One gate per line, for readers and diffs; `json.dumps` would write everything in one line, or one value per line.
    names = [netlist.bit_name(bit) for bit in range(netlist.inputs + len(netlist.gates))]
    rows = ",\n".join(
        f'{{"id": "g{index}", "gate": {gate}, "name": "{gates.NAMES[gate]}", "a": "{names[a]}", "b": "{names[b]}"}}'
        for index, (gate, (a, b)) in enumerate(zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True))
    )
    outputs = json.dumps([names[output] for output in netlist.outputs])
    return f'{json.dumps(head)[:-1]},\n"gates": [\n{rows}\n],\n"outputs": {outputs}}}\n'


def from_json(text: str) -> CellNetlist:
    """Parse the contents of a circuit.json. Raise CircuitError if they are invalid."""
    return from_data(parse(text))


def load(path: Path) -> CellNetlist:
    """Read a circuit.json. Raise CircuitError with the file's path if it is invalid."""
    return load_as(from_data, path)


def load_as(convert: Callable[[dict[str, Any]], T], path: Path) -> T:
    """Read a JSON object from a file, and convert it with `convert`. Raise CircuitError with the path if that fails."""
    text = read_text(path)
    try:
        return convert(parse(text))
    except (CircuitError, DataError) as error:
        raise refusal(path, error) from error


def refusal(path: Path, error: Exception) -> CircuitError:
    """Return an error with the file's path and the message of `error`, in one line of limited length."""
    message = " ".join(str(error).split())
    return CircuitError(f"{path}: {message if len(message) <= MOST_CHARACTERS else f'{message[:MOST_CHARACTERS]}...'}")


def read_text(path: Path) -> str:
    """Return the text of a file. Raise CircuitError if it cannot be read, is not UTF-8 or exceeds MAX_BYTES."""
    try:
        return read_bytes(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise CircuitError(f"Cannot read the circuit {path}: it is not text in UTF-8.") from error


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file. Raise CircuitError if it cannot be read or exceeds MAX_BYTES."""
    try:
        return files.read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise CircuitError(f"Cannot read the circuit {path}: {error.strerror or error}.") from error


def parse(text: str) -> dict[str, Any]:
    """Parse text as a JSON object. Raise CircuitError if it is anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CircuitError(f"The file is not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise CircuitError(f"Expected a JSON object, got {shown(data)}.")
    return data


def from_data(data: Mapping[str, Any]) -> CellNetlist:
    """Make a netlist from the parsed JSON of a circuit.json. Raise CircuitError if the data is invalid."""
    # The messages below quote values in shortened form, since circuits may be untrusted, for example in the service.
    check_format(data, FORMAT, VERSION)
    channels = _whole(data, "channels")
    visible = _whole(data, "visible") if "visible" in data else None
    periodic = typed(data, "periodic", bool)
    neighbourhood = typed(data, "neighbourhood", str) if "neighbourhood" in data else "moore"
    outputs = typed(data, "outputs", list)
    if len(outputs) != channels:
        raise CircuitError(f"Expected {channels} outputs, one per channel, got {len(outputs)}.")
    origin = typed(data, "origin", list) if "origin" in data else list(range(channels))
    if len(origin) != channels or not all(type(name) is int for name in origin):
        raise CircuitError(f"origin must be {channels} integers, one per channel, got {shown(origin)}.")
    names = [f"in[{name}][{patch}]" for name in origin for patch in range(wiring.PATCH)]
    gate_ids, wires, ends = read_gates(data, names)
    scenario = _scenario(typed(data, "habitat", dict)) if "habitat" in data else None
    colours = typed(data, "colours", list) if "colours" in data else []
    if not all(type(rgb) is list and len(rgb) == 3 and all(type(x) is int for x in rgb) for rgb in colours):
        raise CircuitError(f"colours must be a list of [red, green, blue], one per state, got {shown(colours)}.")
    about = (visible, origin, scenario, neighbourhood, colours)
    return CellNetlist.build(channels, periodic, gate_ids, wires, ends, *about)


def check_format(data: Mapping[str, Any], form: str, version: int) -> None:
    """Raise CircuitError if the fields `format` and `version` of a file differ from `form` and `version`."""
    if data.get("format") != form or data.get("version") != version or data["version"] is True:
        writer = f", written by difflogic {data['difflogic']}" if "difflogic" in data else ""
        got = " ".join(f"{key} {data[key]}" for key in ("format", "version") if key in data) or "neither"
        raise CircuitError(f"Expected format {form} version {version}, got {got}{writer}.")


def read_gates(data: Mapping[str, Any], inputs: Sequence[str]) -> tuple[list[int], list[Wire], list[int]]:
    """Return gate ids, wires and outputs in topological order; `inputs` names the inputs. Raise CircuitError."""
    rows, gate_ids, wires = typed(data, "gates", list), [], []
    bits = _bits(rows, inputs)
    for row in rows:
        gate = row.get("gate")
        if type(gate) is not int or not 0 <= gate < gates.GATE_COUNT:
            last = gates.GATE_COUNT - 1
            raise CircuitError(f"Unknown function {shown(gate)} of gate {row['id']!r}: expected 0 to {last}.")
        gate_ids.append(gate)
        where = f"gate {row['id']!r}"
        wires.append((_bit(bits, row.get("a"), where), _bit(bits, row.get("b"), where)))
    ends = [_bit(bits, name, "an output") for name in typed(data, "outputs", list)]
    # Other programs may write gates in any order; gates that are sorted already keep their order.
    order, wires, ends = topological_sort(len(inputs), wires, ends, [row["id"] for row in rows])
    return [gate_ids[index] for index in order], wires, ends


def _scenario(data: Mapping[str, Any]) -> Scenario:
    names = [field.name for field in fields(Scenario)]
    if unknown := sorted(data.keys() - set(names)):
        raise CircuitError(f"Unknown field {shown(unknown[0])} in habitat: expected {', '.join(names)}.")
    rate = data.get("fire_rate", 1.0)
    if type(rate) not in (int, float):
        raise CircuitError(f"fire_rate must be a number, got {shown(rate)}.")
    rows = typed(data, "picture", list) if "picture" in data else []
    if not all(isinstance(row, str) for row in rows):
        raise CircuitError(f"picture in habitat must be a list of rows of text, got {shown(rows)}.")
    sizes = {name: _whole(data, name) for name in ("height", "width", "steps")}
    return Scenario(start=typed(data, "start", str), fire_rate=float(rate), picture=tuple(rows), **sizes)


def _bits(rows: Sequence[Any], inputs: Sequence[str]) -> dict[str, int]:
    """Return a mapping from each name to its bit number: first the inputs, then the gates in the order of the file."""
    # All names are numbered first, since a gate may read a gate that comes later in the file.
    bits = {name: bit for bit, name in enumerate(inputs)}
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise CircuitError(f"Gate {index} must be an object with a string as its id, got {shown(row)}.")
        if row["id"] in bits or _INPUT.fullmatch(row["id"]):
            raise CircuitError(f"Duplicate gate id {row['id']!r}: each gate and input needs a unique name.")
        bits[row["id"]] = len(inputs) + index
    return bits


def _bit(bits: Mapping[str, int], name: Any, where: str) -> int:
    if not isinstance(name, str) or name not in bits:
        raise CircuitError(f"Unknown bit {shown(name)} in {where}: expected the name of an input or a gate.")
    return bits[name]


def _whole(data: Mapping[str, Any], key: str) -> int:
    value = data.get(key)
    if type(value) is not int or value < 1:
        raise CircuitError(f"{key} must be an integer of at least 1, got {shown(value)}.")
    return value


def typed(data: Mapping[str, Any], key: str, kind: type) -> Any:
    """Return the value of a required key. Raise CircuitError if it is missing or of another type."""
    value = data.get(key)
    if not isinstance(value, kind):
        raise CircuitError(f"{key} must be {KINDS[kind]}, got {shown(value)}.")
    return value


def shown(value: Any) -> str:
    """Return the `repr` of a value, shortened to 80 characters for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
