"""VHDL-2008: the same entity, and a test bench, which the proof runs in ghdl with a hundred thousand observations."""

from __future__ import annotations

from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.export.functions.verilog import SHIPPED, bench_text, passed
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.text import Files, bit_names, fill
from difflogic.circuits.export.vhdl import EXPRESSIONS, simulated
from difflogic.model.controller import Controller
from difflogic.model.straight_line import lines


def export(controller: Controller, name: str) -> Files:
    """`NAME.vhd`, `NAME_tb.vhd` and the file of observations that the bench reads."""
    form = controller.thermometer.fixed_point()
    names, gates = bit_names(controller, "t{}"), lines(controller)
    body = []
    for bit, (d, i) in enumerate(controller.thermometer.places):
        number = form.thresholds[d][i] & ((1 << form.width) - 1)
        place = f"observation({form.width * (d + 1) - 1} downto {form.width * d})"
        body.append(f't{bit} := reached({place}, "{number:0{form.width}b}"); -- {controller.input_names[bit]}')
    body += [f"{names[g.bit]} := {EXPRESSIONS[g.gate].format(a=names[g.a], b=names[g.b])};" for g in gates]
    body += [f"action({index}) <= {names[output]};" for index, output in enumerate(controller.outputs.tolist())]
    variables = [*names[: controller.inputs], *(names[line.bit] for line in gates)]
    design = fill(
        "function.vhd",
        controller,
        name,
        variables="\n        ".join(f"variable {variable} : std_logic;" for variable in variables),
        body="\n        ".join(body),
    )
    return {
        f"{name}.vhd": design,
        f"{name}_tb.vhd": fill("function_bench.vhd", controller, name),
        f"{name}_tb.txt": bench_text(Observations(controller, form, SHIPPED)),
    }


def verify(controller: Controller, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    tried = Observations(controller, controller.thermometer.fixed_point())
    with folder_of({**files, f"{name}_tb.txt": bench_text(tried)}) as folder:
        return [passed(simulated(folder, name), "ghdl", tried)]
