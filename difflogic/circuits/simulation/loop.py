"""A simulation from its start to its end, in slices short enough to be stopped and watched."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from difflogic.engine.simulation import Simulation

SLICE_S = 0.1


@dataclass(frozen=True)
class SimulationProgress:
    """How far a run is. `seconds` counts what the engine took, not what watching it did."""

    step: int
    steps: int
    seconds: float
    cells: int
    """Of the grid."""

    @property
    def updates_per_s(self) -> float:
        """Cells times steps per second."""
        return self.step * self.cells / self.seconds if self.seconds else 0.0


class Watcher(Protocol):
    """Sees a run pass by."""

    every: int
    """Steps between frames; 0: none."""

    def frame(self, progress: SimulationProgress, simulation: Simulation) -> None:
        """At the start, after every so many steps, and at the end."""

    def advanced(self, progress: SimulationProgress) -> None:
        """Some steps were done, or the next frame is due."""


def advance(simulation: Simulation, steps: int, watcher: Watcher, stopped: Callable[[], bool]) -> SimulationProgress:
    """All steps, or as many as are done when `stopped` says so."""
    cells = simulation.spec.height * simulation.spec.width
    progress = SimulationProgress(0, steps, 0.0, cells)
    shown = _show(watcher, progress, simulation, -1)
    at_once = 1
    while progress.step < steps and not stopped():
        count = min(at_once, steps - progress.step)
        if watcher.every:
            count = min(count, watcher.every - progress.step % watcher.every)
        began = time.perf_counter()
        simulation.run(count)
        took = time.perf_counter() - began
        progress = SimulationProgress(progress.step + count, steps, progress.seconds + took, cells)
        # As many steps as took SLICE_S at the speed of the last slice, but never more than four times as many: the
        # first one, which may compile, says little about the next.
        at_once = max(1, min(int(count * SLICE_S / max(took, 1e-9)), 4 * at_once))
        watcher.advanced(progress)
        if watcher.every and progress.step % watcher.every == 0:
            shown = _show(watcher, progress, simulation, shown)
    _show(watcher, progress, simulation, shown)
    return progress


def _show(watcher: Watcher, progress: SimulationProgress, simulation: Simulation, shown: int) -> int:
    """A frame, unless the last one was of this step; returns the step shown last."""
    if watcher.every and progress.step != shown:
        watcher.frame(progress, simulation)
    return progress.step
