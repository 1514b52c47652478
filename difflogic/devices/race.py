"""Benchmark engines within a run: train some epochs on one engine, some on another, and the rest on the faster one.

All epochs are part of the run, since the exact state passes from engine to engine. The cost is bounded: a trial is four
epochs, and the second engine, the candidate, gets at most SHARE of the time that the rest of the run would take on the
first engine, including the time to open the candidate. A benchmark therefore takes less than SHARE of a run, unless the
candidate's first epoch takes longer than that.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from difflogic.engine.api import Engine, EngineInfo
from difflogic.errors import DeviceError

SHARE = 0.05
"""Maximum time of the candidate's trial, as a share of the remaining time of the run on the first engine."""
WARM_UP, TIMED = 1, 3
"""Numbers of epochs in a trial: warm-up epochs (compilation, caches), then timed epochs, whose median counts."""

clock = time.perf_counter
Switch = Callable[[Engine], EngineInfo]
"""Function that moves the run, with its exact states, to another engine, and returns a description of this engine.

If it raises DeviceError, the run stays on its previous engine.
"""


@dataclass(frozen=True)
class Candidate:
    """Second engine of a benchmark, which is opened only if a trial is worth its time."""

    name: str
    open: Callable[[], Engine]
    """Function that opens the engine. Raises DeviceError."""
    opening_seconds: Callable[[], float] = lambda: 0.0
    """Function that returns an estimate of the seconds that `open` takes."""


@dataclass
class TimedEpochs:
    """Trial of one engine, with the durations of its epochs so far."""

    engine: EngineInfo
    first_epoch: int
    seconds: list[float] = field(default_factory=list)
    """Duration of each epoch in seconds, including the warm-up."""

    @property
    def over(self) -> bool:
        return len(self.seconds) >= WARM_UP + TIMED

    @property
    def pace(self) -> float | None:
        """Median seconds per epoch, or None before the first timed epoch."""
        timed = self.seconds[WARM_UP:]
        return statistics.median(timed) if timed else None

    def to_dict(self) -> dict[str, Any]:
        last = self.first_epoch + len(self.seconds) - 1
        pace = None if self.pace is None else round(1e3 * self.pace, 3)
        return {"epochs": [self.first_epoch, last], "ms_per_epoch": pace, "engine": asdict(self.engine)}


@dataclass(frozen=True)
class Decision:
    """Engine for the rest of the run, the reason for choosing it, and the trials of the benchmark."""

    engine: EngineInfo
    reason: str
    trials: tuple[TimedEpochs, ...]

    @property
    def compared(self) -> bool:
        """True if both engines were timed, so that the decision applies to other runs too."""
        return len(self.trials) == 2 and all(trial.pace is not None for trial in self.trials)


class Race:
    """Benchmark of two engines within a run: times epochs, and decides after an epoch whether to switch engines.

    Example, with 1 s per epoch on the GPU and 0.5 s on the CPU: epochs 1 to 4 are the GPU's trial. The other 96
    of 100 epochs would take 96 s, of which the CPU's trial may take 5 %: epochs 5 to 8. The rest is on the CPU.
    """

    def __init__(self, first: Engine, info: EngineInfo, candidate: Candidate, epoch: int) -> None:
        """Begin the benchmark after epoch `epoch` with a trial of the engine `first`, which `info` describes."""
        self._first, self._candidate = first, candidate
        self._trials = [TimedEpochs(info, epoch + 1)]
        self._spent = self._budget = 0.0

    def time(self, train: Callable[[], None]) -> None:
        """Time one epoch, which `train` must run to its end."""
        begin = clock()
        train()
        seconds = clock() - begin
        # The time of the first engine is not limited: `_spent` is reset when the candidate is opened.
        self._spent += seconds
        self._trials[-1].seconds.append(seconds)

    def decide(self, epoch: int, epochs: int, switch: Switch) -> Decision | None:
        """Switch engines after `epoch` of `epochs` if a trial is over; return the decision, or None if still open.

        Do not call `time` after the decision. If returning to the first engine fails, its exception is passed on.
        """
        trial = self._trials[-1]
        if len(self._trials) == 1:
            # Epochs on the first engine cost nothing extra, so its trial is never cut short.
            return self._try_candidate(epoch, epochs - epoch, switch) if trial.over else None
        # The candidate continues if one more epoch like its last one is within its budget.
        if trial.over or self._spent + sum(trial.seconds[-1:]) > self._budget:
            return self._compare(switch)
        return None

    def _try_candidate(self, epoch: int, left: int, switch: Switch) -> Decision | None:
        """Switch to the candidate and return None, or return a decision against it if a trial is not worth its time."""
        candidate, info, pace = self._candidate, self._trials[0].engine, _known(self._trials[0])
        rest = left * pace
        self._budget = SHARE * rest
        # Even a candidate that is only as fast as the first engine needs the time of one epoch to warm up.
        if self._budget < pace or self._budget < candidate.opening_seconds():
            reason = f"did not try {candidate.name}: the rest of the run takes only about {rest:.1f} s"
            return self._decision(info, reason)
        begin = clock()
        try:
            # The candidate's time includes opening: an engine that compiles for a minute must save more than a minute.
            info = switch(candidate.open())
        except DeviceError as error:
            return self._decision(info, f"could not try {candidate.name}: {error}")
        self._spent = clock() - begin
        self._trials.append(TimedEpochs(info, epoch + 1))
        return None

    def _compare(self, switch: Switch) -> Decision:
        """Return the decision from the measured times: stay on the candidate, or switch back to the first engine."""
        first, second = _known(self._trials[0]), self._trials[1].pace
        one, other = (trial.engine.engine for trial in self._trials)
        # On a tie the run returns to the first engine, since the placement policy chose it, despite one more switch.
        is_faster = second is not None and second < first
        info = self._trials[1].engine if is_faster else switch(self._first)
        if second is None:
            reason = f"stopped the trial of {other}, which took more than {100 * SHARE:.0f} % of the run on {one}"
        else:
            reason = f"measured {1e3 * first:.3g} ms per epoch on {one}, {1e3 * second:.3g} ms on {other}"
        return self._decision(info, reason)

    def _decision(self, engine: EngineInfo, reason: str) -> Decision:
        return Decision(engine, f"auto {reason}", tuple(self._trials))


def _known(trial: TimedEpochs) -> float:
    assert trial.pace is not None
    return trial.pace
