"""Search of a sweep: the choice of trials, their ranking, and their results so far.

All decisions follow from the specification and from the results, in a fixed order. Results are stored, line by line, in
`trials.jsonl`. To resume is to do it all again, with known results looked up and not trained, so that a sweep that was
killed at any moment ends as one that never was.
"""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from difflogic.errors import NotFoundError, RunFolderError, UsageError
from difflogic.runs import folder as folders
from difflogic.runs import jsonl
from difflogic.sweeps import sampling, spec
from difflogic.sweeps.sampling import GridSampler, OptunaSampler
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.trial import PAUSED, Outcome, Rung, folder_of
from difflogic.system import files
from difflogic.train.signals import Stop

LEDGER = "trials.jsonl"
POLL_S = 0.5
"""Seconds between two checks for a signal while trials are trained."""

Ended = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """Trial that is over."""

    number: int
    values: Mapping[str, Any]
    """Values by the paths of the axes."""
    status: Ended
    value: float | None
    """Metric of the sweep; None if unsolved or failed."""
    outcome: Outcome

    @property
    def folder(self) -> str:
        """Name of the trial's run folder, in that of the sweep."""
        return folder_of(self.number)


@dataclass(frozen=True)
class Sweep:
    """Sweep that ended, was interrupted, or is under way."""

    path: Path
    spec: Spec
    trials: Sequence[Trial]
    """Trials that are over, in order."""
    interrupted: Any = None
    """Signal that stopped it early, or the reason that was given to its `Stop`."""

    @property
    def ranked(self) -> list[Trial]:
        """Trials, the best first, of equals the earlier; those without a value last."""

        def rank(each: Trial) -> tuple[bool, float, int]:
            return each.value is None, self.spec.sign * (each.value or 0.0), each.number

        return sorted(self.trials, key=rank)

    @property
    def best(self) -> Trial | None:
        """Best complete trial, if one has a value."""
        return next((each for each in self.ranked if each.status == "complete" and each.value is not None), None)


class SweepObserver:
    """Observer with methods to override."""

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        """Receive the begin, before the first trial; `known` results exist already."""

    def ended(self, trial: Trial, done: int, most: int) -> None:
        """Receive a trial that is over, in the order of ranking."""

    def noticed(self, text: str) -> None:
        """Receive a sentence for people."""


class Workers(Protocol):
    """Trains the trials of a sweep."""

    @property
    def size(self) -> int:
        """Number of trials at once."""

    def submit(self, rung: Rung) -> None:
        """Train a trial once there is room, in the order of calls."""

    def ended(self, seconds: float) -> Sequence[tuple[Rung, Outcome]]:
        """Return trials finished since the last call; block for at most `seconds`."""

    def put_away(self, trial: int) -> None:
        """Move the run of a trial that is over into the folder of the sweep."""


@contextmanager
def opened(described: Spec | None, out: Path | None, trials: int | None = None) -> Iterator[tuple[Spec, Path]]:
    """Lock a sweep's folder: a new one, or without a description an earlier sweep's, with another number of trials.

    Raises RunFolderError if it is not free, NotFoundError if it holds no sweep, UsageError.
    """
    if described is not None:
        sampling.check(described)
        out = out or folders.default_path(f"sweep-{described.base.name}")
        folders.check_new(out)
        out.mkdir(parents=True, exist_ok=True)
    elif out is None or not (out / spec.NAME).is_file():
        raise NotFoundError(f"{out} holds no sweep: it has no {spec.NAME}.")
    else:
        described = Spec.load(out / spec.NAME)
        if trials is not None and trials < described.most:
            raise UsageError(f"The sweep has {described.most} trials: give --trials of more, got {trials}.")
        described = described if trials is None else described.with_(trials=trials)
    with folders.locked(out):
        files.check_links(out)
        files.write_atomically(out / spec.NAME, described.to_toml().encode())
        yield described, out


class Course:
    """Choice and ranking of trials in one order."""

    def __init__(self, described: Spec, out: Path, workers: Workers, observer: SweepObserver) -> None:
        self._spec, self._out, self._workers, self._observer = described, out, workers, observer
        self._ledger = _Ledger(out / LEDGER)
        is_grid = described.method == "grid"
        self._sampler = GridSampler(described) if is_grid else OptunaSampler(described, out)
        self._rungs = described.rungs()
        # A grid and random trials do not wait for results: a few more than there are workers keep these busy. Others
        # are chosen by results. With `ahead` = 8, trial 8 of `optuna` is chosen when the result of trial 0 is known and
        # no other is, so that the choice does not depend on the number of workers.
        is_blind = described.method in ("grid", "random")
        self._ahead = None if is_blind else described.ahead
        self._over: list[Trial] = []
        observer.began(described, out, len(self._ledger.values), workers.size)
        if self._ahead is not None and self._ahead < workers.size:
            observer.noticed(
                f"There are {workers.size} workers, but {described.method} starts {self._ahead} trials at once: "
                "a new sweep with a larger --ahead would keep all busy."
            )

    def go(self, stop: Stop) -> Sweep:
        """Train trials until all are over, or the sweep is stopped."""
        asked, waiting = 0, deque[Rung]()
        while stop.reason is None:
            while len(waiting) < (self._ahead or 4 * self._workers.size) and asked < self._spec.most:
                waiting.append(self._begun(asked, self._sampler.ask(asked, self._ledger.values.get(asked)), 0))
                asked += 1
            if not waiting:
                break
            # The first in order, even if a later one is done: that order is always the same.
            first = waiting[0]
            if (outcome := self._ledger.outcomes.get((first.trial, first.until))) is None:
                for each, known in self._workers.ended(POLL_S):
                    # Stored at once, so that a kill loses nothing.
                    self._ledger.keep(each, known)
                continue
            if (more := self._judged(waiting.popleft(), outcome)) is not None:
                waiting.append(more)
        is_whole = len(self._over) == self._spec.most
        return Sweep(self._out, self._spec, self._over, None if is_whole else stop.reason)

    def _judged(self, rung: Rung, outcome: Outcome) -> Rung | None:
        """Return the trial's next rung, unless it is over."""
        number, values, metric = rung.trial, rung.values, self._spec.metric
        status: Ended = "failed" if outcome.status == "failed" else "complete"
        if outcome.status == PAUSED:
            if not self._sampler.is_hopeless(number, rung.number, outcome.standing(metric)):
                return self._begun(number, values, rung.number + 1)
            status = "pruned"
        value = outcome.value(metric)
        self._sampler.tell(number, value, status)
        self._workers.put_away(number)
        self._over.append(Trial(number, values, status, value, outcome))
        self._observer.ended(self._over[-1], len(self._over), self._spec.most)
        return None

    def _begun(self, trial: int, values: Mapping[str, Any], number: int) -> Rung:
        rung = Rung(self._spec, trial, values, number, self._rungs[number])
        if (trial, rung.until) not in self._ledger.outcomes:
            self._workers.submit(rung)
        return rung


class _Ledger:
    """Results of rungs in `trials.jsonl`, as they came in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.outcomes: dict[tuple[int, int | None], Outcome] = {}
        self.values: dict[int, dict[str, Any]] = {}
        lines = list(jsonl.objects(path))
        try:
            for each in lines:
                self.outcomes[each["trial"], each["until"]] = Outcome(**each["outcome"])
                # JSON has lists for tuples.
                self.values[each["trial"]] = {path: tuple(value) if isinstance(value, list) else value
                                              for path, value in each["values"].items()}  # fmt: skip
        except (KeyError, TypeError, AttributeError) as error:
            raise RunFolderError(
                f"{path} was written by another version of difflogic: use that version to continue it."
            ) from error
        # Nothing may follow a line that was cut short by a kill.
        files.write_atomically(path, "".join(json.dumps(each) + "\n" for each in lines).encode())

    def keep(self, rung: Rung, outcome: Outcome) -> None:
        """Store a result, before it is ranked. Raises OSError."""
        line = {"trial": rung.trial, "until": rung.until, "values": dict(rung.values), "outcome": asdict(outcome)}
        files.append(self._path, f"{json.dumps(line)}\n".encode())
        self.outcomes[rung.trial, rung.until] = outcome
