"""Functions that verify exported files of all formats: temporary folders, test vectors, test grids, and ABC."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from difflogic.circuits.export.testbench import Vectors, draw_vectors, random_bits
from difflogic.circuits.export.text import Files
from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.blif import to_blif
from difflogic.core import prng
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.errors import ExportError, ToolError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.grid import Grid, LatchNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines
from difflogic.system.child import python_command

MOST_VECTORS = 1 << 20
"""Maximum number of vectors for an exhaustive test: all combinations of 20 inputs."""
RANDOM_VECTORS = 1_000_000
_SEED = 5
_STATES = 256


@contextmanager
def folder_of(files: Files) -> Iterator[Path]:
    """Provide a temporary folder that contains `files` for the duration of a `with` block."""
    with TemporaryDirectory(prefix="difflogic-") as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        yield folder


def run_numpy(folder: Path, module: str, program: str) -> None:
    """Run the Python code `program` in `folder` with NumPy as `np` and `module` imported. Raises ToolError."""
    imports = f"import sys\nimport numpy as np\nsys.path.append('.')\nimport {module} as module\n"
    tools.run_in(folder, *python_command("-c", imports + program))


def vectors_for(netlist: Netlist, work: float = 1e10) -> Vectors:
    """Return all input combinations if at most 2^20, otherwise 1e6 random ones; `work` limits gates times vectors."""
    most = int(work // max(1, len(lines(netlist))))
    if (vectors := draw_vectors(netlist, min(MOST_VECTORS, most))).exhaustive:
        return vectors
    return draw_vectors(netlist, min(RANDOM_VECTORS, most))


def check_cells(netlist: Netlist, vectors: Vectors, answers: Bits, what: str) -> str:
    """Compare `answers`, outputs `[C, samples]` of `what`, with the netlist; return a sentence. Raises ExportError."""
    wrong = np.flatnonzero((answers != vectors.outputs(netlist)).any(axis=0))
    if len(wrong):
        ones = [netlist.bit_name(bit) for bit in np.flatnonzero(vectors.inputs[:, wrong[0]]).tolist()]
        raise ExportError(
            f"{what} differs from the circuit on {len(wrong)} of {vectors.described()}. In the first of them, these "
            f"inputs are 1: {', '.join(ones) or 'none'}."
        )
    return f"{what} agrees on {vectors.described()}"


def random_grid(netlist: CellNetlist, height: int, width: int) -> Bits:
    """Return a random initial state from a fixed seed, uint8 `[H, W, C]`."""
    return random_bits(prng.key_from_seed(_SEED), (height, width, netlist.channels))


def check_grid(expected: Bits, actual: Bits, what: str) -> None:
    """Raise ExportError if the grid computed by `what` differs from the expected one."""
    if not np.array_equal(expected, actual):
        raise ExportError(
            f"{what} differs from the circuit on a grid of {expected.shape[1]}x{expected.shape[0]} cells."
        )


def check_machine(grid: Grid) -> str:
    """Compare a step of the complete grid's netlist with steps of its cell; return a sentence. Raises ExportError."""
    machine, cell = grid.machine(), grid.cell
    states = random_bits(prng.key_from_seed(_SEED), (_STATES, grid.height, grid.width, cell.channels))
    # Half of the states are values of the first inputs, which are used while all ages are 0, half those of latches.
    inputs = np.zeros((machine.inputs, _STATES), dtype=np.uint8)
    first, half = machine.first_latch, _STATES // 2
    values = states.reshape(_STATES, -1).T
    inputs[: grid.values, :half] = values[:, :half]
    inputs[first : first + grid.values, half:] = values[:, half:]
    inputs[first + grid.values, half:] = 1
    [after_one] = cell.steps(states, 1)
    following = unpack_bits(machine.evaluate(pack_bits(inputs)), _STATES)[-machine.latches :][: grid.values]
    if not np.array_equal(after_one.reshape(_STATES, -1).T, following):
        raise ExportError(f"The netlist of {grid.width}x{grid.height} cells differs from the circuit after a step.")
    return f"all {grid.width}x{grid.height} cells agree with the circuit after a step from {_STATES} random states"


_CIRCUIT = "circuit.blif"


def write_circuit(netlist: Netlist, folder: Path) -> None:
    """Write the netlist to `folder` as the BLIF file that `equivalent` compares with."""
    (folder / _CIRCUIT).write_text(to_blif(netlist, netlist.input_names, netlist.output_names, "circuit"))


def equivalent(folder: Path, file: str, what: str) -> str:
    """Prove with ABC that `file` equals the written circuit; return a sentence. Raises ExportError or ToolError."""
    output = tools.run_in(folder, tools.ABC, "-q", f"cec -n {_CIRCUIT} {file}").decode(errors="replace")
    if "NOT EQUIVALENT" in output:
        raise ExportError(f"berkeley-abc proves that {what} differs from the circuit.")
    if "Networks are equivalent" not in output:
        raise ToolError(f"berkeley-abc gave no result for {what}: {output.strip()[-200:]}")
    return f"berkeley-abc proves {what} equivalent (cec)"


def proved_by_abc(netlist: Netlist, files: Files, file: str) -> list[str]:
    """Prove with ABC that `file` equals the netlist; return one sentence. Raises ExportError or ToolError."""
    with folder_of(files) as folder:
        write_circuit(netlist, folder)
        if isinstance(netlist, LatchNetlist):
            # `comb` turns latches into the last inputs and outputs, as in the netlist.
            tools.run_in(folder, tools.ABC, "-q", f"read {file}; comb; strash; write_aiger combinational.aig")
            file = "combinational.aig"
        return [equivalent(folder, file, "it")]
