"""Reader of DigitalJS JSON (github.com/tilk/digitaljs), including the gates and names of the paper's web article.

    {"devices": {"i_69": {"type": "Button", "label": "i: ch 7, pos 6"}, "l_3_54": {"type": "Or"},
                 "o_0": {"type": "Output", "label": "o: ch 0"}, ...},
     "connectors": [{"from": {"id": "i_69", "port": "out"}, "to": {"id": "l_3_54", "port": "in1"}}, ...]}

The bit of an input (`Button` or `Input`) is given by its label, `i: ch 7, pos 6`, `i_7_6` or `in[7][6]`, otherwise by
its id, as in `i_69` with `9*channel + patch`. Outputs (`Output` or `Lamp`) have `o: ch 7`, `o_7` or `out[7]`. One-bit
gates are `And Or Xor Nand Nor Xnor` with two or more inputs, `Not Repeater Constant`, and the article's own gates
`AAndNotB AOrNotB NotAAndB NotAOrB True False`. Each channel needs an output. Repeated connectors, as in the article's
files, count as one wire. The format does not specify a boundary, so it is zero by default.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from difflogic.core import wiring
from difflogic.errors import CircuitError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist

KEYS = {"devices", "connectors"}
"""Top-level JSON keys that identify a DigitalJS file."""

_TWO = {
    "And": 1, "Or": 7, "Xor": 6, "Nand": 14, "Nor": 8, "Xnor": 9,
    "AAndNotB": 2, "NotAAndB": 4, "AOrNotB": 11, "NotAOrB": 13,
}  # fmt: skip
_PLAIN = {"And": 1, "Nand": 1, "Or": 7, "Nor": 7, "Xor": 6, "Xnor": 6}
"""Mapping from device types to the gate that combines all inputs but the last; the device's own gate adds the last."""
_ONE = {"Not": 12, "Repeater": 3}
_CONSTANT = {"True": 15, "False": 0, "Constant": None}
_INPUTS, _OUTPUTS = ("Button", "Input"), ("Output", "Lamp")

_INPUT_LABEL = re.compile(r"i: ch (\d{1,6}), pos ([0-8])|i_(\d{1,6})_([0-8])|in\[(\d{1,6})\]\[([0-8])\]")
_INPUT_ID = re.compile(r"i_(\d{1,6})")
_OUTPUT = re.compile(r"o: ch (\d{1,6})|o_(\d{1,6})|out\[(\d{1,6})\]")

Row = dict[str, Any]


def from_data(data: Mapping[str, Any]) -> CellNetlist:
    """Return the netlist of a parsed DigitalJS file. Raises CircuitError if it is invalid."""
    devices, connectors = data["devices"], data["connectors"]
    if not isinstance(devices, dict) or not isinstance(connectors, list) or data.get("subcircuits"):
        raise CircuitError(
            "A DigitalJS circuit must have an object of devices, a list of connectors, and no subcircuits."
        )
    for name, device in devices.items():
        if not isinstance(device, dict) or device.get("bits", 1) != 1 or device.get("bits") is True:
            raise CircuitError(f"The device {name!r} must be a JSON object whose `bits` are 1 or omitted.")
        for key in ("type", "label"):
            if not isinstance(device.get(key, ""), str):
                raise CircuitError(f"The {key} of the device {name!r} must be text, got {device[key]!r:.40}.")
    names = {name: _bit_name(name, device) for name, device in devices.items()}
    # Convert all devices to rows of circuit.json, whose reader sorts the gates and detects cycles.
    twice, times = Counter(names.values()).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise CircuitError(f"Several devices represent {twice!r}: expected at most one device per input or output.")
    ports = _ports(connectors, names)
    rows = [row for name, device in devices.items() for row in _rows(name, device, ports.get(name, {}))]
    outputs = {names[name]: _port(ports, name, "in") for name in names if devices[name].get("type") in _OUTPUTS}
    channels = _channels(names.values(), outputs)
    head = {"format": netlist_json.FORMAT, "version": netlist_json.VERSION, "channels": channels, "periodic": False}
    ends = [outputs[f"out[{channel}]"] for channel in range(channels)]
    return netlist_json.from_data(head | {"gates": rows, "outputs": ends})


def _bit_name(name: str, device: Mapping[str, Any]) -> str:
    """Return the name of a device's bit: `in[channel][patch]`, `out[channel]`, or for a gate the device's name."""
    label = device.get("label", "")
    if device.get("type") in _INPUTS:
        if match := _INPUT_LABEL.fullmatch(label):
            channel, patch = (group for group in match.groups() if group is not None)
            return f"in[{int(channel)}][{patch}]"
        if match := _INPUT_ID.fullmatch(name):
            return "in[{}][{}]".format(*divmod(int(match[1]), wiring.PATCH))
        raise CircuitError(f"The label or id of the input {name!r} must name its bit, as in `i: ch 7, pos 6`.")
    if device.get("type") in _OUTPUTS:
        match = _OUTPUT.fullmatch(label) or _OUTPUT.fullmatch(name)
        if match is None:
            raise CircuitError(f"The label or id of the output {name!r} must name its channel, as in `o: ch 7`.")
        return f"out[{int(next(group for group in match.groups() if group))}]"
    return name


def _ports(connectors: Sequence[Any], names: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the bit that drives each port, by device and port; `names` maps devices to bits. Raises CircuitError."""
    ports: dict[str, dict[str, str]] = {}
    for connector in connectors:
        try:
            source, target = connector["from"]["id"], connector["to"]["id"]
            port = connector["to"]["port"]
            is_valid = source in names and target in names and connector["from"]["port"] == "out"
        except (KeyError, TypeError) as error:
            raise CircuitError(
                f"A connector must have 'from' and 'to', each with 'id' and 'port', got {connector!r:.80}."
            ) from error
        if not is_valid or not isinstance(port, str):
            raise CircuitError(
                f"A connector from {source!r} to {target!r} must lead from the port 'out' of a device to another."
            )
        if ports.setdefault(target, {}).setdefault(port, names[source]) != names[source]:
            raise CircuitError(
                f"The port {port!r} of {target!r} is driven twice, by {ports[target][port]!r} and {names[source]!r}."
            )
    return ports


def _port(ports: Mapping[str, Mapping[str, str]], name: str, port: str) -> str:
    if port not in ports.get(name, {}):
        raise CircuitError(f"The port {port!r} of {name!r} is not connected.")
    return ports[name][port]


def _rows(name: str, device: Mapping[str, Any], ports: Mapping[str, str]) -> Iterator[Row]:
    """Yield a device's gates as rows of circuit.json: none for an input or output. Raises CircuitError."""
    kind: str = device.get("type", "")
    if kind in _INPUTS or kind in _OUTPUTS:
        _refuse_others(name, ports, ["in"] if kind in _OUTPUTS else [])
    elif kind in _CONSTANT:
        gate = _CONSTANT[kind]
        if gate is None:
            if device.get("constant") not in ("0", "1"):
                raise CircuitError(f"The constant {name!r} must be '0' or '1', got {device.get('constant')!r:.40}.")
            gate = 15 * int(device["constant"])
        yield {"id": name, "gate": gate, "a": "in[0][0]", "b": "in[0][0]"}
    elif kind in _ONE:
        a = _port({name: ports}, name, "in")
        _refuse_others(name, ports, ["in"])
        yield {"id": name, "gate": _ONE[kind], "a": a, "b": a}
    elif kind in _TWO:
        yield from _joined(name, kind, device, ports)
    else:
        raise CircuitError(f"Unknown type {kind!r:.40} of the device {name!r}.")


def _joined(name: str, kind: str, device: Mapping[str, Any], ports: Mapping[str, str]) -> Iterator[Row]:
    """Yield the gates of a device with two or more inputs: a chain in which each gate adds one input."""
    count = device.get("inputs", 2)
    if type(count) is not int or not 2 <= count <= (2 if kind not in _PLAIN else len(ports) or 2):
        raise CircuitError(
            f"The gate {name!r} of type {kind} has {count!r:.40} inputs, {len(ports)} connected: expected 2 "
            "inputs, or more for the types And, Nand, Or, Nor, Xor and Xnor, all connected."
        )
    read = [f"in{index}" for index in range(1, count + 1)]
    _refuse_others(name, ports, read)
    result, *rest = (_port({name: ports}, name, port) for port in read)
    for index, driver in enumerate(rest, 1):
        last = index == len(rest)
        own = name if last else f"{name} in{index + 1}"
        yield {"id": own, "gate": _TWO[kind] if last else _PLAIN[kind], "a": result, "b": driver}
        result = own


def _refuse_others(name: str, ports: Mapping[str, str], read: Sequence[str]) -> None:
    """Raise CircuitError if a port is driven that is not in `read`, the ports that the device has."""
    if others := sorted(ports.keys() - set(read)):
        raise CircuitError(f"A connector refers to the port {others[0]!r}, which the device {name!r} does not have.")


def _channels(names: Any, outputs: Mapping[str, str]) -> int:
    """Return the number of channels. Raises CircuitError if a channel up to the highest one used has no output."""
    channels = len(outputs)
    if not channels or set(outputs) != {f"out[{channel}]" for channel in range(channels)}:
        raise CircuitError(f"Expected outputs of channels 0, 1, ..., one each, got {', '.join(outputs) or 'none'}.")
    for name in names:
        if name.startswith("in[") and int(name[3 : name.index("]")]) >= channels:
            raise CircuitError(f"Expected an output for the channel of the input {name}, got none.")
    return channels
