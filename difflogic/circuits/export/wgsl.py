"""WGSL: a compute shader that steps 32 cells per invocation, for WebGPU in a browser or outside."""

from __future__ import annotations

from difflogic.circuits.export.text import Files, about, fill, statements
from difflogic.netlist import Netlist


def export(netlist: Netlist, name: str) -> Files:
    """`NAME.wgsl`."""
    return {f"{name}.wgsl": shader(netlist, name)}


def shader(netlist: Netlist, name: str) -> str:
    """The text of the file."""
    return fill(
        "step.wgsl.txt",
        name=name,
        about=about(netlist),
        channels=netlist.channels,
        inputs=netlist.inputs,
        periodic=str(netlist.periodic).lower(),
        body=statements(netlist, "let {name} = {value};", "result[{name}] = {value};", "0u", "0xffffffffu", "near[{}]"),
    )
