"""Choice of the engine for a simulation: by name, or the fastest one by measurement.

| engine      | description                                                                       |
|-------------|-----------------------------------------------------------------------------------|
| `numba`     | the circuit as machine code by LLVM; all cores                                    |
| `gpu`       | the circuit as WGSL or a table; `gpu:INDEX` or `gpu:NAME` chooses the adapter     |
| `reference` | NumPy                                                                             |

Code compiled for a circuit is tested first: two steps on a small grid must equal those of `reference`.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from difflogic.circuits.simulation.starts import planes_of
from difflogic.core import bernoulli
from difflogic.core.bits import Planes
from difflogic.engine.simulation import Simulation, SimulationSpec
from difflogic.errors import DeviceError, LimitError, UsageError
from difflogic.reference.simulation import ReferenceSimulation
from difflogic.system.words import counted

NAMES = ("auto", "numba", "gpu", "reference")
SHORT_S = 1.0
"""Minimum estimated duration in seconds of a `numba` run for engines to be compared by measurement."""
MEASURE_S = 0.1

COPIES = {"gpu": 4, "reference": 24}
"""Memory per engine as a multiple of one state, including the initial or written state; `reference` stores patches."""
OTHER_COPIES = 1.25
"""Memory of a `numba` run outside the engine as a multiple of one state: the initial or last state, and cell counts."""

_TRIAL = (5, 70)
"""Height and width of the grid on which compiled code is tested."""


class Opened(NamedTuple):
    """Simulation in its initial state, with the engine's name and the reason for choosing it, for messages."""

    name: str
    simulation: Simulation
    reason: str


def open_simulation(spec: SimulationSpec, start: Planes, engine: str = "auto", steps: int = 0) -> Opened:
    """Open a simulation at `start`; `auto` chooses the engine for `steps` steps. Raises UsageError or DeviceError."""
    name, _, which = engine.partition(":")
    if name not in NAMES or (which and name != "gpu"):
        raise UsageError(f"Unknown engine {engine!r}: expected {', '.join(NAMES[:-1])} or {NAMES[-1]}.")
    if name == "auto":
        return _fastest(spec, start, steps)
    opened: Simulation
    if name == "reference":
        opened = ReferenceSimulation(spec)
    else:
        opened = _numba(spec) if name == "numba" else _gpu(spec, which or None)
    opened.put(start)
    return Opened(name, opened, "was requested")


def _numba(spec: SimulationSpec) -> Simulation:
    from difflogic.cpu.codegen.row_code import RowCode
    from difflogic.cpu.hard.simulation import CpuSimulation

    row = RowCode(spec.netlist)
    _try("numba", spec, lambda small: CpuSimulation(small, row, threads=1))
    return CpuSimulation(spec, row)


def _gpu(spec: SimulationSpec, which: str | None = None, require_hardware: bool = False) -> Simulation:
    from difflogic.gpu.probes import open_checked
    from difflogic.gpu.simulation import GpuProgram, GpuSimulation

    program = GpuProgram(spec.netlist, open_checked(which, require_hardware))
    _try("gpu", spec, lambda small: GpuSimulation(small, program))
    return GpuSimulation(spec, program)


def _try(name: str, spec: SimulationSpec, open_small: Callable[[SimulationSpec], Simulation]) -> None:
    """Raise DeviceError if the engine's first two steps on a small random grid differ from those of the reference."""
    small = replace(spec, height=_TRIAL[0], width=_TRIAL[1])
    start = planes_of(small, "random", bernoulli.CERTAIN // 2)
    states = []
    for simulation in (ReferenceSimulation(small), open_small(small)):
        simulation.put(start)
        simulation.run(2)
        states.append(simulation.planes())
        simulation.close()
    if not np.array_equal(states[0], states[1]):
        raise DeviceError(
            f"The engine {name} differs from the reference on a test grid: use another --engine, and please report the "
            "circuit."
        )


def _fastest(spec: SimulationSpec, start: Planes, steps: int) -> Opened:
    """Open `numba` for a short run or without a hardware GPU, otherwise the engine measured as faster on this grid."""
    numba = _numba(spec)
    seconds = _seconds_per_step(numba, start)
    numba.put(start)
    if steps * seconds < SHORT_S:
        return Opened("numba", numba, "is fast enough for so short a run")
    if not _hardware():
        return Opened("numba", numba, "is the fastest without a hardware GPU")
    try:
        gpu = _gpu(spec, require_hardware=True)
    except DeviceError as error:
        return Opened("numba", numba, f"is the fastest; gpu is unavailable: {str(error).partition(':')[0].rstrip('.')}")
    both = {"numba": (numba, seconds), "gpu": (gpu, _seconds_per_step(gpu, start))}
    (best, (simulation, _)), (_, (slower, _)) = ranked = sorted(both.items(), key=lambda item: item[1][1])
    slower.close()
    simulation.put(start)
    cells = spec.height * spec.width
    rates = ", ".join(f"{name} {cells / duration:.1e}" for name, (_, duration) in ranked)
    return Opened(best, simulation, f"was the fastest measured: {rates} cell updates/s")


def _hardware() -> bool:
    try:
        from difflogic.gpu.adapter import list_adapters

        return any(not adapter.software for adapter in list_adapters())
    except ImportError:
        return False


def _seconds_per_step(simulation: Simulation, start: Planes) -> float:
    """Measure the minimum seconds per step within `MEASURE_S`, after one step to warm up."""
    simulation.put(start)
    simulation.run(1)
    steps, best = 1, float("inf")
    deadline = time.perf_counter() + MEASURE_S
    while time.perf_counter() < deadline:
        began = time.perf_counter()
        simulation.run(steps)
        best = min(best, (time.perf_counter() - began) / steps)
        # Slices grow, since short ones mostly measure call overhead. The fastest counts: other processes slow some.
        steps = min(2 * steps, 1000)
    return best


def check_fits(spec: SimulationSpec, available: int | None, engine: str = "auto", to_write: int = 0) -> None:
    """Raise LimitError and suggest a size if a run and its file (`to_write` bytes) need more than `available`."""
    from difflogic.cpu.hard.simulation import held_bytes

    copies = COPIES.get(engine.partition(":")[0])
    needed = to_write + (copies * spec.state_bytes if copies else held_bytes(spec) + OTHER_COPIES * spec.state_bytes)
    if available is None or needed <= available:
        return
    file = f", {to_write / 1e9:.1f} GB of them to write the file" if to_write else ""
    side = int((available / needed * spec.height * spec.width) ** 0.5)
    raise LimitError(
        f"{spec.width}x{spec.height} cells with {counted(spec.channels, 'channel')} need {needed / 1e9:.1f} GB{file}, "
        f"but {available / 1e9:.1f} GB are free: about {side}x{side} cells fit."
    )
