"""Simulation loop in slices of steps, short enough that a run can be watched and stopped."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from difflogic.engine.simulation import Simulation, SimulationSpec
from difflogic.errors import UsageError

SLICE_S = 0.1


@dataclass(frozen=True)
class SimulationProgress:
    """Progress of a run; `seconds` is the time spent in the engine, excluding the watcher."""

    step: int
    steps: int
    seconds: float
    cells: int
    """Number of cells in the grid."""

    @property
    def updates_per_s(self) -> float:
        """Number of cell updates (cells times steps) per second; 0 before the first step."""
        return self.step * self.cells / self.seconds if self.seconds else 0.0


class Watcher(Protocol):
    """Receiver of a run's frames and progress."""

    every: int
    """Number of steps between frames; 0 for no frames."""

    def frame(self, progress: SimulationProgress, simulation: Simulation) -> None:
        """Receive a frame: the initial state, a state after every `every` steps, or the last state."""

    def advanced(self, progress: SimulationProgress) -> None:
        """Receive the progress after each slice of steps."""


class Repetition:
    """Detector of the first state that equals one of the last `longest` states, by 256-bit hashes."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.period: int | None = None
        """Number of steps since the equal earlier state; None while no state repeats."""
        self._steps: dict[bytes, int] = {}

    @classmethod
    def of(cls, until: str, spec: SimulationSpec) -> Repetition | None:
        """Return the detector for `until`: `still` or `period:N`; None for `steps`. Raises UsageError."""
        if until == "steps":
            return None
        match = re.fullmatch(r"still|period:([1-9]\d{0,8})", until)
        if match is None:
            raise UsageError(f"--until must be 'still', 'steps' or 'period:N' with a maximum period N, got {until!r}.")
        if spec.asynchronous:
            raise UsageError(
                f"--until {until} needs all cells to be updated in each step (--fire-rate 1): if cells fire at random, "
                "a repeated state may still change."
            )
        return cls(int(match[1] or 1))

    def found(self, simulation: Simulation) -> bool:
        """Store the simulation's state, and return whether it repeats an earlier one."""
        digest = hashlib.blake2b(simulation.planes().tobytes(), digest_size=32).digest()
        before = self._steps.get(digest)
        if before is not None:
            self.period = simulation.step - before
            return True
        if len(self._steps) == self.longest:
            del self._steps[next(iter(self._steps))]  # the oldest
        self._steps[digest] = simulation.step
        return False


def advance(
    simulation: Simulation,
    steps: int,
    watcher: Watcher,
    stopped: Callable[[], bool],
    repetition: Repetition | None = None,
) -> SimulationProgress:
    """Run `steps` steps, or until `stopped` returns True or `repetition` finds a repeated state."""
    cells = simulation.spec.height * simulation.spec.width
    progress = SimulationProgress(0, steps, 0.0, cells)
    shown = _show(watcher, progress, simulation, -1)
    at_once = 1
    while progress.step < steps and not stopped() and not (repetition and repetition.found(simulation)):
        count = 1 if repetition else min(at_once, steps - progress.step)
        if watcher.every:
            count = min(count, watcher.every - progress.step % watcher.every)
        began = time.perf_counter()
        simulation.run(count)
        took = time.perf_counter() - began
        progress = SimulationProgress(progress.step + count, steps, progress.seconds + took, cells)
        # A slice has as many steps as take SLICE_S at the last speed, but at most four times as many as the last slice,
        # since the first slice may include compilation.
        at_once = max(1, min(int(count * SLICE_S / max(took, 1e-9)), 4 * at_once))
        watcher.advanced(progress)
        if watcher.every and progress.step % watcher.every == 0:
            shown = _show(watcher, progress, simulation, shown)
    _show(watcher, progress, simulation, shown)
    return progress


def _show(watcher: Watcher, progress: SimulationProgress, simulation: Simulation, shown: int) -> int:
    """Pass a frame to the watcher unless the current step is `shown`, the last one passed; return the current step."""
    if watcher.every and progress.step != shown:
        watcher.frame(progress, simulation)
    return progress.step
