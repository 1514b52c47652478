"""Export of Verilog 2005: a combinational module that takes a sample as bits or in fixed point, and a test bench.

Verification runs the exported bench in iverilog with 100,000 samples. Then yosys synthesizes the module, and ABC proves
the result equal to the circuit for every sample. If samples are numbers, comparators precede the gates.
"""

from difflogic.circuits.export.functions.observations import STEPS, Observations, Steps
from difflogic.circuits.export.proving import equivalent, folder_of, write_circuit
from difflogic.circuits.export.testbench import hexadecimal_lines
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.export.verilog import MOST_SIMULATED, read_without_a_warning
from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.function import with_comparators
from difflogic.errors import ExportError
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.straight_line import lines, read_inputs
from difflogic.model.thermometer import FixedPoint

SHIPPED = 256
"""Maximum number of samples that the exported bench reads."""


def export(function: FunctionNetlist, name: str) -> Files:
    """Return the contents of `NAME.v`, `NAME_tb.v` and the files of samples that the bench reads."""
    form = function.thermometer.fixed_point()
    assign = f"assign {function.buses[1]}[{{name}}] = {{value}};"
    gates = statements(function, "wire {name} = {value};", assign, "1'b0", "1'b1", "t{}")
    return {
        f"{name}.v": fill("function.v", function, name, body="\n    ".join([*_code(function, form), gates])),
        f"{name}_tb.v": fill("function_bench.v", function, name),
        **bench_files(function, name),
    }


def _code(function: FunctionNetlist, form: FixedPoint) -> list[str]:
    """Return Verilog declarations of the wires `t0, t1, ...`, one per input bit or threshold that the gates read."""
    width, sample = form.width, function.words.sample
    read = [(bit, *function.thermometer.places[bit]) for bit in read_inputs(function)]
    if function.reads_bits:
        return [f"wire t{bit} = {sample}[{d}]; // {function.input_names[bit]}" for bit, d, _ in read]
    numbers = [
        f"wire signed [{width - 1}:0] x{d} = {sample}[{width * d} +: {width}]; // {function.observations[d]}"
        for d in sorted({d for _, d, _ in read})
    ]
    values = [(bit, d, form.thresholds[d][i]) for bit, d, i in read]
    return numbers + [
        f"wire t{bit} = x{d} >= {'-' * (value < 0)}{width}'sd{abs(value)}; // {function.input_names[bit]}"
        for bit, d, value in values
    ]


def bench_files(function: FunctionNetlist, name: str) -> Files:
    """Return the contents of `NAME_tb.txt` (the bench's samples) and, with memory, `NAME_tb_steps.txt` (a sequence)."""
    form = function.thermometer.fixed_point()
    files: Files = {f"{name}_tb.txt": bench_text(Observations(function, form, SHIPPED))}
    return files | ({f"{name}_tb_steps.txt": bench_text(Steps(function, form, STEPS))} if function.memory else {})


def bench_text(tried: Observations) -> str:
    """Return one line per sample, in hexadecimal: the bits of all its numbers, then the expected result."""
    return hexadecimal_lines(tried.bits(), tried.result_bits())


def verify(function: FunctionNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    form, top = function.thermometer.fixed_point(), f"{name}_{function.kind}"
    tried = Observations(function, form)
    count = len(lines(function))
    with folder_of({**files, f"{name}_tb.txt": bench_text(tried)}) as folder:
        proofs = [read_without_a_warning(folder, name, top)]
        if count > MOST_SIMULATED:
            proofs.append(f"the bench was not run, since {count} gates are too many")
        else:
            proofs.append(passed(tools.run_in(folder, "vvp", "-n", "bench").decode(), "iverilog", tried))
        write_circuit(function if function.reads_bits else with_comparators(function, form), folder)
        script = f"read_verilog {name}.v; synth -flatten -top {top}; check -assert; write_blif yosys.blif"
        tools.run_in(folder, tools.YOSYS, "-q", "-p", script)
        return [*proofs, equivalent(folder, "yosys.blif", "what yosys synthesises")]


def passed(output: str, program: str, tried: Observations) -> str:
    """Return a sentence on success. Raises ExportError if the last line of `output` is not PASS for all samples."""
    line = (output.strip().splitlines() or ["nothing"])[-1]
    if f"PASS: {tried.count} {tried.function.words.sample}s" not in line:
        raise ExportError(f"{program} found a difference: {line}")
    sequence = f", and on a sequence of {STEPS} steps" if tried.function.memory else ""
    return f"{program} agrees on {tried.described(in_fixed_point=True)}{sequence}"
