"""circuit.json, as in a run folder: every gate, those that no output needs included.

Read back, it must be the same in every field.
"""

from __future__ import annotations

import numpy as np

from difflogic.circuits.export.text import Files, text_of
from difflogic.errors import ExportError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist_json import to_json


def export(netlist: CellNetlist, name: str) -> Files:
    """`NAME.json`."""
    return {f"{name}.json": to_json(netlist)}


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Raises ExportError."""
    text = text_of(files, f"{name}.json")
    read = netlist_json.from_json(text)
    scalars = ("channels", "periodic", "visible", "origin", "scenario")
    arrays = ("gates", "wires", "outputs")
    if any(getattr(read, field) != getattr(netlist, field) for field in scalars) or not all(
        np.array_equal(getattr(read, field), getattr(netlist, field)) for field in arrays
    ):
        raise ExportError("circuit.json reads back as another circuit.")
    return ["read back, it is the same gate by gate"]
