"""VHDL: the shipped bench in ghdl, with all neighbourhoods."""

from __future__ import annotations

from difflogic.circuits import tools
from difflogic.circuits.export.bench import cell_text
from difflogic.circuits.export.proofs.common import folder_of, vectors_for
from difflogic.circuits.export.proofs.verilog import passed
from difflogic.circuits.export.text import Files
from difflogic.netlist import Netlist

_WORK = 2e9
"""Gates times vectors: ghdl runs the cell as a program."""


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    vectors = vectors_for(netlist, _WORK)
    with folder_of({**files, f"{name}_tb_cell.txt": cell_text(netlist, vectors)}) as folder:
        tools.run_in(folder, "ghdl", "-a", "--std=08", f"{name}.vhd", f"{name}_tb.vhd")
        tools.run_in(folder, "ghdl", "-e", "--std=08", f"{name}_tb")
        said = tools.run_in(folder, "ghdl", "-r", "--std=08", f"{name}_tb").decode().strip()
    return [passed(said, "ghdl", vectors)]
