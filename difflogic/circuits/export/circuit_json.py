"""Export of circuit.json, controller.json or function.json with all gates, including dead ones.

Verification reads the file back and compares every field.
"""

from dataclasses import fields

import numpy as np

from difflogic.circuits.export.text import Files, text_of
from difflogic.errors import ExportError
from difflogic.model import function_json, netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist


def export(netlist: CellNetlist | FunctionNetlist, name: str) -> Files:
    """Return the circuit in difflogic's JSON format, as the contents of `NAME.json`."""
    text = function_json.to_json(netlist) if isinstance(netlist, FunctionNetlist) else netlist_json.to_json(netlist)
    return {f"{name}.json": text}


def verify(netlist: CellNetlist | FunctionNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError."""
    text = text_of(files, f"{name}.json")
    read = function_json.from_json(text) if isinstance(netlist, FunctionNetlist) else netlist_json.from_json(text)
    for field in fields(netlist):
        if not np.array_equal(getattr(read, field.name), getattr(netlist, field.name)):
            raise ExportError(f"{netlist.kind}.json differs from the circuit when it is read back.")
    return ["the file, read back, equals the circuit gate by gate"]
