"""Export of C99: a header that runs 64 cells per word, and a demo that draws a grid.

Verification compiles both with gcc without warnings, and compares results of the header and demo with the circuit.
"""

import numpy as np

from difflogic.circuits.export.proving import check_cells, check_grid, folder_of, random_grid, vectors_for
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.synthesis import tools
from difflogic.core import bits, text_picture
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.errors import ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.column_program import A_AND_NOT_B, AND, OR, XOR, Value, column_loop, column_program
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the contents of the C files `NAME.h`, the circuit, and `NAME_demo.c`, a program that draws a grid."""
    body = statements(netlist, "const uint64_t {name} = {value};", "result[{name}] = {value};", "0", "~UINT64_C(0)")
    rows = max(1, min(_MOST_ROWS, max(_FEW_ROWS, _STRIP_ROWS // netlist.channels), _STACK_ROWS // netlist.channels - 2))
    header = fill("cell.h", netlist, name, body=body, strip_rows=rows, **_column(netlist, name))
    return {f"{name}.h": header, f"{name}_demo.c": fill("demo.c", netlist, name)}


_FEW_ROWS, _MOST_ROWS, _STRIP_ROWS = 4, 64, 256
"""Minimum and maximum number of rows per strip; maximum number of rows times channels that fits in the L1 cache."""
_STACK_ROWS = 1638
"""Maximum number of rows times channels on the stack, including two extra rows: 128 KB with ten words per row."""
_GATES = {AND: "{} & {}", A_AND_NOT_B: "{} & ~{}", XOR: "{} ^ {}", OR: "{} | {}"}


def _column(netlist: CellNetlist, name: str) -> dict[str, str]:
    """Return C code for a column of cells: `row`, the body of the loop over rows, and `before`, the code before it."""
    program = column_program(netlist)
    loop = column_loop(program)

    def computed(value: Value, form: str, row: str) -> str:
        (number, delay), node = value, program.nodes[value[0]]
        result = form.format(number, delay)
        if node.gate:
            reads = (form.format(read.node, read.delay + delay) for read in (node.a, node.b))
            return f"const {name}_lanes {result} = {_GATES[node.gate].format(*reads)};"
        if node.channel < 0:
            return f"const {name}_lanes {result} = {{0}};"
        return f"{name}_lanes {result}; {name}_read(strip, {row}{2 - delay}, {node.channel}, {node.dx - 1}, &{result});"

    # Values carried over from the previous row are named like those computed in this row.
    before = [computed(value, "b{}_{}", "") for value in loop.before]
    before += [f"{name}_lanes v{number}_{delay} = b{number}_{delay};" for number, delay in loop.carried]
    row = [computed(value, "v{}_{}", "y + ") for value in loop.row]
    for channel, output in enumerate(program.outputs):
        value = f"{'~' * output.inverted}v{output.node}_{output.delay}"
        row.append(f"const {name}_lanes r{channel} = {value};")
        row.append(f"memcpy(to + (y * {netlist.channels} + {channel}) * words, &r{channel}, sizeof r{channel});")
    # The largest delay is first, so that each value is read before it is overwritten.
    row += [f"v{number}_{delay} = v{number}_{delay - 1};" for number, delay in reversed(loop.carried)]
    return {"before": "\n    ".join(before), "row": "\n        ".join(row)}


FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
_GRIDS = ((1, 1), (3, 5), (4, 64), (5, 65), (2, 128), (70, 200))
_STEPS = 10
_DEMO = (9, 70, 12, 7)
"""Height, width, number of steps and seed with which the demo is verified."""
_SLOW = 20_000
"""Minimum number of gates of a circuit that gcc would take minutes to optimise."""


def optimised(netlist: Netlist) -> str:
    """Return gcc's optimisation option: `-O2`, or `-O0` for a circuit too large to optimise."""
    return "-O2" if len(lines(netlist)) < _SLOW else "-O0"


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    optimise = optimised(netlist)
    with folder_of({**files, "proof.c": fill("proof.c", netlist, name)}) as folder:
        for program in ("proof", f"{name}_demo"):
            tools.run_in(folder, "gcc", *FLAGS, optimise, "-o", program, f"{program}.c")
        vectors = vectors_for(netlist)
        # The program reads blocks of 64 vectors, one 64-bit word per input.
        words = np.ascontiguousarray(pack_bits(vectors.inputs).T)
        output = tools.run_in(folder, "./proof", stdin=words.tobytes())
        answers = unpack_bits(np.frombuffer(output, np.uint64).reshape(-1, netlist.channels).T, vectors.count)
        proofs = [check_cells(netlist, vectors, answers, f"gcc {optimise} (no warnings)")]
        for height, width in _GRIDS:
            grid = random_grid(netlist, height, width)
            arguments = [str(side) for side in (height, width, _STEPS)]
            output = tools.run_in(folder, "./proof", *arguments, stdin=bits.pack_planes(grid).tobytes())
            after = bits.unpack_planes(np.frombuffer(output, np.uint64).reshape(height, netlist.channels, -1), width)
            check_grid(netlist.after(grid, _STEPS), after, "The C header")
        printed = tools.run_in(folder, f"./{name}_demo", *map(str, _DEMO)).decode().splitlines()
    height, width, steps, seed = _DEMO
    state = netlist.after(_demo_start(netlist, height, width, seed), steps)
    if tuple(printed) != text_picture.encode(state[..., : min(netlist.visible, text_picture.MAX_BITS)]):
        raise ExportError(f"The image of the demo differs from that of the circuit after {steps} steps.")
    return [*proofs, f"{len(_GRIDS)} grids agree after {_STEPS} steps, and so does the demo's image"]


def _demo_start(netlist: CellNetlist, height: int, width: int, seed: int) -> Bits:
    """Return the demo's random initial state, generated word by word by splitmix64 from `seed`."""
    words = bits.words_per_row(width)
    state = np.empty(height * netlist.channels * words, dtype=np.uint64)
    for index in range(len(state)):
        seed = seed + 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        state[index] = z ^ z >> 31
    return bits.unpack_planes(state.reshape(height, netlist.channels, words), width)
