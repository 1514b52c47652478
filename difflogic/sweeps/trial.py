"""One trial, where it is trained: a run in a folder of its own, begun or gone on with, and what came of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from difflogic.config import schedule
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices import open as devices
from difflogic.devices.cost import cost_of
from difflogic.devices.open import Placement
from difflogic.errors import DifflogicError
from difflogic.model.statistics import active_gates
from difflogic.runs import attempts
from difflogic.runs.attempts import Record
from difflogic.sweeps.spec import Spec
from difflogic.train import trainer
from difflogic.train.observer import Observer
from difflogic.train.run_request import is_in, run_request
from difflogic.train.signals import OVER, Ending, Stop
from difflogic.train.trainer import Run

Status = Literal["complete", "paused", "interrupted", "failed"]
PAUSED: Status = "paused"
BILLION = 10**9
NEVER = 1 << 30
Evaluated = Callable[[int], None]
"""Hears of each evaluation that is saved, after so many epochs, of agents steps."""


class Task(NamedTuple):
    """A task is what a worker is asked for: a trial, up to where it is evaluated."""

    spec: Spec
    trial: int
    values: Mapping[str, Any]
    """By the paths of the axes."""
    until: int | None
    """Epochs, of agents steps, after which it is looked at, at the next evaluation; None: to its end."""

    @property
    def folder(self) -> str:
        """Return the trial's run folder, in that of the sweep."""
        return folder_of(self.trial)


def folder_of(number: int) -> str:
    """The run folder of a trial, in that of the sweep."""
    return f"trials/{number:05}"


@dataclass(frozen=True)
class Outcome:
    """An outcome is what came of a trial so far, as numbers. What is not known, or is not there, is None."""

    status: Status
    """`paused`: it was looked at before its end."""
    models: int = 1
    solved: int = 0
    effort: float | None = None
    """Of all models, each up to its first solution: billions of gate evaluations, of agents environment steps."""
    wrong: float | None = None
    """The mean over all models of the fewest wrong values."""
    gates: float | None = None
    """The mean over all solved models of their active gates."""
    score: float | None = None
    """The mean over all agents of their last mean returns."""
    done: int = 0
    """Epochs, of agents steps."""
    engine: str = ""
    error: str = ""
    seconds: float = 0.0
    """The one number that another machine or another time changes."""

    def value(self, metric: str) -> float | None:
        """Return what the trial is ranked by; None where it has none, which is worse than any."""
        if metric == "tts":
            # The expected effort until one solution, where one model after the other is tried.
            return self.effort / self.solved if self.solved and self.effort is not None else None
        return {"hard_loss": self.wrong, "gates": self.gates, "return": self.score}[metric]

    def standing(self, metric: str) -> float | None:
        """Return what it is compared by before its end, when few are solved."""
        return self.score if metric == "return" else self.wrong


def run(task: Task, folder: Path, selector: str, stop: Stop, saved: Callable[[], None] = lambda: None) -> Outcome:
    """Train a task in its folder, from its checkpoint where there is one; what it raises is its outcome.

    `saved` hears of each checkpoint. Only what stops the process itself is raised.
    """
    began, look = time.monotonic(), Ending(stop)

    def evaluated(done: int) -> None:
        saved()
        if task.until is not None and done >= task.until:
            look.ask(PAUSED)

    try:
        config = task.spec.configured(task.values)
        if not is_in(folder):
            shutil.rmtree(folder, ignore_errors=True)  # what a kill left before the first checkpoint
        train: Any = _automata
        if isinstance(config, PolicyConfig):
            from difflogic.sweeps import agents  # half of what it loads is for agents alone

            train = agents.train
        made: Outcome = train(config, task.spec.request, folder, selector, look, evaluated)
    except DifflogicError as error:
        made = Outcome("failed", error=str(error))
    except Exception as error:  # noqa: BLE001  one trial's fault must not end the others
        made = Outcome("failed", error=f"{type(error).__name__}: {error}"[:500])
    return replace(made, seconds=round(time.monotonic() - began, 3))


def status(is_complete: bool, look: Stop) -> Status:
    """The status of a training that `look` may have ended."""
    return "complete" if is_complete else PAUSED if look.reason == PAUSED else "interrupted"


@cache
def _placed(selector: str) -> Placement:
    # Kept while the process lives: an engine loads for a second, and a trial may take less.
    return devices.place(selector, trusted=True)


class _Watch(Observer):
    def __init__(self, evaluated: Evaluated) -> None:
        self._evaluated = evaluated

    def saved(self, epoch: int) -> None:
        self._evaluated(epoch)

    def wants_pictures(self) -> bool:
        return False


def _automata(
    config: Config, request: TrainRequest, folder: Path, selector: str, look: Stop, evaluated: Evaluated
) -> Outcome:
    record = attempts.read(folder) if attempts.is_in(folder) else None
    if record is not None and record.is_over:
        # Killed between its end and the line that says so: there is nothing to train.
        return _measured("complete", trainer.load_run(folder / record.attempts[record.best].folder), record, config)
    out, resume = (None, folder) if is_in(folder) else (folder, None)
    trained = run_request(request, config, _placed(selector), out, resume, NEVER, _Watch(evaluated), look)
    last, made = trained.last, trained.attempts
    is_over = last.interrupted is None or last.complete or str(last.interrupted).startswith(OVER)
    return _measured(status(is_over, look), trained.run, None if made is None else made.record, config)


def _measured(status: Status, run: Run, record: Record | None, config: Config) -> Outcome:
    if record is not None:
        # Attempts are one way to one solution, and have spent what all of them have.
        models, solved = 1, int(any(attempt.status == "solved" for attempt in record.attempts))
        spent, wrongs = record.effort, [run.wrong]
    else:
        models, firsts = len(run.members), [each.first_solved for each in run.members]
        solved = models - firsts.count(None)
        spent = sum(schedule.effort(config, first or each.state.epoch)
                    for first, each in zip(firsts, run.members, strict=True))  # fmt: skip
        wrongs = [min((row.hard_loss for row in each.metrics if row.hard_loss is not None), default=None)
                  for each in run.members]  # fmt: skip
    kept = [run.circuit.flat_logits()] if solved else []
    right = kept if models == 1 else [each.state.logits for each in run.members if each.solved]
    # `spent` counts epochs of the whole task, of which one on a smaller grid, while it grows, is a fraction.
    return Outcome(
        status,
        models,
        solved,
        effort=spent * cost_of(config, 1).evaluations / config.train.epochs / BILLION,
        wrong=mean([wrong for wrong in wrongs if wrong is not None]),
        gates=mean([active_gates(logits) for logits in right]),
        done=run.state.epoch,
        engine=run.engine.engine,
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean; None for no values."""
    return sum(values) / len(values) if values else None
