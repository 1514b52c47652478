"""Export of VHDL-2008: the cell, a grid of registers around it, and a test bench with expected values.

Gates are variables of one process, since ghdl takes minutes for ten thousand signals. Verification runs the exported
bench in ghdl, on more neighbourhoods than are exported.
"""

from collections.abc import Sequence
from pathlib import Path

from difflogic.circuits.export.proving import folder_of, vectors_for
from difflogic.circuits.export.testbench import bench_files, cell_text, grid_sides
from difflogic.circuits.export.text import Files, bit_names, fill
from difflogic.circuits.export.verilog import passed
from difflogic.circuits.synthesis import tools
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines

EXPRESSIONS = (
    "'0'", "{a} and {b}", "{a} and not {b}", "{a}", "not {a} and {b}", "{b}", "{a} xor {b}", "{a} or {b}",
    "{a} nor {b}", "{a} xnor {b}", "not {b}", "{a} or not {b}", "not {a}", "not {a} or {b}", "{a} nand {b}", "'1'",
)  # fmt: skip


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the contents of `NAME.vhd`, `NAME_tb.vhd` and the two files of vectors that the bench reads."""
    code = process(netlist, bit_names(netlist, "patch({})"))
    design = fill("cell.vhd", netlist, name, periodic=str(netlist.periodic).lower(), **code)
    height, width = grid_sides(netlist)
    cells = height * width
    last_bit = netlist.channels * cells - 1
    bench = fill("bench.vhd", netlist, name, height=height, width=width, last_cell=cells - 1, last_bit=last_bit)
    return {f"{name}.vhd": design, f"{name}_tb.vhd": bench, **bench_files(netlist, name)}


def process(netlist: Netlist, names: Sequence[str], inputs: Sequence[str] = ()) -> dict[str, str]:
    """Return a process's declarations and statements; bits have `names`, and the statements `inputs` set inputs."""
    gates, outputs = lines(netlist), enumerate(netlist.outputs.tolist())
    variables = [*(names[: netlist.inputs] if inputs else ()), *(names[gate.bit] for gate in gates)]
    body = [*inputs, *(f"{names[g.bit]} := {EXPRESSIONS[g.gate].format(a=names[g.a], b=names[g.b])};" for g in gates)]
    body += [f"{netlist.buses[1]}({index}) <= {names[output]};" for index, output in outputs]
    declared = "\n        ".join(f"variable {name} : std_logic;" for name in variables)
    return {"variables": declared, "body": "\n        ".join(body)}


_WORK = 2e9
"""Maximum number of gates times vectors: larger than for Verilog, since ghdl compiles the cell."""


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    vectors = vectors_for(netlist, _WORK)
    with folder_of({**files, f"{name}_tb_cell.txt": cell_text(netlist, vectors)}) as folder:
        return [passed(simulated(folder, name), "ghdl", vectors)]


def simulated(folder: Path, name: str) -> str:
    """Run the bench `NAME_tb.vhd` in ghdl and return its output. Raises ToolError."""
    tools.run_in(folder, "ghdl", "-a", "--std=08", f"{name}.vhd", f"{name}_tb.vhd")
    tools.run_in(folder, "ghdl", "-e", "--std=08", f"{name}_tb")
    return tools.run_in(folder, "ghdl", "-r", "--std=08", f"{name}_tb").decode()
