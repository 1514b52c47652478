"""A Python file that needs nothing but NumPy."""

from __future__ import annotations

from difflogic.circuits.export.text import Files, about, fill, statements
from difflogic.netlist import Netlist


def export(netlist: Netlist, name: str) -> Files:
    """`NAME_numpy.py`."""
    zeros = "patch[0] ^ patch[0]"  # of the type at hand
    text = fill(
        "cell.py.txt",
        name=name,
        about=about(netlist),
        channels=netlist.channels,
        visible=netlist.visible,
        periodic=netlist.periodic,
        body=statements(netlist, "{name} = {value}", "result[{name}] = {value}", zeros, f"~({zeros})"),
    )
    return {f"{name}_numpy.py": text}
