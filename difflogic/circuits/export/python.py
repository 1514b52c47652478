"""Export of a Python file that needs only NumPy. Verification runs it on neighbourhoods and on grids."""

import numpy as np

from difflogic.circuits.export.proving import check_cells, check_grid, folder_of, random_grid, run_numpy, vectors_for
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.model.cell_netlist import CellNetlist


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the circuit in Python, as the contents of `NAME_numpy.py`."""
    zeros = "patch[0] ^ patch[0]"  # zeros with the dtype of `patch`
    body = statements(netlist, "{name} = {value}", "result[{name}] = {value}", zeros, f"~({zeros})")
    return {f"{name}_numpy.py": fill("cell.py.txt", netlist, name, periodic=netlist.periodic, body=body)}


_SIDES, _STEPS = (6, 9), 8
_WORK = 2e9
"""Maximum number of gates times test vectors, since NumPy keeps all gate values in memory."""

_PROGRAM = """\
np.save("result.npy", module.cell(np.load("patch.npy")))
grid = np.load("grid.npy")
for step in range({steps}):
    grid = module.step(grid)
np.save("after.npy", grid)
"""


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError or ToolError."""
    vectors = vectors_for(netlist, _WORK)
    grid = random_grid(netlist, *_SIDES)
    with folder_of(files) as folder:
        np.save(folder / "patch.npy", pack_bits(vectors.inputs))
        np.save(folder / "grid.npy", grid)
        run_numpy(folder, f"{name}_numpy", _PROGRAM.format(steps=_STEPS))
        answers = unpack_bits(np.load(folder / "result.npy"), vectors.count)
        check_grid(netlist.after(grid, _STEPS), np.load(folder / "after.npy"), "The Python file")
    return [check_cells(netlist, vectors, answers, "NumPy"), f"a grid agrees after {_STEPS} steps"]
