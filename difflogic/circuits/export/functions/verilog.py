"""Verilog 2005: a combinational module, an observation in fixed point in, the number of an action out; a test bench.

The proof runs the shipped bench in iverilog with a hundred thousand observations. Then yosys synthesises the module,
and ABC proves the result equal, at every observation, to comparators and gates that are made beside it.
"""

from __future__ import annotations

from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.export.proving import equivalent, folder_of, write_circuit
from difflogic.circuits.export.testbench import hexadecimal_lines
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.export.verilog import read_without_a_warning
from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.function import with_comparators
from difflogic.errors import ExportError
from difflogic.model.controller import Controller
from difflogic.model.straight_line import read_inputs

SHIPPED = 256
"""Observations that the bench brings."""


def export(controller: Controller, name: str) -> Files:
    """`NAME.v`, `NAME_tb.v` and the file of observations that the bench reads."""
    form = controller.thermometer.fixed_point()
    width = form.width
    # What nothing reads is left out: a constant action has a threshold that its gate ignores.
    read = [(bit, *controller.thermometer.places[bit]) for bit in read_inputs(controller)]
    numbers = [
        f"wire signed [{width - 1}:0] x{d} = observation[{width * d} +: {width}]; // {controller.observations[d]}"
        for d in sorted({d for _, d, _ in read})
    ]
    code = [
        f"wire t{bit} = x{d} >= {_literal(width, form.thresholds[d][i])}; // {controller.input_names[bit]}"
        for bit, d, i in read
    ]
    gates = statements(controller, "wire {name} = {value};", "assign action[{name}] = {value};", "1'b0", "1'b1", "t{}")
    body = "\n    ".join([*numbers, *code, gates])
    return {
        f"{name}.v": fill("function.v", controller, name, body=body),
        f"{name}_tb.v": fill("function_bench.v", controller, name),
        f"{name}_tb.txt": bench_text(Observations(controller, form, SHIPPED)),
    }


def _literal(width: int, value: int) -> str:
    return f"{'-' * (value < 0)}{width}'sd{abs(value)}"


def bench_text(tried: Observations) -> str:
    """A line per observation: its numbers as one, and the action."""
    return hexadecimal_lines(tried.fixed_bits(), tried.action_bits())


def verify(controller: Controller, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    form = controller.thermometer.fixed_point()
    tried = Observations(controller, form)
    with folder_of({**files, f"{name}_tb.txt": bench_text(tried)}) as folder:
        read_by = read_without_a_warning(folder, name, f"{name}_controller")
        proofs = [read_by, passed(tools.run_in(folder, "vvp", "-n", "bench").decode(), "iverilog", tried)]
        write_circuit(with_comparators(controller, form), folder)
        made = f"synth -flatten -top {name}_controller; check -assert; write_blif yosys.blif"
        tools.run_in(folder, tools.YOSYS, "-q", "-p", f"read_verilog {name}.v; {made}")
        return [*proofs, equivalent(folder, "yosys.blif", "what yosys synthesises")]


def passed(said: str, program: str, tried: Observations) -> str:
    """The sentence for a bench's last line. Raises ExportError where it does not say PASS of all observations."""
    line = (said.strip().splitlines() or ["nothing"])[-1]
    if f"PASS: {tried.count} observations" not in line:
        raise ExportError(f"{program} finds a difference: {line}")
    return f"{program} agrees on {tried.count} observations in fixed point"
