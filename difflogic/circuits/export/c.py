"""C99: one header that runs 64 cells per word, and a demo that draws a grid.

The proof has gcc compile both without a warning, and runs them on neighbourhoods, on grids, and as the demo.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from difflogic.circuits.export.proving import after, check_cells, check_grid, folder_of, random_grid, vectors_for
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.synthesis import tools
from difflogic.core import bits, text_picture
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.core.wiring import PATCH
from difflogic.errors import ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines, read_inputs


def export(netlist: CellNetlist, name: str) -> Files:
    """`NAME.h` and `NAME_demo.c`."""
    body, loop = (
        statements(netlist, "const uint64_t {name} = {value};", result, "0", "~UINT64_C(0)", inputs)
        for result, inputs in (("result[{name}] = {value};", None), ("to[{name} * words + i] = {value};", "p{}"))
    )
    inner = "\n    ".join([*map(_load, read_inputs(netlist)), loop]).replace("\n", "\n    ")
    header = fill("cell.h", netlist, name, body=body, inner=inner)
    return {f"{name}.h": header, f"{name}_demo.c": fill("demo.c", netlist, name)}


def _load(bit: int) -> str:
    """The cells of an input of 64 cells that have words on either side."""
    channel, patch = divmod(bit, PATCH)
    row, dx = ("above", "row", "below")[patch // 3], patch % 3
    place = f"{row}[{channel} * words + i"
    shifted = ("{0}] << 1 | {0} - 1] >> 63", "{0}]", "{0}] >> 1 | {0} + 1] << 63")[dx].format(place)
    return f"const uint64_t p{bit} = {shifted};"


FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
_GRIDS = ((1, 1), (3, 5), (4, 64), (5, 65), (2, 128), (7, 200))
_STEPS = 10
_DEMO = (9, 70, 12, 7)
"""Height, width, steps, seed."""
_SLOW = 20_000
"""Gates from which on gcc takes minutes to optimise."""


def optimised(netlist: Netlist) -> str:
    """The option of gcc for so many gates."""
    return "-O2" if len(lines(netlist)) < _SLOW else "-O0"


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    optimise = optimised(netlist)
    with folder_of({**files, "proof.c": fill("proof.c", netlist, name)}) as folder:
        for program in ("proof", f"{name}_demo"):
            tools.run_in(folder, "gcc", *FLAGS, optimise, "-o", program, f"{program}.c")
        vectors = vectors_for(netlist)
        # The program reads 64 vectors at a time: one word of each input, then those of the next 64.
        words = np.ascontiguousarray(pack_bits(vectors.inputs).T)
        given = tools.run_in(folder, "./proof", stdin=words.tobytes())
        answers = unpack_bits(np.frombuffer(given, np.uint64).reshape(-1, netlist.channels).T, vectors.count)
        proofs = [check_cells(netlist, vectors, answers, f"gcc {optimise} (no warnings)")]
        for height, width in _GRIDS:
            grid = random_grid(netlist, height, width)
            arguments = [str(side) for side in (height, width, _STEPS)]
            given = tools.run_in(folder, "./proof", *arguments, stdin=bits.pack_planes(grid).tobytes())
            found = bits.unpack_planes(np.frombuffer(given, np.uint64).reshape(height, netlist.channels, -1), width)
            check_grid(after(netlist, grid, _STEPS), found, "The C header")
        _check_demo(netlist, name, folder)
    return [*proofs, f"{len(_GRIDS)} grids agree after {_STEPS} steps, the demo's picture too"]


def _check_demo(netlist: CellNetlist, name: str, folder: Path) -> None:
    height, width, steps, seed = _DEMO
    printed = tools.run_in(folder, f"./{name}_demo", *(str(number) for number in _DEMO)).decode().splitlines()
    visible = min(netlist.visible, text_picture.MAX_BITS)
    state = after(netlist, _demo_start(netlist, height, width, seed), steps)
    if tuple(printed) != text_picture.encode(state[..., :visible]):
        raise ExportError(f"The demo draws another picture than the circuit after {steps} steps.")


def _demo_start(netlist: CellNetlist, height: int, width: int, seed: int) -> Bits:
    """The demo's random start: splitmix64, a word after the other."""
    words = bits.words_per_row(width)
    found = np.empty(height * netlist.channels * words, dtype=np.uint64)
    for index in range(len(found)):
        seed = seed + 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        found[index] = z ^ z >> 31
    return bits.unpack_planes(found.reshape(height, netlist.channels, words), width)
