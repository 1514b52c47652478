"""Export of VHDL-2008: an entity, and a test bench, which verification runs in ghdl with 100,000 samples."""

from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.export.functions.verilog import bench_files, bench_text, passed
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.text import Files, bit_names, fill
from difflogic.circuits.export.vhdl import EXPRESSIONS, simulated
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.straight_line import lines


def export(function: FunctionNetlist, name: str) -> Files:
    """Return the contents of `NAME.vhd`, `NAME_tb.vhd` and the files of samples that the bench reads."""
    form, sample = function.thermometer.fixed_point(), function.words.sample
    names, gates = bit_names(function, "t{}"), lines(function)
    body = []
    for bit, (d, i) in enumerate(function.thermometer.places):
        number = form.thresholds[d][i] & ((1 << form.width) - 1)
        place = f"{sample}({form.width * (d + 1) - 1} downto {form.width * d})"
        reached = f"{sample}({d})" if function.reads_bits else f'reached({place}, "{number:0{form.width}b}")'
        body.append(f"t{bit} := {reached}; -- {function.input_names[bit]}")
    body += [f"{names[g.bit]} := {EXPRESSIONS[g.gate].format(a=names[g.a], b=names[g.b])};" for g in gates]
    result = function.buses[1]
    body += [f"{result}({index}) <= {names[output]};" for index, output in enumerate(function.outputs.tolist())]
    variables = [*names[: function.inputs], *(names[line.bit] for line in gates)]
    design = fill(
        "function.vhd",
        function,
        name,
        variables="\n        ".join(f"variable {variable} : std_logic;" for variable in variables),
        body="\n        ".join(body),
    )
    return {
        f"{name}.vhd": design,
        f"{name}_tb.vhd": fill("function_bench.vhd", function, name),
        **bench_files(function, name),
    }


def verify(function: FunctionNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    tried = Observations(function, function.thermometer.fixed_point())
    with folder_of({**files, f"{name}_tb.txt": bench_text(tried)}) as folder:
        return [passed(simulated(folder, name), "ghdl", tried)]
