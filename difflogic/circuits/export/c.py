"""C99: one header that runs 64 cells per word, and a demo that draws a grid."""

from __future__ import annotations

from difflogic import wiring
from difflogic.circuits.export.text import Files, about, fill, statements
from difflogic.netlist import Netlist


def export(netlist: Netlist, name: str) -> Files:
    """`NAME.h` and `NAME_demo.c`."""
    header = fill(
        "cell.h",
        name=name,
        upper=name.upper(),
        about=about(netlist),
        channels=netlist.channels,
        visible=netlist.visible,
        inputs=wiring.PATCH * netlist.channels,
        periodic=int(netlist.periodic),
        body=statements(netlist, "const uint64_t {name} = {value};", "result[{name}] = {value};", "0", "~UINT64_C(0)"),
    )
    return {f"{name}.h": header, f"{name}_demo.c": fill("demo.c", name=name, upper=name.upper())}
