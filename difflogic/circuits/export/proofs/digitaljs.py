"""DigitalJS: read back by our own reader of that format."""

from __future__ import annotations

import json

from difflogic.circuits.export.proofs.common import check_cells, vectors_for
from difflogic.circuits.export.text import Files
from difflogic.circuits.readers import digitaljs
from difflogic.netlist import Netlist, pack_bits, unpack_bits


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError."""
    read = digitaljs.from_data(json.loads(files[f"{name}_digitaljs.json"]))
    vectors = vectors_for(netlist)
    answers = unpack_bits(read.evaluate(pack_bits(vectors.inputs)), vectors.count)
    return [check_cells(netlist, vectors, answers, "read back, it")]
