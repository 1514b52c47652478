"""BLIF: read and judged by ABC."""

from __future__ import annotations

from difflogic.circuits.export.proofs.common import folder_of
from difflogic.circuits.export.proofs.judges import equivalent, write_circuit
from difflogic.circuits.export.text import Files
from difflogic.netlist import Netlist


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    with folder_of(files) as folder:
        write_circuit(netlist, folder)
        return [equivalent(folder, f"{name}.blif", "it")]
