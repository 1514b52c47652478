"""Export of JSON for DigitalJS, a circuit simulator and editor in the browser, with a button per input.

A gate with one inverted input becomes two devices, since DigitalJS has no such gate. Verification reads the file back
with difflogic's reader.
Source of the format: the README of DigitalJS (tilk/digitaljs), "Input format".
"""

import json

from difflogic.circuits.export.drawing import SYMBOLS
from difflogic.circuits.export.proving import check_cells, vectors_for
from difflogic.circuits.export.text import Files, bit_names
from difflogic.circuits.readers import digitaljs
from difflogic.core import wiring
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import FALSE, NOT_A, TRUE, A, Assignment, lines, read_inputs

Device = dict[str, str | int]


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the circuit in DigitalJS's JSON format, as the contents of `NAME_digitaljs.json`."""
    drawing = _Drawing(netlist)
    data = {"devices": drawing.devices, "connectors": drawing.connectors, "subcircuits": {}}
    return {f"{name}_digitaljs.json": json.dumps(data, indent=1) + "\n"}


class _Drawing:
    """Circuit in DigitalJS's format: `devices` by id, and the wires between devices as `connectors`."""

    def __init__(self, netlist: CellNetlist) -> None:
        self.devices: dict[str, Device] = {}
        self.connectors: list[dict[str, dict[str, str]]] = []
        self._names = bit_names(netlist, "i_{}")
        for bit in read_inputs(netlist):
            channel, patch = divmod(bit, wiring.PATCH)
            self._add(self._names[bit], "Button", label=f"in[{channel}][{patch}]")
        for line in lines(netlist):
            self._gate(line)
        for channel, output in enumerate(netlist.outputs.tolist()):
            self._add(f"o_{channel}", "Lamp", label=f"out[{channel}]")
            self._connect(self._names[output], f"o_{channel}", "in")

    def _add(self, name: str, kind: str, **more: str | int) -> None:
        self.devices[name] = {"type": kind, "bits": 1, **more}

    def _connect(self, source: str, target: str, port: str) -> None:
        self.connectors.append({"from": {"id": source, "port": "out"}, "to": {"id": target, "port": port}})

    def _gate(self, line: Assignment) -> None:
        name = self._names[line.bit]
        reads = [self._names[bit] for bit in line.reads]
        if line.gate in (FALSE, TRUE):
            self._add(name, "Constant", label=name, constant=str(line.gate & 1))
        elif line.gate in (A, NOT_A):
            self._add(name, "Not" if line.gate == NOT_A else "Repeater", label=name)
            self._connect(reads[0], name, "in")
        else:
            symbol, inverted = SYMBOLS[line.gate]
            if 1 in inverted:  # at most one of the two inputs
                self._add(f"{name}_not", "Not", label=f"{name}_not")
                self._connect(reads[inverted.index(1)], f"{name}_not", "in")
                reads[inverted.index(1)] = f"{name}_not"
            self._add(name, symbol.capitalize(), label=name, inputs=2)
            for index, read in enumerate(reads, start=1):
                self._connect(read, name, f"in{index}")


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError."""
    read = digitaljs.from_data(json.loads(files[f"{name}_digitaljs.json"]))
    vectors = vectors_for(netlist)
    return [check_cells(netlist, vectors, vectors.outputs(read), "read back, it")]
