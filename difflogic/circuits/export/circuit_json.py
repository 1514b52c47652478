"""circuit.json, as in a run folder: every gate, those that no output needs included."""

from __future__ import annotations

from difflogic.circuits.export.text import Files
from difflogic.netlist import Netlist
from difflogic.netlist_json import to_json


def export(netlist: Netlist, name: str) -> Files:
    """`NAME.json`."""
    return {f"{name}.json": to_json(netlist)}
