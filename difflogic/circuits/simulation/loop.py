"""A simulation from its start to its end, in slices short enough to be stopped and watched."""

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
    """A progress report says how far a run is. `seconds` counts what the engine took, not what watching it did."""

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
        """Take a frame: at the start, after every N steps, and at the end."""

    def advanced(self, progress: SimulationProgress) -> None:
        """Some steps were done, or the next frame is due."""


class Repetition:
    """Notices the first state that is one of so many before it, by a hash of 256 bits of every whole state."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.period: int | None = None
        """How many steps before the state was the same, once it is known."""
        self._seen: dict[bytes, int] = {}

    @classmethod
    def of(cls, until: str, spec: SimulationSpec) -> Repetition | None:
        """`still`, `period:N`, or `steps`, which is None. Raises UsageError."""
        if until == "steps":
            return None
        found = re.fullmatch(r"still|period:([1-9]\d{0,8})", until)
        if found is None:
            raise UsageError(f"--until must be still, period:N (of at most N steps) or steps, got {until!r}.")
        if spec.asynchronous:
            raise UsageError(
                f"--until {until} needs all cells updated in each step (--fire-rate 1): which cells fire is random, so "
                "a state that repeats may still become another."
            )
        return cls(int(found[1] or 1))

    def found(self, simulation: Simulation) -> bool:
        """Return whether the state is one of those before; it is remembered."""
        digest = hashlib.blake2b(simulation.planes().tobytes(), digest_size=32).digest()
        before = self._seen.get(digest)
        if before is not None:
            self.period = simulation.step - before
            return True
        if len(self._seen) == self.longest:
            del self._seen[next(iter(self._seen))]  # the oldest
        self._seen[digest] = simulation.step
        return False


def advance(
    simulation: Simulation,
    steps: int,
    watcher: Watcher,
    stopped: Callable[[], bool],
    repetition: Repetition | None = None,
) -> SimulationProgress:
    """All steps, or as many as are done when `stopped` says so, or the state repeats."""
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
