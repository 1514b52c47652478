"""berkeley-abc's `cec`: equal for every input, or not, whatever the size of the circuit."""

from __future__ import annotations

from pathlib import Path

from difflogic.circuits import tools
from difflogic.circuits.blif import to_blif
from difflogic.errors import ExportError, ToolError
from difflogic.netlist import Netlist

_CIRCUIT = "circuit.blif"


def write_circuit(netlist: Netlist, folder: Path) -> None:
    """The netlist itself, gate by gate, for `equivalent`."""
    inputs = [netlist.bit_name(bit) for bit in range(netlist.inputs)]
    (folder / _CIRCUIT).write_text(to_blif(netlist, inputs, netlist.origin, "circuit"))


def equivalent(folder: Path, file: str, what: str) -> str:
    """The sentence of the proof that `file` is what `write_circuit` wrote, inputs and outputs in their order.

    Raises ExportError and ToolError.
    """
    said = tools.run_in(folder, tools.ABC, "-q", f"cec -n {_CIRCUIT} {file}").decode(errors="replace")
    if "NOT EQUIVALENT" in said:
        raise ExportError(f"berkeley-abc proves that {what} differs from the circuit.")
    if "Networks are equivalent" not in said:
        raise ToolError(f"berkeley-abc gave no verdict on {what}: {said.strip()[-200:]}")
    return f"berkeley-abc proves {what} equivalent (cec)"
