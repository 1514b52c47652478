"""Search of a sweep: choose trials, rank them and store their results.

All decisions depend only on the specification and the results, in a fixed order. Each result is stored as a line of
`trials.jsonl`. A resumed sweep repeats all decisions with the stored results, so a sweep that was killed at any time
and resumed has the same result as an uninterrupted sweep.
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
"""Maximum time in seconds between checks for a stop request while trials are trained."""

Ended = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """Trial that has ended, with its result."""

    number: int
    values: Mapping[str, Any]
    """Mapping from the paths of the axes to the trial's values."""
    status: Ended
    value: float | None
    """Value of the sweep's metric, or None if unknown, as for a failed trial or, with `tts`, an unsolved trial."""
    outcome: Outcome

    @property
    def folder(self) -> str:
        """Path of the trial's run folder, relative to the folder of the sweep."""
        return folder_of(self.number)


@dataclass(frozen=True)
class Sweep:
    """State of a sweep that is running, interrupted or complete."""

    path: Path
    spec: Spec
    trials: Sequence[Trial]
    """Trials that have ended, in the fixed order of the search."""
    interrupted: Any = None
    """Signal or reason that stopped the sweep early, or None if all trials have ended."""

    @property
    def ranked(self) -> list[Trial]:
        """Trials from best to worst, and by number in a tie; trials without a value are last."""
        sign = self.spec.sign
        return sorted(self.trials, key=lambda each: (each.value is None, sign * (each.value or 0.0), each.number))

    @property
    def best(self) -> Trial | None:
        """Best complete trial with a value, or None if there is no such trial."""
        return next((trial for trial in self.ranked if trial.status == "complete" and trial.value is not None), None)


class SweepObserver:
    """Base class of observers of a sweep; its methods do nothing and can be overridden."""

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        """Receive the start of a sweep in the folder `path`; `known` is the number of trials with stored results."""

    def ended(self, trial: Trial, done: int, most: int) -> None:
        """Receive a trial that has ended, number `done` of at most `most`; trials arrive in a fixed order."""

    def noticed(self, text: str) -> None:
        """Receive a notice for the user."""


class Workers(Protocol):
    """Interface of the workers that train the trials of a sweep."""

    @property
    def size(self) -> int:
        """Number of trials that the workers can train in parallel."""

    def submit(self, rung: Rung) -> None:
        """Append `rung`, a part of a trial, to the queue."""

    def ended(self, seconds: float) -> Sequence[tuple[Rung, Outcome]]:
        """Return the results since the last call; wait at most `seconds` for the first result."""

    def put_away(self, trial: int) -> None:
        """Move the run folder of the trial number `trial`, which has ended, into the folder of the sweep."""


@contextmanager
def opened(described: Spec | None, out: Path | None, trials: int | None = None) -> Iterator[tuple[Spec, Path]]:
    """Lock and yield the folder of a new sweep or, if `described` is None, of an earlier sweep, with its specification.

    `trials` replaces the number of trials of an earlier sweep. Raises RunFolderError if the folder is in use,
    NotFoundError if it does not contain a sweep, or UsageError.
    """
    if described is not None:
        sampling.check(described)
        out = out or folders.default_path(f"sweep-{described.base.name}")
        folders.check_new(out)
        out.mkdir(parents=True, exist_ok=True)
    elif out is None or not (out / spec.NAME).is_file():
        raise NotFoundError(f"{out} does not contain a sweep: expected a folder with {spec.NAME}.")
    else:
        described = Spec.load(out / spec.NAME)
        if trials is not None and trials < described.most:
            raise UsageError(f"--trials must be at least {described.most}, the sweep's current number, got {trials}.")
        described = described if trials is None else described.with_(trials=trials)
    with folders.locked(out):
        files.check_links(out)
        files.write_atomically(out / spec.NAME, described.to_toml().encode())
        yield described, out


class Course:
    """Search procedure of a sweep: chooses and ranks trials in a fixed order and submits them to workers."""

    def __init__(self, described: Spec, out: Path, workers: Workers, observer: SweepObserver) -> None:
        self._spec, self._out, self._workers, self._observer = described, out, workers, observer
        self._ledger = _Ledger(out / LEDGER)
        is_grid = described.method == "grid"
        self._sampler = GridSampler(described) if is_grid else OptunaSampler(described, out)
        self._rungs = described.rungs()
        # Grid and random trials do not depend on results, so some trials are queued ahead to keep all workers busy.
        # Other methods use results. With `ahead` = 8, `optuna` always chooses trial 8 with the result of trial 0 only,
        # so that its choice does not depend on the number of workers.
        is_blind = described.method in ("grid", "random")
        self._ahead = None if is_blind else described.ahead
        self._over: list[Trial] = []
        observer.began(described, out, len(self._ledger.values), workers.size)
        if self._ahead is not None and self._ahead < workers.size:
            observer.noticed(
                f"Only {self._ahead} of {workers.size} workers are used, since {described.method} trains only "
                f"{self._ahead} trials in parallel: to use all, start a new sweep with a larger --ahead."
            )

    def go(self, stop: Stop) -> Sweep:
        """Run the search until all trials have ended or `stop` has a reason; return the sweep."""
        number, waiting = 0, deque[Rung]()
        while stop.reason is None:
            while len(waiting) < (self._ahead or 4 * self._workers.size) and number < self._spec.most:
                waiting.append(self._begun(number, self._sampler.ask(number, self._ledger.values.get(number)), 0))
                number += 1
            if not waiting:
                break
            # Results are used in the order of trials, so the search waits for the first even if a later one has ended.
            first = waiting[0]
            if (outcome := self._ledger.outcomes.get((first.trial, first.until))) is None:
                for rung, result in self._workers.ended(POLL_S):
                    # Results are stored immediately, so that killing the process loses none.
                    self._ledger.keep(rung, result)
                continue
            if (more := self._judged(waiting.popleft(), outcome)) is not None:
                waiting.append(more)
        is_whole = len(self._over) == self._spec.most
        return Sweep(self._out, self._spec, self._over, None if is_whole else stop.reason)

    def _judged(self, rung: Rung, outcome: Outcome) -> Rung | None:
        """Process the outcome of a rung; return the next rung of its trial, or None if the trial has ended."""
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
    """Outcomes of rungs, which are stored in `trials.jsonl` in the order of arrival."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.outcomes: dict[tuple[int, int | None], Outcome] = {}
        self.values: dict[int, dict[str, Any]] = {}
        lines = list(jsonl.objects(path))
        try:
            for line in lines:
                self.outcomes[line["trial"], line["until"]] = Outcome(**line["outcome"])
                # JSON stores tuples as lists.
                self.values[line["trial"]] = {path: tuple(value) if isinstance(value, list) else value
                                              for path, value in line["values"].items()}  # fmt: skip
        except (KeyError, TypeError, AttributeError) as error:
            raise RunFolderError(
                f"{path} was written by another version of difflogic: use that version to continue the sweep."
            ) from error
        # An incomplete line of a killed process is removed before lines are appended.
        files.write_atomically(path, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def keep(self, rung: Rung, outcome: Outcome) -> None:
        """Append the outcome of a rung to the file; call this before ranking it. Raises OSError."""
        line = {"trial": rung.trial, "until": rung.until, "values": dict(rung.values), "outcome": asdict(outcome)}
        files.append(self._path, f"{json.dumps(line)}\n".encode())
        self.outcomes[rung.trial, rung.until] = outcome
