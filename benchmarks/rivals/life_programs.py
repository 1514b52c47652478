"""Time other programs for Life on random cells and on a glider gun, in an empty plane.

Golly's `bgolly` computes only blocks with living cells (QuickLife), or caches the future of blocks by their hash
(HashLife), as `python-lifelib` also does, which runs in a separate environment. None of these programs computes all
cells: if few cells live, or blocks repeat, they are faster than any program that does. A pattern is run for few and for
many steps, and the difference is timed, which excludes the time of reading the pattern. Each program must first equal
the reference on random cells.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from difflogic.circuits import rle
from difflogic.circuits.simulation.starts import planes_of
from difflogic.core import bernoulli
from difflogic.core.bits import Bits, unpack_planes
from difflogic.core.patterns import read
from difflogic.engine.simulation import SimulationSpec
from difflogic.reference.simulation import ReferenceSimulation

Program = Callable[[Path, int, Path | None], object]
"""Function that runs a pattern file for a number of generations, and may write the result to another file."""

GUN = (
    "x = 36, y = 9, rule = B3/S23\n24bo$22bobo$12b2o6b2o12b2o$11bo3bo4b2o12b2o$2o8bo5bo3b2o$2o8bo3bob2o4bobo$10bo5bo7bo"
    "$11bo3bo$12b2o!\n"
)
STEPS = {
    "soup": {"QuickLife": 128, "HashLife": 8, "lifelib": 128},
    "gun": {"QuickLife": 1 << 14, "HashLife": 1 << 20},
}
"""Generations that take about a second. In lifelib, any number for the gun takes less time than reading it."""
VERIFIED = 128, 16
"""Side of the random cells, and number of generations, of the comparison with the reference."""
MEMORY_MB = 2000

_LIFELIB = """
import sys, lifelib
pattern = lifelib.load_rules("b3s23").lifetree(memory=int(sys.argv[1]), n_layers=1).load(sys.argv[2])
pattern = pattern[int(sys.argv[3])]
if len(sys.argv) > 4: pattern.write_rle(sys.argv[4])
"""


def programs(lifelib: str | None) -> dict[str, Program]:
    """Return the programs by name; `lifelib` is a Python with the package, or None to leave that program out."""
    found: dict[str, Program] = {name: _golly(name) for name in ("QuickLife", "HashLife")}
    if lifelib:
        found["lifelib"] = lambda pattern, steps, out: _run(
            [lifelib, "-c", _LIFELIB, MEMORY_MB, pattern, steps, *([out] if out else [])]
        )
    return found


def _golly(algorithm: str) -> Program:
    def step(pattern: Path, steps: int, out: Path | None) -> None:
        options = ["-q", "-q", "-a", algorithm, "-M", MEMORY_MB, "-m", steps, "-i", steps]
        _run(["bgolly", *options, *(["-o", out] if out else []), pattern])

    return step


def _run(command: Sequence[object]) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def patterns(spec: SimulationSpec, folder: Path) -> dict[str, Path]:
    """Write the pattern files of the cases, the simulator's random initial state and the gun, and return the paths."""
    soup, gun = folder / "soup.rle", folder / "gun.rle"
    soup.write_text(_soup(spec))
    gun.write_text(GUN)
    return {"soup": soup, "gun": gun}


def _soup(spec: SimulationSpec) -> str:
    return rle.text(unpack_planes(planes_of(spec, "random", bernoulli.CERTAIN // 2), spec.width), "B3/S23")


def verify(name: str, program: Program, spec: SimulationSpec, folder: Path) -> None:
    """Compare a program with the reference on random cells. Raises SystemExit for a difference."""
    side, steps = VERIFIED
    small = replace(spec, netlist=replace(spec.netlist, periodic=False), height=side, width=side)
    before, after = folder / "before.rle", folder / f"{name}.rle"
    before.write_text(_soup(small))
    program(before, steps, after)
    # The grid is as good as an infinite plane, since a pattern grows by at most one cell per step in each direction.
    wide = ReferenceSimulation(replace(small, height=side + 2 * steps + 2, width=side + 2 * steps + 2))
    wide.put(planes_of(wide.spec, str(before), 0))
    wide.run(steps)
    expected = unpack_planes(wide.planes(), wide.spec.width)
    if not np.array_equal(_trimmed(read(after).states[..., None]), _trimmed(expected)):
        raise SystemExit(f"{name} does not compute what the reference does: nothing is timed.")


def _trimmed(cells: Bits) -> Bits:
    """Return the cells without empty rows and columns at the border."""
    rows, columns = (np.flatnonzero(cells.any(axis=axes)) for axes in ((1, 2), (0, 2)))
    return cells[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def seconds_per_step(program: Program, pattern: Path, steps: int) -> tuple[float, float]:
    """Return wall-clock and processor seconds per generation, without the time to read the pattern."""
    clocks = [_clocks()]
    for each in (1, 1 + steps):
        program(pattern, each, None)
        clocks.append(_clocks())
    (wall, processor) = ((third - 2 * second + first) / steps for first, second, third in zip(*clocks, strict=True))
    return wall, processor


def _clocks() -> tuple[float, float]:
    """Return the wall-clock time, and the processor time of all child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), used.ru_utime + used.ru_stime
