"""The course of a sweep: which trials are asked for, in which order they are ranked, and what is known of them.

Everything that a sweep decides follows from its specification and from what came of its trials, in a fixed order. What
came of them is kept, line by line, in `trials.jsonl`. So to resume is to do it all again, with what is known looked up
and not trained: a sweep that was killed at any moment ends as one that never was.
"""

from __future__ import annotations

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
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.trial import PAUSED, Outcome, Rung, folder_of
from difflogic.system import files
from difflogic.train.signals import Stop

LEDGER = "trials.jsonl"
POLL_S = 0.5
"""Seconds between two looks for a signal while trials are trained."""

Ended = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """A trial that is over."""

    number: int
    values: Mapping[str, Any]
    """By the paths of the axes."""
    status: Ended
    value: float | None
    """By the metric of the sweep; None where there is none: unsolved, or failed."""
    outcome: Outcome

    @property
    def folder(self) -> str:
        """Return the trial's run folder, in that of the sweep."""
        return folder_of(self.number)


@dataclass(frozen=True)
class Sweep:
    """A sweep that ended, was interrupted, or is under way."""

    path: Path
    spec: Spec
    trials: Sequence[Trial]
    """Those that are over, in order."""
    interrupted: Any = None
    """What stopped it early: a signal, or the reason that was given to its `Stop`."""

    @property
    def ranked(self) -> list[Trial]:
        """The best trials first, of equals the first; those without a value last."""

        def rank(each: Trial) -> tuple[bool, float, int]:
            return each.value is None, self.spec.sign * (each.value or 0.0), each.number

        return sorted(self.trials, key=rank)

    @property
    def best(self) -> Trial | None:
        """The complete trial of the best value; None where none has a value."""
        return next((each for each in self.ranked if each.status == "complete" and each.value is not None), None)


class SweepObserver:
    """Override what you want to hear."""

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        """Before the first trial; outcomes of so many are known already."""

    def ended(self, trial: Trial, done: int, most: int) -> None:
        """A trial is over, told in the order in which they are ranked."""

    def noticed(self, text: str) -> None:
        """Something that a person should know, one sentence."""


class Workers(Protocol):
    """Workers train the trials of a sweep."""

    @property
    def size(self) -> int:
        """So many at once."""

    def submit(self, rung: Rung) -> None:
        """Have it trained where there is room, in the order of asking."""

    def ended(self, seconds: float) -> Sequence[tuple[Rung, Outcome]]:
        """What has ended since; waits so long for one."""

    def put_away(self, trial: int) -> None:
        """A trial is over, whose run is wanted in the folder of the sweep."""


@contextmanager
def opened(described: Spec | None, out: Path | None, trials: int | None = None) -> Iterator[tuple[Spec, Path]]:
    """A sweep's folder, locked: a new one, or without a description that of an earlier sweep, with so many trials.

    Raises RunFolderError where it is not free, NotFoundError where it holds no sweep, UsageError.
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
            # Some would be thrown away.
            raise UsageError(f"The sweep has {described.most} trials: give --trials of more, got {trials}.")
        described = described if trials is None else described.with_(trials=trials)
    with folders.locked(out):
        files.check_links(out)
        files.write_atomically(out / spec.NAME, described.to_toml().encode())
        yield described, out


class Course:
    """The one order in which trials are chosen and ranked."""

    def __init__(self, described: Spec, out: Path, workers: Workers, observer: SweepObserver) -> None:
        self._spec, self._out, self._workers, self._observer = described, out, workers, observer
        self._ledger = _Ledger(out / LEDGER)
        self._sampler = sampling.sampler(described, out)
        self._rungs = described.rungs()
        is_blind = described.method in ("grid", "random")
        # Trials that are chosen blindly need not wait for results: a few more than there are workers keep these busy.
        # The others are chosen by results. With `optuna` and `ahead` = 8, trial 8 is chosen when the result of trial 0
        # is known and no other is, on however many workers: so this number must not follow from theirs.
        self._ahead = None if is_blind else described.ahead
        self._over: list[Trial] = []
        observer.began(described, out, len(self._ledger.values), workers.size)
        if self._ahead is not None and self._ahead < workers.size:
            observer.noticed(
                f"There are {workers.size} workers, but {described.method} starts {self._ahead} trials at once: "
                "a new sweep with a larger --ahead would keep all busy."
            )

    def go(self, stop: Stop) -> Sweep:
        """Have trials trained until all are over, or it is to stop."""
        asked, waiting = 0, deque[Rung]()
        while stop.reason is None:
            while len(waiting) < (self._ahead or 4 * self._workers.size) and asked < self._spec.most:
                waiting.append(self._begun(asked, self._sampler.ask(asked, self._ledger.values.get(asked)), 0))
                asked += 1
            if not waiting:
                break
            # Always the one that was asked for first, even where a later one is done: that order is the same each time.
            first = waiting[0]
            if (outcome := self._ledger.outcomes.get((first.trial, first.until))) is None:
                for each, known in self._workers.ended(POLL_S):
                    # As soon as it is known, whatever waits for its turn: a kill loses nothing that was trained.
                    self._ledger.keep(each, known)
                continue
            if (more := self._judged(waiting.popleft(), outcome)) is not None:
                waiting.append(more)
        is_whole = len(self._over) == self._spec.most
        return Sweep(self._out, self._spec, self._over, None if is_whole else stop.reason)

    def _judged(self, rung: Rung, outcome: Outcome) -> Rung | None:
        """The trial's next rung, unless it is over."""
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
        """A trial that is trained up to a rung, or known to have been."""
        rung = Rung(self._spec, trial, values, number, self._rungs[number])
        if (trial, rung.until) not in self._ledger.outcomes:
            self._workers.submit(rung)
        return rung


class _Ledger:
    """`trials.jsonl`: the outcome of each rung as it came in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.outcomes: dict[tuple[int, int | None], Outcome] = {}
        self.values: dict[int, dict[str, Any]] = {}
        lines = list(jsonl.objects(path))
        try:
            for each in lines:
                self.outcomes[each["trial"], each["until"]] = Outcome(**each["outcome"])
                # Lists were tuples.
                self.values[each["trial"]] = {path: tuple(value) if isinstance(value, list) else value
                                              for path, value in each["values"].items()}  # fmt: skip
        except (KeyError, TypeError, AttributeError) as error:
            raise RunFolderError(
                f"{path} was written by another version of difflogic: use that version to continue it."
            ) from error
        # A line that was cut short by a kill goes: nothing may follow it.
        files.write_atomically(path, "".join(json.dumps(each) + "\n" for each in lines).encode())

    def keep(self, rung: Rung, outcome: Outcome) -> None:
        """Before it is ranked. Raises OSError."""
        line = {"trial": rung.trial, "until": rung.until, "values": dict(rung.values), "outcome": asdict(outcome)}
        files.append(self._path, f"{json.dumps(line)}\n".encode())
        self.outcomes[rung.trial, rung.until] = outcome
