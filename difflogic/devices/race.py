"""Two engines, one run: its first epochs on one, the next few on the other, the rest on the faster.

The epochs are the run's own, handed over with the exact state, so none is lost. What measuring costs is bounded:
a trial is four epochs, and the candidate gets no more than SHARE of the time that the rest of the run would take
on the first engine, opening included. So measuring takes less than SHARE of a run, unless the candidate's first
epoch alone takes longer; of 500 epochs also where the first engine is more than seven times as slow.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from difflogic.engine.api import Engine, EngineInfo
from difflogic.errors import DeviceError

SHARE = 0.05
"""Of the rest of the run, for the candidate."""
WARM_UP, TIMED = 1, 3
"""Epochs of a trial: the first compiles and fills caches, the median of the others counts."""

clock = time.perf_counter
Switch = Callable[[Engine], EngineInfo]
"""Goes on from the exact states on another engine, and says what its model runs on.

Raises DeviceErrors, and then nothing has changed.
"""


@dataclass(frozen=True)
class Candidate:
    """An engine that is opened where it is worth it."""

    name: str
    open: Callable[[], Engine]
    """Raises DeviceError."""
    opening_seconds: Callable[[], float] = lambda: 0.0
    """About how long that takes; asked only where it may matter."""


@dataclass
class TimedEpochs:
    """Epochs that were measured on one engine."""

    engine: EngineInfo
    first_epoch: int
    seconds: list[float] = field(default_factory=list)
    """One per epoch, the warm-up included."""

    @property
    def over(self) -> bool:
        return len(self.seconds) >= WARM_UP + TIMED

    @property
    def pace(self) -> float | None:
        """Seconds per epoch; None where none was timed."""
        timed = self.seconds[WARM_UP:]
        return statistics.median(timed) if timed else None

    def to_dict(self) -> dict[str, Any]:
        last = self.first_epoch + len(self.seconds) - 1
        pace = None if self.pace is None else round(1e3 * self.pace, 3)
        return {"epochs": [self.first_epoch, last], "ms_per_epoch": pace, "engine": asdict(self.engine)}


@dataclass(frozen=True)
class Decision:
    """A decision says where the rest of the run is trained, and why."""

    engine: EngineInfo
    reason: str
    trials: tuple[TimedEpochs, ...]

    @property
    def compared(self) -> bool:
        """True where both were timed, so that the answer holds for other runs too."""
        return len(self.trials) == 2 and all(trial.pace is not None for trial in self.trials)


class Race:
    """One run's race: it times epochs, and is asked between them where the next one is trained.

    Example, with 1 s per epoch on the GPU and 0.5 s on the CPU: epochs 1 to 4 are the GPU's trial. Of 100 epochs 96
    are left, so the candidate may take 5 % of 96 s. Epochs 5 to 8 are its trial, and 9 to 100 stay where they are.
    """

    def __init__(self, first: Engine, info: EngineInfo, candidate: Candidate, epoch: int) -> None:
        """The race begins after `epoch` on the `first` engine, whose model runs on `info`."""
        self._first, self._candidate = first, candidate
        self._trials = [TimedEpochs(info, epoch + 1)]
        self._spent = self._budget = 0.0

    def time(self, train: Callable[[], None]) -> None:
        """Measure one epoch; `train` returns when it is done."""
        begin = clock()
        train()
        seconds = clock() - begin
        # Of the first engine this limits nothing: it begins anew when the candidate is opened.
        self._spent += seconds
        self._trials[-1].seconds.append(seconds)

    def decide(self, epoch: int, epochs: int, switch: Switch) -> Decision | None:
        """Asked after `epoch` of so many epochs: `switch` engines where a trial is over; what is decided, in the end.

        Nobody is measured any more once there is a decision. Raises what `switch` raises on the way back to the first.
        """
        trial = self._trials[-1]
        if len(self._trials) == 1:
            # The first engine's epochs are no loss, whatever comes of the race, so its trial is never cut short.
            return self._try_candidate(epoch, epochs - epoch, switch) if trial.over else None
        # One more epoch like the candidate's last must still be within its budget.
        if trial.over or self._spent + sum(trial.seconds[-1:]) > self._budget:
            return self._compare(switch)
        return None

    def _try_candidate(self, epoch: int, left: int, switch: Switch) -> Decision | None:
        """Hand over to the candidate, where that is worth it."""
        candidate, info, pace = self._candidate, self._trials[0].engine, _known(self._trials[0])
        rest = left * pace
        self._budget = SHARE * rest
        # A candidate that is as fast as the first takes one pace for its warm-up alone.
        if self._budget < pace or self._budget < candidate.opening_seconds():
            reason = f"did not try {candidate.name}: the rest of the run takes only some {rest:.1f} s"
            return self._decision(info, reason)
        begin = clock()
        try:
            # Opening counts as the candidate's time: an engine that compiles for a minute must make up for it.
            info = switch(candidate.open())
        except DeviceError as error:
            return self._decision(info, f"could not try {candidate.name}: {error}")
        self._spent = clock() - begin
        self._trials.append(TimedEpochs(info, epoch + 1))
        return None

    def _compare(self, switch: Switch) -> Decision:
        """Stay with the candidate, or go back."""
        first, second = _known(self._trials[0]), self._trials[1].pace
        one, other = (trial.engine.engine for trial in self._trials)
        # Of equals the first stays: going back to it costs one more hand-over, but it is where the policy sent the run.
        is_faster = second is not None and second < first
        info = self._trials[1].engine if is_faster else switch(self._first)
        if second is None:
            reason = f"gave {other} up: trying it took more than {100 * SHARE:.0f} % of the run on {one}"
        else:
            reason = f"measured {1e3 * first:.3g} ms per epoch on {one}, {1e3 * second:.3g} ms on {other}"
        return self._decision(info, reason)

    def _decision(self, engine: EngineInfo, reason: str) -> Decision:
        return Decision(engine, f"auto {reason}", tuple(self._trials))


def _known(trial: TimedEpochs) -> float:
    assert trial.pace is not None
    return trial.pace
