"""Export of BLIF, each gate as a table of a few rows, for ABC, yosys, SIS and other tools. ABC verifies the file.

A cell has inputs `patch[9*channel + 3*dy + dx]` and outputs `result[channel]`; a controller has `code[i]` and
`action[i]`, and any other function `code[i]` and `result[i]`. Gates have the same names as in circuit.json.
"""

from difflogic.circuits.export.proving import proved_by_abc
from difflogic.circuits.export.text import Files, about, bit_names, legend, output_names
from difflogic.model.controller import Controller
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import READS, Assignment, lines

_XNOR = 9


def export(netlist: Netlist, name: str) -> Files:
    """Return the circuit in BLIF, as the contents of `NAME.blif`."""
    return {f"{name}.blif": _model(netlist, f"{name}_{netlist.kind}")}


def _model(netlist: Netlist, name: str) -> str:
    names = bit_names(netlist)
    latches = netlist.latches if isinstance(netlist, Controller) else {}
    inputs = [name for bit, name in enumerate(names[: netlist.inputs]) if bit not in latches]
    # Memory bits that no gate reads have no latch.
    results = output_names(netlist)[: len(netlist.outputs) - (netlist.memory if isinstance(netlist, Controller) else 0)]
    text = [f"# {line}" for line in (about(netlist), *legend(netlist))]
    text += [f".model {name}", f".inputs {' '.join(inputs)}", f".outputs {' '.join(results)}"]
    text += [f".latch {names[netlist.outputs[output]]} {names[bit]} 0" for bit, output in latches.items()]
    for line in lines(netlist):
        text += _table(line, names)
    for result, output in zip(results, netlist.outputs.tolist(), strict=False):
        text += [f".names {names[output]} {result}", "1 1"]
    return "\n".join([*text, ".end", ""])


def _table(line: Assignment, names: list[str]) -> list[str]:
    """Return a gate's table as BLIF lines: the rows with result 1 or, for XNOR and for three ones, with result 0."""
    reads = READS[line.gate]
    rows = {0: {"": 0}, 1: {"0": 3, "1": 1}, 2: {"00": 3, "01": 2, "10": 1, "11": 0}}[reads]
    values = {row: line.gate >> shift & 1 for row, shift in rows.items()}
    listed = 0 if sum(values.values()) == 3 or line.gate == _XNOR else 1
    head = " ".join([".names", *(names[bit] for bit in line.reads), names[line.bit]])
    return [head, *(f"{row} {listed}".strip() for row, value in values.items() if value == listed)]


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError or ToolError."""
    machine = netlist.machine() if isinstance(netlist, Controller) and netlist.memory else netlist
    return proved_by_abc(machine, files, f"{name}.blif")
