"""Export of a WGSL compute shader that updates 32 cells per invocation, for WebGPU in a browser or elsewhere.

Verification runs the shader on the first adapter, in some steps with all cells firing and in others with only some.
"""

import numpy as np
import numpy.typing as npt

from difflogic.circuits.export.proving import check_grid, random_grid
from difflogic.circuits.export.text import Files, fill, statements, text_of
from difflogic.core import bits
from difflogic.core.bits import Bits
from difflogic.errors import ToolError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.probes import AnyShader, open_checked
from difflogic.gpu.shaders import make_source
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import lines


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the circuit in WGSL, as the contents of `NAME.wgsl`."""
    return {f"{name}.wgsl": shader(netlist, name)}


def shader(netlist: CellNetlist, name: str) -> str:
    """Return the WGSL text of the shader."""
    body = statements(netlist, "let {name} = {value};", "result[{name}] = {value};", "0u", "0xffffffffu", "near[{}]")
    return fill("step.wgsl.txt", netlist, name, periodic=str(netlist.periodic).lower(), body=body)


_GRIDS = ((3, 5), (4, 32), (9, 33), (5, 130))
_STEPS = 10
_MOST_STATEMENTS = {True: 2_000, False: 20_000}
"""Maximum number of gates that a driver compiles within a minute, on software adapters (True) and hardware (False)."""


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per check. Raises ExportError, ToolError or DeviceError."""
    device = open_checked()
    count, most = len(lines(netlist)), _MOST_STATEMENTS[device.adapter.software]
    if count > most:
        raise ToolError(
            f"{device.adapter.name} would take minutes to compile a shader of {count} gates, expected at most {most}: "
            "simplify the circuit (difflogic simplify)."
        )
    text = text_of(files, f"{name}.wgsl")
    for height, width in _GRIDS:
        grid = random_grid(netlist, height, width)
        # All cells fire in every second step. In the others, row, column and step determine which cells fire.
        steps, rows, columns = np.indices((_STEPS, height, width))
        fires = np.asarray((rows * 3 + columns * 5 + steps) % 7 < np.where(steps % 2, 7, 4), dtype=np.uint8)
        expected = netlist.after(grid, _STEPS, fires[..., None])
        check_grid(expected, _rollout(device, name, text, grid, fires), "The shader")
    return [f"{device.adapter.name} agrees on {len(_GRIDS)} grids after {_STEPS} steps"]


def _rollout(device: GpuDevice, name: str, text: str, grid: Bits, fires: Bits) -> Bits:
    height, width, channels = grid.shape
    before = words_of(grid)
    masks = [words_of(fire[..., None]) for fire in fires]
    size = np.array([height, width], dtype=np.uint32)
    shader = AnyShader(device, make_source(name, {f"{name}.wgsl": text}), [size, before, np.zeros_like(before), *masks])
    words = -(-width // 32)
    for step in range(_STEPS):
        # Two buffers alternate: each step writes the buffer that the next step reads.
        shader.run([0, 1 + step % 2, 2 - step % 2, 3 + step], (-(-words // 8), -(-height // 8)))
    return grid_of(shader.read(1 + _STEPS % 2), height, width, channels)


def words_of(grid: Bits) -> npt.NDArray[np.uint32]:
    """Pack a grid `[H, W, C]` into the shader's layout, u32 `[H, C, words]`, as a flat array."""
    words = -(-grid.shape[1] // 32)
    return np.ascontiguousarray(bits.pack_planes(grid).view("<u4")[..., :words]).astype(np.uint32).reshape(-1)


def grid_of(words: npt.NDArray[np.uint32], height: int, width: int, channels: int) -> Bits:
    """Unpack a grid, uint8 `[H, W, C]`, from the shader's layout: the inverse of `words_of`."""
    packed = words.view(np.uint8).reshape(height, channels, -1)
    bits = np.unpackbits(packed, axis=2, count=width, bitorder="little")
    return np.ascontiguousarray(bits.transpose(0, 2, 1))
