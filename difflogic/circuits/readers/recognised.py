"""Recognition of files that contain no circuit, by their contents, with advice for each kind of file."""

import re
from pathlib import Path

_YOSYS = "convert it to BLIF with `yosys -p 'read_verilog FILE; synth -flatten; write_blif FILE.blif'`"
_KINDS = {
    rb"(c[^\n]*\n)*p cnf ": "clauses in DIMACS, for SAT solvers",
    rb"(\s*//[^\n]*\n)*\s*(module|`timescale)\s": f"Verilog: {_YOSYS}",
    rb"(?i)(\s*--[^\n]*\n)*\s*(library|entity)\s": "VHDL: convert it to BLIF with ghdl and yosys",
    rb"\x93NUMPY": "a NumPy array: use it with --from-recording, --data, --target or --start",
    rb"\x80[\x02-\x05]": "a Python pickle, which could run any code: save arrays with np.savez",
    rb"PK.*?data\.pkl": "a PyTorch checkpoint, which could run any code: save arrays with np.savez",
    rb"\x89PNG|GIF8|\xff\xd8\xff|RIFF....WEBP|II\*\0|MM\0\*|P[1-6]\s": "an image: use it with `train --target`",
    rb"(#[^\n]*\n)*x *= *\d|!Name": "a pattern: use it with --start or --from-recording",
}
"""Mapping from patterns of a file's first bytes to the kind of file, with advice; the first match counts."""


def kind_of(path: Path) -> str:
    """Return a text with the kind of file and advice if it cannot contain a circuit, otherwise an empty text."""
    if path.suffix.lower() in (".csv", ".tsv"):
        return "a table: use it with `train --data FILE --label COLUMN`"
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf")
    return next((kind for beginning, kind in _KINDS.items() if re.match(beginning, head, re.DOTALL)), "")
