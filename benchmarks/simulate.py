"""Measure cell updates per second of the simulator, compared with Life in hand-written C on the same machine.

    python -m benchmarks.simulate --save

The circuit is that of the preset `game-of-life` with its seed, trained and simplified by `difflogic simplify`. Each
contender must first equal the reference for three steps. Each timed round follows an untimed round. `arithmetic` runs
the register operations of a step by `numba` without loads and stores, a lower bound on the time. With --save,
a line per contender is appended to results/simulate.jsonl. With a --side other than 4096, only `by hand`, `numba` and
`gpu` are measured, and `numba` verifies the results.

    python -m benchmarks.simulate --golly --lifelib ENVIRONMENT/bin/python

also times other programs for Life (Debian's `golly`; `pip install python-lifelib` in a separate environment) on the
same number of random cells and on a glider gun, in an empty plane.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import Arithmetic
from benchmarks.rivals import life_programs
from benchmarks.store import CHECKOUT, Line, append
from difflogic.bench.machine import stamp
from difflogic.circuits.export import c
from difflogic.circuits.simulation.starts import planes_of
from difflogic.core import bernoulli
from difflogic.core.bits import Planes
from difflogic.cpu.engine import vector_unit
from difflogic.cpu.hard.simulation import CpuSimulation
from difflogic.engine.simulation import Simulation, SimulationSpec
from difflogic.gpu.adapter import list_adapters
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.simulation import GpuProgram, GpuSimulation
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.reference.simulation import ReferenceSimulation
from difflogic.system.processor import cores

CIRCUIT = CHECKOUT / "benchmarks" / "circuits" / "life.json"
SIDE = 4096
VERIFIED_STEPS = 3
ROUND_S = 0.5
ASYNC_RATE = 0.6


def compiler() -> list[str]:
    """Return the command of the C compiler: CC, else `cc`."""
    return shlex.split(os.environ.get("CC") or "cc")


def _version() -> str:
    """Return the first line of the compiler's version text."""
    said = subprocess.run([*compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0]


class InC:
    """Simulation of `spec` by a C file with a function `life`: hand-written C for Life, or an exported header."""

    def __init__(self, spec: SimulationSpec, source: Path, folder: Path) -> None:
        self.spec, self.step = spec, 0
        library = folder / f"{source.stem}.so"
        # `instruction_sets` sets the processor that Numba, and here the C compiler, compiles for.
        march = os.environ.get("NUMBA_CPU_NAME", "native")
        flags = ["-O3", f"-march={march}", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*compiler(), *flags, "-o", library, source], check=True)
        self._life = ctypes.CDLL(str(library)).life
        self._states = np.zeros((2, spec.height, spec.words), dtype=np.uint64)

    def put(self, planes: Planes, step: int = 0) -> None:
        self._states[0], self.step = planes[:, 0], step

    def run(self, steps: int, masks: Planes | None = None) -> None:
        assert masks is None
        even, odd = (ctypes.c_void_p(state.ctypes.data) for state in self._states)
        sizes = (self.spec.height, self.spec.words, steps, cores())
        self._life(even, odd, *map(ctypes.c_long, sizes))
        # The C code alternates between two grids, and an odd number of steps ends in the second grid.
        self._states = self._states[::-1] if steps % 2 else self._states
        self.step += steps

    def planes(self) -> Planes:
        return self._states[0][:, None].copy()

    def close(self) -> None:
        pass


_HEADER_STEPS = """\
#include "rule.h"
void life(uint64_t *even, uint64_t *odd, long height, long words, long steps, long threads)
{
    for (long step = 0; step < steps; step++)
        rule_step(step % 2 ? odd : even, step % 2 ? even : odd, height, 64 * words);
}
"""


def header(netlist: CellNetlist, folder: Path) -> Path:
    """Write the single-threaded C header of `difflogic export --format c` and a C file; return the C file's path."""
    for name, text in {**c.export(netlist, "rule"), "header.c": _HEADER_STEPS}.items():
        (folder / name).write_text(text)
    return folder / "header.c"


def contenders(spec: SimulationSpec, folder: Path, gpu: bool) -> dict[str, Callable[[], Simulation]]:
    """Return functions that open the contenders, by name; `by hand` is the basis of comparisons."""
    later = replace(spec, fire_units=bernoulli.probability("the rate", ASYNC_RATE))
    found: dict[str, Callable[[], Simulation]] = {
        "by hand": lambda: InC(spec, CHECKOUT / "benchmarks" / "life.c", folder),
        "numba": lambda: CpuSimulation(spec, threads=cores()),
        "numba, asynchronous": lambda: CpuSimulation(later, threads=cores()),
        "header": lambda: InC(spec, header(spec.netlist, folder), folder),
    }
    if gpu:
        program = GpuProgram(spec.netlist, GpuDevice(list_adapters()[0]))
        found["gpu"] = lambda: GpuSimulation(spec, program)
        if not program.software:
            found["gpu, step by step"] = lambda: GpuSimulation(spec, program, blocks=False)
            plain = GpuDevice(list_adapters()[0])
            plain.bakes_sizes = plain.trusts_kernels = False
            found["gpu, plain kernels"] = lambda: GpuSimulation(spec, GpuProgram(spec.netlist, plain))
    return found


def verified(name: str, simulation: Simulation, start: Planes) -> Simulation:
    """Compare a simulation with the reference, and return it at `start`. Raises SystemExit for a difference."""
    spec = simulation.spec
    reference = ReferenceSimulation(spec) if spec.height == SIDE else CpuSimulation(spec, threads=cores())
    for each in (reference, simulation):
        each.put(start)
        each.run(VERIFIED_STEPS)
    if not np.array_equal(reference.planes(), simulation.planes()):
        raise SystemExit(f"{name} does not compute what the reference does: nothing is timed.")
    simulation.put(start)
    return simulation


def measure(rounds: int, gpu: bool, golly: bool, lifelib: str | None, side: int = SIDE) -> list[Line]:
    """Return a line per contender, with medians over alternating rounds; Ctrl-C ends the run with the rounds so far."""
    spec = SimulationSpec(netlist_json.load(CIRCUIT), side, side)
    start = planes_of(spec, "random", bernoulli.CERTAIN // 2)
    with tempfile.TemporaryDirectory() as folder:
        makers = contenders(spec, Path(folder), gpu)
        if side != SIDE:
            makers = {name: make for name, make in makers.items() if name not in ("numba, asynchronous", "header")}
        opened: dict[str, Simulation | Arithmetic] = {
            name: verified(name, make(), start) for name, make in makers.items()
        }
        if side == SIDE:
            opened["arithmetic"] = Arithmetic(spec)
        steps = {name: _steps_of_a_round(simulation) for name, simulation in opened.items()}
        seconds: dict[str, list[float]] = {name: [] for name in opened}
        processor: dict[str, list[float]] = {name: [] for name in opened}
        others = _other_programs(spec, Path(folder), lifelib) if golly or lifelib else {}
        for times in (seconds, processor):
            times.update({name: [] for name in others})
        with suppress(KeyboardInterrupt):
            # Contenders are timed alternately, so that a machine that becomes slower affects all of them.
            for _ in range(rounds):
                for name, simulation in opened.items():
                    # An untimed run comes first, since a GPU that was idle has a low clock.
                    simulation.run(steps[name])
                    began, worked = time.perf_counter(), time.process_time()
                    simulation.run(steps[name])
                    seconds[name].append((time.perf_counter() - began) / steps[name])
                    processor[name].append((time.process_time() - worked) / steps[name])
                for name, seconds_per_step in others.items():
                    wall, of_processor = seconds_per_step()
                    seconds[name].append(wall)
                    processor[name].append(of_processor)
    here = {"case": f"life/{side}", "gates": len(spec.netlist.gates), "compiler": _version(), **stamp()}
    here["vectors"] = vector_unit()
    medians = {name: statistics.median(each) for name, each in seconds.items() if each}
    return [
        {
            "contender": name,
            "updates_per_s": _rate(side, medians[name]),
            "best_updates_per_s": _rate(side, min(seconds[name])),
            "updates_per_processor_s": _rate(side, statistics.median(processor[name])),
            "ratio_to_hand": round(medians["by hand"] / medians[name], 2),
            "rounds": len(seconds[name]),
            "device": _device() if name.startswith("gpu") else here["machine"]["processor"],
            "software": name.startswith("gpu") and list_adapters()[0].software,
            **here,
        }
        for name in medians
    ]


def _other_programs(
    spec: SimulationSpec, folder: Path, lifelib: str | None
) -> dict[str, Callable[[], tuple[float, float]]]:
    """Return functions that time a generation, by program and pattern: see `life_programs.seconds_per_step`."""
    found: dict[str, Callable[[], tuple[float, float]]] = {}
    patterns = life_programs.patterns(spec, folder)
    for name, program in life_programs.programs(lifelib).items():
        life_programs.verify(name, program, spec, folder)
        for case, steps in life_programs.STEPS.items():
            if name in steps:
                step = partial(life_programs.seconds_per_step, program, patterns[case], steps[name])
                found[f"{name}, {case}"] = step
    return found


def _rate(side: int, seconds: float) -> float:
    """Return cell updates per second, to three digits."""
    return float(f"{side * side / seconds:.3g}")


def _steps_of_a_round(simulation: Simulation | Arithmetic) -> int:
    """Return the number of steps that take ROUND_S."""
    simulation.run(1)  # may compile
    steps, seconds = 1, 0.0
    # Few steps would mostly measure the round trip and the low clock of an idle GPU.
    while seconds < ROUND_S / 2:
        steps *= 4
        began = time.perf_counter()
        simulation.run(steps)
        seconds = time.perf_counter() - began
    return max(1, int(steps * ROUND_S / seconds))


def _device() -> str:
    adapter = list_adapters()[0]
    return f"{adapter.name.split(' (')[0]}, {adapter.driver.split(' (')[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--side", type=int, default=SIDE, help="cells of a side of the grid [4096]")
    parser.add_argument("--gpu", action="store_true", help="the first adapter too")
    parser.add_argument("--golly", action="store_true", help="Golly's bgolly too, which must be installed")
    parser.add_argument("--lifelib", metavar="PYTHON", help="bgolly and lifelib too, by a Python that has it")
    parser.add_argument("--save", action="store_true", help="append to results/simulate.jsonl")
    options = parser.parse_args()
    lines = measure(options.rounds, options.gpu, options.golly, options.lifelib, options.side)
    for line in lines:
        print(json.dumps(line))
    if options.save:
        append("simulate", lines)


if __name__ == "__main__":
    main()
