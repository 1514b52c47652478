"""Export of VHDL-2008: the cell, a grid of registers around it, and a test bench with expected values.

Gates are variables of one process, since ghdl takes minutes for ten thousand signals. Verification runs the exported
bench in ghdl with more neighbourhoods.
"""

from pathlib import Path

from difflogic.circuits.export.proving import folder_of, vectors_for
from difflogic.circuits.export.testbench import bench_files, cell_text, grid_sides
from difflogic.circuits.export.text import Files, bit_names, fill
from difflogic.circuits.export.verilog import passed
from difflogic.circuits.synthesis import tools
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import lines

EXPRESSIONS = (
    "'0'", "{a} and {b}", "{a} and not {b}", "{a}", "not {a} and {b}", "{b}", "{a} xor {b}", "{a} or {b}",
    "{a} nor {b}", "{a} xnor {b}", "not {b}", "{a} or not {b}", "not {a}", "not {a} or {b}", "{a} nand {b}", "'1'",
)  # fmt: skip


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the contents of `NAME.vhd`, `NAME_tb.vhd` and the two files of vectors that the bench reads."""
    names = bit_names(netlist, "patch({})")
    gates = lines(netlist)
    design = fill(
        "cell.vhd",
        netlist,
        name,
        periodic=str(netlist.periodic).lower(),
        variables="\n        ".join(f"variable {names[line.bit]} : std_logic;" for line in gates),
        body="\n        ".join(
            [f"{names[g.bit]} := {EXPRESSIONS[g.gate].format(a=names[g.a], b=names[g.b])};" for g in gates]
            + [f"result({channel}) <= {names[output]};" for channel, output in enumerate(netlist.outputs.tolist())]
        ),
    )
    height, width = grid_sides(netlist)
    cells = height * width
    last_bit = netlist.channels * cells - 1
    bench = fill("bench.vhd", netlist, name, height=height, width=width, last_cell=cells - 1, last_bit=last_bit)
    return {f"{name}.vhd": design, f"{name}_tb.vhd": bench, **bench_files(netlist, name)}


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
