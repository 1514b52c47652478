"""Export of a complete grid as Verilog: module `NAME_automaton` for an FPGA, and a test bench with expected states.

Verification runs the exported bench in iverilog. The bench reads states from the module, in one run byte by byte and in
another bit by bit, and compares them with those of the circuit. Then yosys and ABC prove the cell equal to the circuit.
"""

import numpy as np

from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.testbench import WORK, hexadecimal_lines, random_bits
from difflogic.circuits.export.text import Files, fill
from difflogic.circuits.export.verilog import cell_module, proved_cell, read_without_a_warning
from difflogic.circuits.synthesis import tools
from difflogic.core import prng
from difflogic.core.bits import Bits
from difflogic.errors import ExportError
from difflogic.model.grid import Grid
from difflogic.model.straight_line import lines

_RUNS = (1, 1, 2, 1, 3, 1, 1, 5)
"""Numbers of steps between successive states that the bench compares."""
_LOADED = 0xFFFF
_SEED = 29
_LANES = (8, 1)


def export(grid: Grid, name: str) -> Files:
    """Return the contents of `NAME.v`, `NAME_tb.v` and `NAME_tb_states.txt`, the states that the bench reads."""
    sizes = {"height": grid.height, "width": grid.width, "bits": grid.values, "last_bit": grid.values - 1}
    start = sum(int(bit) << place for place, bit in enumerate(grid.start.reshape(-1).tolist()))
    module = fill("automaton.v", grid.cell, name, start=f"{grid.values}'h{start:x}", **sizes)
    bench = fill("automaton_bench.v", grid.cell, name, bits=grid.values)
    design = cell_module(grid.cell, name) + module
    return {f"{name}.v": design, f"{name}_tb.v": bench, f"{name}_tb_states.txt": _states(grid)}


def _states(grid: Grid) -> str:
    """Return one line per state, in hexadecimal: steps since the previous one, or _LOADED to load it, and the state."""
    shape = (grid.height, grid.width, grid.cell.channels)
    state: Bits = random_bits(prng.key_from_seed(_SEED), shape)
    steps, states = [0, _LOADED], [grid.start, state]
    affordable = WORK // (grid.height * grid.width * max(1, len(lines(grid.cell))))
    for run in _RUNS:
        if sum(steps[2:]) + run > affordable and len(steps) > 2:
            break
        state = grid.cell.after(state, run)
        steps.append(run)
        states.append(state)
    counts = (np.array(steps) >> np.arange(16)[:, None] & 1).astype(np.uint8)
    return hexadecimal_lines(counts, np.stack(states).reshape(len(states), -1).T)


def verify(grid: Grid, name: str, files: Files) -> list[str]:
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    with folder_of(files) as folder:
        proofs = [read_without_a_warning(folder, name, f"{name}_automaton")]
        count = len(str(files[f"{name}_tb_states.txt"]).splitlines())
        for lanes in _LANES:
            lane = f"-P{name}_tb.LANES={lanes}"
            tools.run_in(folder, "iverilog", "-g2005", lane, "-o", "bench", f"{name}.v", f"{name}_tb.v")
            output = tools.run_in(folder, "vvp", "-n", "bench").decode().strip().splitlines() or ["nothing"]
            if output[-1] != f"PASS: {count} states, {lanes} bits a word":
                raise ExportError(f"iverilog found a difference: {output[-1]}")
        proofs.append(f"iverilog agrees on {count} states of {grid.width}x{grid.height} cells, read as bytes and bits")
        return [*proofs, proved_cell(grid.cell, folder, name)]
