"""Export of Verilog 2005: the cell, a grid of registers around it, and a test bench with expected values.

Each gate is a scalar wire, since simulators take a thousand times as long for a vector of gates. Verification runs the
bench in iverilog on more neighbourhoods than are exported; then yosys and ABC prove the cell equal to the circuit.
The files must also be valid SystemVerilog, which has more reserved words, since newer tools read Verilog as such.
"""

from pathlib import Path

from difflogic.circuits.export.proving import equivalent, folder_of, vectors_for, write_circuit
from difflogic.circuits.export.testbench import Vectors, bench_files, cell_text, grid_sides
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.synthesis import tools
from difflogic.errors import ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import lines


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the contents of `NAME.v`, `NAME_tb.v` and the two files of vectors that the bench reads."""
    height, width = grid_sides(netlist)
    bench = fill("bench.v", netlist, name, height=height, width=width, cells=height * width)
    design = cell_module(netlist, name) + fill("grid.v", netlist, name)
    return {f"{name}.v": design, f"{name}_tb.v": bench, **bench_files(netlist, name)}


def cell_module(netlist: CellNetlist, name: str) -> str:
    """Return the Verilog of two combinational modules: the cell, and the next state of a grid."""
    body = statements(netlist, "wire {name} = {value};", "assign result[{name}] = {value};", "1'b0", "1'b1")
    return fill("cell.v", netlist, name, body=body)


_WORK = 2e8
"""Maximum number of gates times vectors, so that an event-driven simulator takes at most a minute or two."""
_SMALL = ("-GHEIGHT=2", "-GWIDTH=3")
"""Verilator parameters for a small grid, since Verilator checks each cell of a grid separately."""
MOST_SIMULATED = 5_000
"""Maximum number of gates in a simulation: in a larger circuit, one changed input may cause too many events."""


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    vectors = vectors_for(netlist, _WORK)
    count = len(lines(netlist))
    with folder_of({**files, f"{name}_tb_cell.txt": cell_text(netlist, vectors)}) as folder:
        read_by = read_without_a_warning(folder, name, f"{name}_grid", *_SMALL)
        if count > MOST_SIMULATED:
            simulated = f"the bench was not run, since {count} gates are too many"
        else:
            simulated = passed(tools.run_in(folder, "vvp", "-n", "bench").decode().strip(), "iverilog", vectors)
        return [read_by, simulated, proved_cell(netlist, folder, name)]


def proved_cell(netlist: CellNetlist, folder: Path, name: str) -> str:
    """Prove the cell in `NAME.v` equal to `netlist`; return this as a sentence. Raises ExportError or ToolError."""
    write_circuit(netlist, folder)
    script = f"read_verilog -defer {name}.v; hierarchy -top {name}_cell; simplemap; opt_clean; write_blif yosys.blif"
    tools.run_in(folder, tools.YOSYS, "-q", "-p", script)
    return equivalent(folder, "yosys.blif", "what yosys reads")


def read_without_a_warning(folder: Path, name: str, top: str, *parameters: str) -> str:
    """Check that tools read module `top` without warnings; return a sentence. Raises ExportError or ToolError."""
    both = ("-Wall", "-o", "bench", f"{name}.v", f"{name}_tb.v")
    readers = {f"iverilog {standard}": ["iverilog", standard, *both] for standard in ("-g2005", "-g2012")}
    if not tools.missing("verilator"):
        readers["verilator"] = ["verilator", "--lint-only", "-Wall", *parameters, "--top-module", top, f"{name}.v"]
    for reader, command in readers.items():
        if warnings := tools.run_in(folder, *command):
            raise ExportError(f"{reader} warns: {warnings.decode().splitlines()[0]}")
    return f"{', '.join(readers)} read it without a warning"


def passed(output: str, program: str, vectors: Vectors) -> str:
    """Return a sentence on success. Raises ExportError if the last line of `output` is not PASS for all vectors."""
    line = (output.splitlines() or ["nothing"])[-1]
    if "PASS: " not in line:
        raise ExportError(f"{program} found a difference: {line}")
    count, steps = line.split("PASS: ")[1].split(" vectors, ")
    if int(count) != vectors.count:
        raise ExportError(f"{program} read {count} vectors, expected {vectors.count}.")
    return f"{program} agrees on {vectors.described()} and, on a grid, in {steps}"
