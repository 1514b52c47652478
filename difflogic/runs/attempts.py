"""Reader and writer of `restarts.json`, the list of attempts of a run with restarts; each has its own run folder.

    {"format": 1, "request": "request.json", "attempts": [
        {"number": 1, "of": 3, "seed": 23, "epochs": 500, "reason": "it is the first", "status": "complete",
         "epoch": 500, "wrong": 31, "given_up": null, "score": null}, ...]}

Instead of `request`, version 0.1.0 wrote `config`, `restarts` (null: until solved), `population`, `stop_when_solved`,
and `most_epochs`.

An agent's attempt has a `score` instead of `wrong` (mismatches), and its epochs are environment steps. The file is
written before and after each attempt, so an interrupted run continues with its last attempt.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from difflogic.config import schedule
from difflogic.config.fields import build, require
from difflogic.config.policy import PolicyConfig, any_config
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.errors import RunFolderError, UsageError
from difflogic.runs import request_file
from difflogic.system import files
from difflogic.system.words import counted

NAME = "restarts.json"
FORMAT = 1
MOST = 1 << 53
"""Exclusive upper bound of every number in the file."""

UNTRAINED = ("is_built", "completes")
"""Fields with which version 0.1.0 marked attempts without training."""

Status = Literal["running", "interrupted", "given up", "solved", "complete"]


@dataclass(frozen=True)
class Attempt:
    """Attempt of a run with restarts, with its result so far."""

    number: int
    """Number of the attempt, counted from 1."""
    of: int | None
    """Maximum number of attempts of the run, or None for no limit."""
    seed: int
    epochs: int
    """Maximum number of epochs of the attempt: the number that remained when it began."""
    reason: str
    """Reason for starting the attempt, as a clause such as `it is the first`."""
    status: Status = "running"
    epoch: int = 0
    """Last trained epoch of the attempt."""
    wrong: int | None = None
    """Number of mismatches of the attempt's best circuit, or None before the first evaluation."""
    given_up: str | None = None
    """Reason for early stopping, as a clause, or None if the attempt was not stopped early."""
    score: float | None = None
    """Mean return of the attempt's best agent, in new episodes or in its last evaluation; None for automata."""

    @property
    def folder(self) -> str:
        """Name of the attempt's run folder inside the folder of the run, such as `attempt-1`."""
        return f"attempt-{self.number}"

    @property
    def shortfall(self) -> float:
        """Cost for ranking attempts: mismatches or the negated score; infinity before the first evaluation."""
        if self.score is not None:
            return -self.score
        return math.inf if self.wrong is None else self.wrong

    @property
    def is_open(self) -> bool:
        """True if the attempt is running or interrupted, so that it can continue."""
        return self.status in ("running", "interrupted")

    def __str__(self) -> str:
        """Return one line of text with the attempt's number, status, last epoch, result and seed."""
        when = "" if self.status == "running" else f" at {'epoch' if self.score is None else 'step'} {self.epoch}"
        result = "" if self.score is None else f" with a mean return of {self.score:.1f}"
        if self.wrong is not None and self.status != "solved":
            result = f" with {counted(self.wrong, 'wrong cell')}"
        reason = "" if self.given_up is None else f": {self.given_up}"
        return f"attempt {self.number}: {self.status}{when}{result}, seed {self.seed}{reason}"


@dataclass(frozen=True)
class Record:
    """Contents of restarts.json: the request and the attempts of a run."""

    request: TrainRequest
    """Request of the run, as in `request.json`."""
    attempts: tuple[Attempt, ...] = ()

    @property
    def config(self) -> Config | PolicyConfig:
        """Configuration of the run; `epochs` is the total of all attempts and models or, until solved, of each one."""
        return self.request.whole

    @property
    def population(self) -> int:
        """Number of models in each attempt."""
        return self.request.population

    @property
    def restarts(self) -> int | None:
        """Maximum number of restarts, or None if the run restarts until solved."""
        return None if self.request.until_solved else self.request.restarts or 0

    @property
    def most_epochs(self) -> int | None:
        """Maximum total number of epochs of a run that restarts until solved, or None for no limit."""
        return None if self.request.within is None else self.request.within.epochs

    @property
    def left(self) -> int:
        """Maximum number of epochs for each model of the next attempt."""
        budget = self.config.epochs if self.restarts is not None else self.most_epochs
        if budget is None:
            return self.config.epochs
        return schedule.epochs_within(self.config, max(0.0, budget - self.effort) / self.population)

    @property
    def effort(self) -> float:
        """Cost of all attempts and models so far, as a number of epochs of the complete task: see `schedule.effort`."""
        return self.population * sum(schedule.effort(self.config, attempt.epoch) for attempt in self.attempts)

    @property
    def best(self) -> int:
        """Index of the solved attempt or, if none is solved, of that with fewest mismatches or highest score."""
        ranks = [(attempt.status != "solved", attempt.shortfall) for attempt in self.attempts]
        return ranks.index(min(ranks))

    @property
    def is_over(self) -> bool:
        """True if the last attempt has ended: solved, complete with limited restarts, or with no epochs left."""
        if not self.attempts or self.attempts[-1].is_open:
            return False
        ended = self.attempts[-1].status
        return ended == "solved" or self.left < 1 or (ended == "complete" and self.restarts is not None)

    def with_attempt(self, attempt: Attempt) -> Self:
        return replace(self, attempts=(*self.attempts[: attempt.number - 1], attempt))

    def write(self, folder: Path) -> None:
        """Write restarts.json and request.json. Raises OSError."""
        files.write_atomically(folder / request_file.NAME, request_file.encode(self.request))
        data = {"format": FORMAT, "request": request_file.NAME, "attempts": list(map(asdict, self.attempts))}
        files.write_atomically(folder / NAME, json.dumps(data, indent=2).encode() + b"\n")


def is_in(folder: Path) -> bool:
    """Return whether a folder contains a run with restarts."""
    return (folder / NAME).is_file()


def read(folder: Path) -> Record:
    """Read restarts.json in the run folder `folder`. Raises RunFolderError if it is missing or unusable."""
    path = folder / NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            raise RunFolderError(
                f"{path} was written by another version of difflogic: use an attempt of it, such as {folder}/attempt-1."
            )
        request = request_file.read(folder) if "request" in data else _request(data)
        if request is None:
            raise UsageError(f"{request_file.NAME} is missing")
        record = Record(request, tuple(map(_attempt, data["attempts"])))
        numbers = [value for attempt in record.attempts for value in vars(attempt).values() if isinstance(value, int)]
        require(all(0 <= number < MOST for number in numbers), "a number is out of range")
        require(bool(record.attempts), "expected at least one attempt")
        return record
    except OSError as error:
        raise RunFolderError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, UsageError) as error:
        why = str(error).rstrip(".")
        raise RunFolderError(f"{path} cannot be used: {why}. Use the folder of one of its attempts.") from error


def _request(data: Mapping[str, Any]) -> TrainRequest:
    """Return the request from a record of version 0.1.0. Raises ConfigError, UsageError or KeyError."""
    names = ("restarts", "population", "stop_when_solved")
    within = None if data.get("most_epochs") is None else f"{data['most_epochs']} epochs"
    until = {"until_solved": data["restarts"] is None, "within": within}
    request: TrainRequest = build(TrainRequest, {name: data[name] for name in names} | until)
    return replace(request, config=any_config(data["config"]))


def _attempt(data: dict[str, Any]) -> Attempt:
    """Convert an entry of the file to an attempt. Raises ConfigError if a field is unknown or has a wrong type."""
    attempt: Attempt = build(Attempt, {name: value for name, value in data.items() if name not in UNTRAINED})
    if attempt.is_open and any(data.get(name) for name in UNTRAINED):
        return replace(attempt, status="given up", given_up="it was not to be trained")
    return attempt
