"""Who simulates a scene: by name, or the fastest that is here, measured.

| engine      | what                                                                              |
|-------------|-----------------------------------------------------------------------------------|
| `c`         | the circuit as C, by the system's compiler; threads as in `numba`                 |
| `numba`     | the circuit as machine code by LLVM, or a table of gates interpreted; all cores   |
| `gpu`       | the circuit as WGSL, or a table; `gpu:INDEX` and `gpu:NAME` choose the adapter    |
| `reference` | NumPy                                                                             |

Code that was made for a circuit is tried before it is used: two steps of a small scene must be the reference's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from difflogic import coins
from difflogic.circuits.simulation.starts import planes_of
from difflogic.errors import DeviceError, ToolError, UsageError
from difflogic.planes import Planes
from difflogic.reference.simulation import ReferenceSimulation
from difflogic.simulation import Scene, Simulation
from difflogic.straight_line import lines

NAMES = ("auto", "c", "numba", "gpu", "reference")
SHORT_S = 1.0
"""A run that takes `numba` less than this is not worth a compiler or a measurement."""
MEASURE_S = 0.1
MOST_C_GATES = 1500
"""`auto` does not hand more to a C compiler, which would take seconds."""

COPIES = 4
"""States that are in memory at once: two of the engine, the start, and one on its way to a file."""
REFERENCE_COPIES = 24
"""The reference's, with all patches side by side."""

_TRIAL = (5, 70)
"""Height and width of the scene that new code is tried on."""


class Opened(NamedTuple):
    """A simulation at the start of its scene, and why it is this one."""

    name: str
    simulation: Simulation
    reason: str


def open_simulation(scene: Scene, start: Planes, engine: str = "auto", steps: int = 0) -> Opened:
    """The scene at `start`; `auto` chooses for a run of so many steps.

    Raises UsageError for an unknown name, ToolError without a C compiler, DeviceErrors of a GPU.
    """
    name, _, which = engine.partition(":")
    if name not in NAMES or (which and name != "gpu"):
        raise UsageError(f"Unknown engine {engine!r}: expected {', '.join(NAMES[:-1])} or {NAMES[-1]}.")
    if name == "auto":
        return _fastest(scene, start, steps)
    simulation = _OPENERS[name](scene, which or None)
    simulation.put(start)
    return Opened(name, simulation, "was asked for")


def _reference(scene: Scene, _: str | None = None) -> Simulation:
    return ReferenceSimulation(scene)


def _numba(scene: Scene, _: str | None = None) -> Simulation:
    from difflogic.cpu.row_code import compile_row
    from difflogic.cpu.simulation import CpuSimulation

    row = compile_row(scene.netlist)
    if row is not None:
        _try("numba", scene, lambda small: CpuSimulation(small, row, threads=1))
    return CpuSimulation(scene, row)


def _c(scene: Scene, _: str | None = None) -> Simulation:
    from difflogic.circuits.simulation.c_code import CRow
    from difflogic.cpu.simulation import CpuSimulation

    row = CRow(scene.netlist)
    _try("c", scene, lambda small: CpuSimulation(small, row, threads=1))
    return CpuSimulation(scene, row)


def _gpu(scene: Scene, which: str | None = None, require_hardware: bool = False) -> Simulation:
    from difflogic.gpu.adapter import select_adapter
    from difflogic.gpu.device import Device
    from difflogic.gpu.simulation import GpuProgram, GpuSimulation

    program = GpuProgram(scene.netlist, Device(select_adapter(which, require_hardware)))
    _try("gpu", scene, lambda small: GpuSimulation(small, program))
    return GpuSimulation(scene, program)


_OPENERS: dict[str, Callable[[Scene, str | None], Simulation]] = {
    "c": _c, "numba": _numba, "gpu": _gpu, "reference": _reference,
}  # fmt: skip


def _try(name: str, scene: Scene, open_small: Callable[[Scene], Simulation]) -> None:
    """Raises DeviceError where two steps of a small random scene are not the reference's."""
    small = replace(scene, height=_TRIAL[0], width=_TRIAL[1])
    start = planes_of(small, "random", coins.CERTAIN // 2)
    states = []
    for simulation in (ReferenceSimulation(small), open_small(small)):
        simulation.put(start)
        simulation.run(2)
        states.append(simulation.planes())
        simulation.close()
    if not np.array_equal(states[0], states[1]):
        raise DeviceError(
            f"The engine {name} computes something else than the reference on a trial grid: use another --engine, and "
            "please report the circuit."
        )


def _fastest(scene: Scene, start: Planes, steps: int) -> Opened:
    """`numba` for a short run; else the fastest of those that are here, by some steps of the scene itself."""
    first = _numba(scene)
    seconds = {"numba": _seconds_per_step(first, start)}
    if steps * seconds["numba"] < SHORT_S:
        first.put(start)
        return Opened("numba", first, f"is here everywhere, and {steps} steps are short work")
    opened: dict[str, Simulation] = {"numba": first}
    remarks: list[str] = []
    for name, opener in _rivals(scene, remarks).items():
        try:
            rival = opener(scene)
        except (ToolError, DeviceError) as error:
            remarks.append(f"no {name}: {str(error).partition(':')[0].rstrip('.')}")
            continue
        opened[name], seconds[name] = rival, _seconds_per_step(rival, start)
    best = min(seconds, key=lambda name: seconds[name])
    for name, simulation in opened.items():
        if name != best:
            simulation.close()
    opened[best].put(start)
    cells = scene.height * scene.width
    rates = ", ".join(f"{name} {cells / each:.1e}" for name, each in sorted(seconds.items(), key=lambda item: item[1]))
    return Opened(best, opened[best], "; ".join([f"was the fastest measured: {rates} cell updates/s", *remarks]))


def _rivals(scene: Scene, remarks: list[str]) -> dict[str, Callable[[Scene], Simulation]]:
    gates = len(lines(scene.netlist))
    rivals: dict[str, Callable[[Scene], Simulation]] = {}
    if gates <= MOST_C_GATES:
        rivals["c"] = _c
    else:
        remarks.append(f"no c: its compiler would take long over {gates} gates")
    if _hardware():
        rivals["gpu"] = lambda scene: _gpu(scene, require_hardware=True)
    return rivals


def _hardware() -> bool:
    """Whether there is a hardware GPU."""
    try:
        from difflogic.gpu.adapter import list_adapters

        return any(not adapter.software for adapter in list_adapters())
    except ImportError:
        return False


def _seconds_per_step(simulation: Simulation, start: Planes) -> float:
    """From the start, a step to settle, then as many as `MEASURE_S` holds."""
    simulation.put(start)
    simulation.run(1)
    steps, best = 1, float("inf")
    deadline = time.perf_counter() + MEASURE_S
    while time.perf_counter() < deadline:
        began = time.perf_counter()
        simulation.run(steps)
        best = min(best, (time.perf_counter() - began) / steps)
        steps = min(2 * steps, 1000)
    return best


def check_fits(scene: Scene, available: int | None, engine: str = "auto") -> None:
    """Raises UsageError, with what would fit, where so many bytes do not hold the scene."""
    copies = REFERENCE_COPIES if engine == "reference" else COPIES
    needed = copies * scene.state_bytes
    if available is None or needed <= available:
        return
    channels = "1 channel" if scene.channels == 1 else f"{scene.channels} channels"
    side = int((8 * available / (copies * scene.channels)) ** 0.5)
    raise UsageError(
        f"{scene.width}x{scene.height} cells with {channels} need {needed / 1e9:.1f} GB, but "
        f"{available / 1e9:.1f} GB are free: some {side}x{side} fit."
    )
