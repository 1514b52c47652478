"""The course of a sweep: which trials are asked for, in which order they are judged, and what is known of them.

Everything that a sweep decides follows from its specification and from what came of its trials, in a fixed order. What
came of them is kept, line by line, in `trials.jsonl`. So to resume is to do it all again, with what is known looked up
and not trained: a sweep that was killed at any moment ends as one that never was.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol

from difflogic.errors import ConfigError, RunFolderError, UsageError
from difflogic.runs import folder as folders
from difflogic.runs import jsonl
from difflogic.sweeps import sampling, spec
from difflogic.sweeps.local import folder_of
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.trial import Outcome, Task
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
        """Its run folder, in that of the sweep."""
        return folder_of(self.number)


class SweepObserver:
    """Override what you want to hear."""

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        """Before the first trial; outcomes of so many are known already."""

    def ended(self, trial: Trial, done: int, most: int) -> None:
        """A trial is over, told in the order of their numbers."""

    def noticed(self, text: str) -> None:
        """Something that a person should know, one sentence."""


@dataclass(frozen=True)
class Sweep:
    """A sweep that ended, or was interrupted."""

    path: Path
    spec: Spec
    trials: Sequence[Trial]
    """Those that are over, in order."""
    interrupted: Any = None
    """What stopped it early: a signal, or the reason that was given to its `Stop`."""

    @property
    def best(self) -> Trial | None:
        """The complete trial of the best value, of equals the first; None where none has a value."""
        valued = [each for each in self.trials if each.status == "complete" and each.value is not None]
        sign = -1 if self.spec.is_maximised else 1
        return min(valued, key=lambda each: sign * (each.value or 0.0), default=None)


class Workers(Protocol):
    """Who trains the tasks of a sweep."""

    size: int
    """So many at once."""

    def begin(self, folder: Path) -> None:
        """Keep the trials' folders in this one."""

    def submit(self, task: Task) -> Future[Outcome]:
        """Train it where there is room, in the order of asking."""

    def close(self, at_once: bool = False) -> None:
        """Wait for what is asked for; `at_once`: for the epochs under way, which are saved."""


@contextmanager
def opened(described: Spec | None, out: Path | None, trials: int | None = None) -> Iterator[tuple[Spec, Path]]:
    """A sweep's folder, locked: a new one, or without a description that of an earlier sweep, with so many trials.

    Raises RunFolderError where it is not free, or holds no sweep; UsageError.
    """
    if described is not None:
        sampling.check(described)
    if described is None:
        if out is None or not (out / spec.NAME).is_file():
            raise RunFolderError(f"{out} holds no sweep: it has no {spec.NAME}.")
        described = Spec.load(out / spec.NAME)
        if trials is not None:
            described = _extended(described, trials)
    else:
        out = out or folders.default_path(f"sweep-{described.base.to_dict()['name']}")
        folders.check_new(out)
        out.mkdir(parents=True, exist_ok=True)
    with folders.locked(out):
        files.write_atomically(out / spec.NAME, described.to_toml().encode())
        yield described, out


def _extended(earlier: Spec, trials: int) -> Spec:
    """Raises UsageError for fewer trials than there are: some would be thrown away."""
    if trials < earlier.most:
        raise UsageError(f"The sweep has {earlier.most} trials: give --trials of more, got {trials}.")
    return earlier.with_(trials)


@dataclass
class _Open:
    """A trial that is not over."""

    number: int
    values: dict[str, Any]
    rung: int
    outcome: Future[Outcome]


class Course:
    """The one order in which trials are chosen and judged."""

    def __init__(self, described: Spec, out: Path, workers: Workers, observer: SweepObserver) -> None:
        self._spec, self._out, self._workers, self._observer = described, out, workers, observer
        self._ledger = _Ledger(out / LEDGER)
        self._sampler = sampling.sampler(described, out)
        self._rungs = described.rungs()
        is_blind = described.method in ("grid", "random")
        # Blindly chosen trials need not wait for results; a few more than there are workers keep these busy.
        self._ahead = 4 * workers.size if is_blind else described.ahead
        self.over: list[Trial] = []
        observer.began(described, out, len(self._ledger.values), workers.size)
        if self._ahead < workers.size:
            observer.noticed(
                f"There are {workers.size} workers, but {described.method} asks for {self._ahead} trials at once: "
                "a new sweep with --ahead of more would keep all busy."
            )

    def go(self, stop: Stop) -> Sweep:
        """Until all trials are over, or it is to stop. Closes the workers."""
        at_once = True
        self._workers.begin(self._out)
        try:
            self._train(stop)
            at_once = stop.reason is not None
        finally:
            self._workers.close(at_once)
        is_whole = len(self.over) == self._spec.most
        return Sweep(self._out, self._spec, self.over, None if is_whole else stop.reason)

    def _train(self, stop: Stop) -> None:
        asked, waiting = 0, deque[_Open]()
        while stop.reason is None:
            while len(waiting) < self._ahead and asked < self._spec.most:
                values = self._sampler.ask(asked, self._ledger.values.get(asked))
                waiting.append(self._begun(asked, values, 0))
                asked += 1
            if not waiting:
                return
            # Always the one that was asked for first, even where a later one is done: that order is the same each time.
            first = waiting[0]
            try:
                outcome = first.outcome.result(POLL_S)
            except NotYet:
                continue
            waiting.popleft()
            # The callback that kept it may still be at it, or have failed unheard: a disk may be full.
            self._keep(first.number, self._rungs[first.rung], first.values, first.outcome)
            self._judge(first, outcome, waiting)

    def _judge(self, trial: _Open, outcome: Outcome, waiting: deque[_Open]) -> None:
        """One more rung, or the end of a trial."""
        sampler, value = self._sampler, outcome.value(self._spec.metric)
        status: Ended = "failed" if outcome.status == "failed" else "complete"
        if outcome.status == "paused":
            if not sampler.is_hopeless(trial.number, trial.rung, outcome.standing(self._spec.metric)):
                waiting.append(self._begun(trial.number, trial.values, trial.rung + 1))
                return
            status = "pruned"
        sampler.tell(trial.number, value, status)
        self.over.append(Trial(trial.number, trial.values, status, value, outcome))
        self._observer.ended(self.over[-1], len(self.over), self._spec.most)

    def _begun(self, number: int, values: dict[str, Any], rung: int) -> _Open:
        until = self._rungs[rung]
        known = self._ledger.outcomes.get((number, until))
        if known is None:
            outcome = self._asked(number, values, until)
        else:
            outcome = Future()
            outcome.set_result(known)
        return _Open(number, values, rung, outcome)

    def _asked(self, number: int, values: dict[str, Any], until: int | None) -> Future[Outcome]:
        found = self._spec
        try:
            config = found.configured(values)
        except ConfigError as error:
            outcome: Future[Outcome] = Future()
            outcome.set_result(Outcome("failed", error=str(error)))
            return outcome
        outcome = self._workers.submit(Task(number, config, found.asked(config), until))
        # As soon as it is known, whatever waits for its turn: a kill loses nothing that was trained.
        outcome.add_done_callback(lambda done: self._keep(number, until, values, done))
        return outcome

    def _keep(self, number: int, until: int | None, values: dict[str, Any], done: Future[Outcome]) -> None:
        if not done.cancelled() and done.exception() is None and done.result().status != "interrupted":
            self._ledger.keep(number, until, values, done.result())


class _Ledger:
    """`trials.jsonl`: the outcome of each task as it came in."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self.outcomes: dict[tuple[int, int | None], Outcome] = {}
        self.values: dict[int, dict[str, Any]] = {}
        lines = list(jsonl.objects(path))
        try:
            for each in lines:
                self.outcomes[each["trial"], each["until"]] = Outcome(**each["outcome"])
                self.values[each["trial"]] = _hashable(each["values"])
        except (KeyError, TypeError, AttributeError) as error:
            raise RunFolderError(f"{path} was written by another version of difflogic: go on with that one.") from error
        # A line that was cut short by a kill goes: nothing may follow it.
        files.write_atomically(path, "".join(json.dumps(each) + "\n" for each in lines).encode())

    def keep(self, number: int, until: int | None, values: Mapping[str, Any], outcome: Outcome) -> None:
        """Before it is judged; what is kept already is not kept again. Raises OSError."""
        line = {"trial": number, "until": until, "values": dict(values), "outcome": asdict(outcome)}
        with self._lock:
            if (number, until) in self.outcomes:
                return
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            self.outcomes[number, until] = outcome


def _hashable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as the tuples that they were."""
    return {path: tuple(value) if isinstance(value, list) else value for path, value in values.items()}
