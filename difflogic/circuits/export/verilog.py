"""Verilog 2005: the cell, a grid of registers around it, and a test bench that knows the answers.

One scalar wire per gate: simulators take a thousand times longer over a vector of gates.
"""

from __future__ import annotations

from difflogic.circuits.export.bench import bench_files, grid_sides
from difflogic.circuits.export.text import Files, about, fill, statements
from difflogic.netlist import Netlist


def export(netlist: Netlist, name: str) -> Files:
    """`NAME.v`, `NAME_tb.v` and the two files of vectors that the bench reads."""
    channels, inputs = netlist.channels, netlist.inputs
    design = fill(
        "cell.v",
        name=name,
        about=about(netlist),
        channels=channels,
        last_channel=channels - 1,
        last_input=inputs - 1,
        periodic=int(netlist.periodic),
        body=statements(netlist, "wire {name} = {value};", "assign result[{name}] = {value};", "1'b0", "1'b1"),
    )
    height, width = grid_sides(netlist)
    bench = fill(
        "bench.v", name=name, channels=channels, inputs=inputs, height=height, width=width, cells=height * width
    )
    return {f"{name}.v": design, f"{name}_tb.v": bench, **bench_files(netlist, name)}
