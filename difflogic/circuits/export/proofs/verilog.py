"""Verilog: the shipped bench, and one with all neighbourhoods, in iverilog; then yosys and ABC prove the cell."""

from __future__ import annotations

from difflogic.circuits import tools
from difflogic.circuits.export.bench import cell_text
from difflogic.circuits.export.proofs.common import folder_of, vectors_for
from difflogic.circuits.export.proofs.judges import equivalent, write_circuit
from difflogic.circuits.export.text import Files
from difflogic.circuits.export.vectors import Vectors
from difflogic.errors import ExportError
from difflogic.netlist import Netlist
from difflogic.straight_line import lines

_WORK = 2e8
"""Gates times vectors that an event simulator gets through in a minute or two."""
_MOST_SIMULATED = 5_000
"""Gates beyond which one change of an input may set off more events than memory holds."""


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    vectors = vectors_for(netlist, _WORK)
    count = len(lines(netlist))
    with folder_of({**files, f"{name}_tb_cell.txt": cell_text(netlist, vectors)}) as folder:
        warnings = tools.run_in(folder, "iverilog", "-g2005", "-Wall", "-o", "bench", f"{name}.v", f"{name}_tb.v")
        if warnings:
            raise ExportError(f"iverilog warns: {warnings.decode().splitlines()[0]}")
        if count > _MOST_SIMULATED:
            simulated = f"iverilog takes it without a warning ({count} gates are too many to run the bench)"
        else:
            simulated = passed(tools.run_in(folder, "vvp", "-n", "bench").decode().strip(), "iverilog", vectors)
        write_circuit(netlist, folder)
        script = (
            f"read_verilog -defer {name}.v; hierarchy -top {name}_cell; simplemap; opt_clean; write_blif yosys.blif"
        )
        tools.run_in(folder, tools.YOSYS, "-q", "-p", script)
        return [simulated, equivalent(folder, "yosys.blif", "what yosys reads")]


def passed(said: str, program: str, vectors: Vectors) -> str:
    """The sentence for a bench's last line. Raises ExportError where it does not say PASS."""
    line = (said.splitlines() or ["nothing"])[-1]
    if "PASS: " not in line:
        raise ExportError(f"{program} finds a difference: {line}")
    count, steps = line.split("PASS: ")[1].split(" vectors, ")
    if int(count) != vectors.count:
        raise ExportError(f"{program} read {count} vectors, {vectors.count} were given.")
    return f"{program} agrees on {vectors.described()} and, on a grid, in {steps}"
