"""Export of VHDL-2008: an entity, and a test bench, which verification runs in ghdl with 100,000 samples."""

from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.export.functions.verilog import bench_files, bench_text, passed
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.text import Files, bit_names, fill
from difflogic.circuits.export.vhdl import process, simulated
from difflogic.model.function_netlist import FunctionNetlist


def export(function: FunctionNetlist, name: str) -> Files:
    """Return the contents of `NAME.vhd`, `NAME_tb.vhd` and the files of samples that the bench reads."""
    form, sample = function.thermometer.fixed_point(), function.words.sample
    inputs = []
    for bit, (d, i) in enumerate(function.thermometer.places):
        number = form.thresholds[d][i] & ((1 << form.width) - 1)
        place = f"{sample}({form.width * (d + 1) - 1} downto {form.width * d})"
        reached = f"{sample}({d})" if function.reads_bits else f'reached({place}, "{number:0{form.width}b}")'
        inputs.append(f"t{bit} := {reached}; -- {function.input_names[bit]}")
    design = fill("function.vhd", function, name, **process(function, bit_names(function, "t{}"), inputs))
    bench = fill("function_bench.vhd", function, name)
    return {f"{name}.vhd": design, f"{name}_tb.vhd": bench, **bench_files(function, name)}


def verify(function: FunctionNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    tried = Observations(function, function.thermometer.fixed_point())
    with folder_of({**files, f"{name}_tb.txt": bench_text(tried)}) as folder:
        return [passed(simulated(folder, name), "ghdl", tried)]
