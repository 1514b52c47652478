"""circuit.json: read back, it is the same in every field."""

from __future__ import annotations

import numpy as np

from difflogic import netlist_json
from difflogic.circuits.export.text import Files
from difflogic.errors import ExportError
from difflogic.netlist import Netlist


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError."""
    text = files[f"{name}.json"]
    assert isinstance(text, str)
    read = netlist_json.from_json(text)
    scalars = ("channels", "periodic", "visible", "origin", "habitat")
    arrays = ("gates", "wires", "outputs")
    if any(getattr(read, field) != getattr(netlist, field) for field in scalars) or not all(
        np.array_equal(getattr(read, field), getattr(netlist, field)) for field in arrays
    ):
        raise ExportError("circuit.json reads back as another circuit.")
    return ["read back, it is the same gate by gate"]
