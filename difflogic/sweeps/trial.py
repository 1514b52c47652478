"""One trial, where it is trained: a run in a folder of its own, begun or gone on with, and what came of it."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from difflogic.config import schedule
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices import open as devices
from difflogic.devices.cost import cost_of
from difflogic.devices.device import Device
from difflogic.devices.open import Placement
from difflogic.errors import DifflogicError
from difflogic.model.statistics import active_gates
from difflogic.policies.rows import PolicyRow
from difflogic.policies.training import PolicyObserver, PolicyTrainer
from difflogic.runs import attempts, checkpoint
from difflogic.runs.attempts import Record
from difflogic.train import trainer
from difflogic.train.observer import Observer
from difflogic.train.run_request import is_in, run_request
from difflogic.train.signals import OVER, Stop
from difflogic.train.trainer import Run

Status = Literal["complete", "paused", "interrupted", "failed"]
BILLION = 10**9


@dataclass(frozen=True)
class Task:
    """What a worker is asked for: a trial, up to where it is looked at."""

    trial: int
    config: Config | PolicyConfig
    request: TrainRequest
    """How; of agents it says how many, and whether they end when they are solved."""
    until: int | None
    """Epochs, of agents steps, after which it is looked at, at the next evaluation; None: to its end."""

    @property
    def key(self) -> tuple[int, int | None]:
        """What its outcome is known by."""
        return self.trial, self.until


@dataclass(frozen=True)
class Outcome:
    """What came of a trial so far, as numbers. What is not known, or is not there, is None."""

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
        """What the trial is judged by; None where it has none, which is worse than any."""
        if self.status == "failed":
            return None
        if metric == "tts":
            # The expected effort until one solution, where one model after the other is tried.
            return self.effort / self.solved if self.solved and self.effort is not None else None
        return {"hard_loss": self.wrong, "gates": self.gates, "return": self.score}[metric]

    def standing(self, metric: str) -> float | None:
        """What it is compared by before its end, when few are solved."""
        return self.score if metric == "return" else self.wrong


def run(task: Task, folder: Path, selector: str, stop: Stop, saved: Callable[[], None] = lambda: None) -> Outcome:
    """Train a task in its folder, from its checkpoint where there is one; what it raises is its outcome.

    `saved` hears of each checkpoint. Only what stops the process itself is raised.
    """
    began = time.monotonic()
    try:
        look = _Look(stop, task.until)
        if isinstance(task.config, PolicyConfig):
            made = _agents(task.config, task.request, folder, selector, look, saved)
        else:
            made = _automata(task.config, task.request, folder, selector, look, saved)
    except DifflogicError as error:
        made = Outcome("failed", error=str(error))
    except Exception as error:  # noqa: BLE001  one trial's fault must not end the others
        made = Outcome("failed", error=f"{type(error).__name__}: {error}"[:500])
    return Outcome(**asdict(made) | {"seconds": round(time.monotonic() - began, 3)})


class _Look(Stop):
    """Asks a run to end at its first evaluation from `until` on; what another one asks for, it asks for too."""

    def __init__(self, other: Stop, until: int | None) -> None:
        super().__init__()
        self._other, self._until = other, math.inf if until is None else until

    @property
    def reason(self) -> Any:
        return self._reason or self._other.reason

    @property
    def is_urgent(self) -> bool:
        return self._other.is_urgent

    def evaluated(self, done: int) -> None:
        """Evaluated and saved after so many epochs or steps."""
        if done >= self._until:
            self.ask("paused")

    def status(self, complete: bool) -> Status:
        """How a run ended that it was given to."""
        if complete:
            return "complete"
        return "paused" if self._reason is not None else "interrupted"


@cache
def _placed(selector: str) -> Placement:
    # Kept while the process lives: an engine loads for a second, and a trial may take less.
    return devices.place(selector, trusted=True)


class _Watch(Observer):
    def __init__(self, look: _Look, saved: Callable[[], None]) -> None:
        self._look, self._saved = look, saved

    def saved(self, epoch: int) -> None:
        self._look.evaluated(epoch)
        self._saved()

    def wants_pictures(self) -> bool:
        return False


def _automata(
    config: Config, request: TrainRequest, folder: Path, selector: str, look: _Look, saved: Callable[[], None]
) -> Outcome:
    if not is_in(folder):
        shutil.rmtree(folder, ignore_errors=True)  # what a kill left before the first checkpoint
    record = attempts.read(folder) if attempts.is_in(folder) else None
    if record is not None and record.is_over:
        # Killed between its end and the line that says so: there is nothing to train.
        best = trainer.load_run(folder / record.attempts[record.best].folder)
        return _measured("complete", best, record, config)
    out, resume = (None, folder) if is_in(folder) else (folder, None)
    trained = run_request(request, config, _placed(selector), out, resume, 1 << 30, _Watch(look, saved), look)
    ended = trained.last.interrupted is None or trained.last.complete or str(trained.last.interrupted).startswith(OVER)
    made = None if trained.attempts is None else trained.attempts.record
    return _measured(look.status(ended), trained.run, made, config)


def _measured(status: Status, run: Run, record: Record | None, config: Config) -> Outcome:
    each = cost_of(config, 1).evaluations / config.train.epochs / BILLION
    if record is not None:
        # Attempts are one way to one solution, and have spent what all of them have.
        solved = int(any(attempt.status == "solved" for attempt in record.attempts))
        models, spent = 1, record.effort
        gates = [active_gates(run.circuit.flat_logits())] if solved else []
        wrongs = [run.wrong]
    else:
        members = run.members
        firsts = [member.first_solved for member in members]
        models, solved = len(members), sum(first is not None for first in firsts)
        spent = sum(schedule.effort(config, first or member.state.epoch)
                    for first, member in zip(firsts, members, strict=True))  # fmt: skip
        right = [member for member in members if member.solved]
        gates = [active_gates(member.state.logits) for member in right]
        if models == 1 and solved:
            gates = [active_gates(run.circuit.flat_logits())]
        wrongs = [min((row.hard_loss for row in member.metrics if row.hard_loss is not None), default=None)
                  for member in members]  # fmt: skip
    known = [wrong for wrong in wrongs if wrong is not None]
    return Outcome(
        status,
        models,
        solved,
        effort=spent * each,
        wrong=float(np.mean(known)) if known else None,
        gates=float(np.mean(gates)) if gates else None,
        done=run.state.epoch,
        engine=run.engine.engine,
    )


class _PolicyWatch(PolicyObserver):
    def __init__(self, look: _Look, saved: Callable[[], None]) -> None:
        self._look, self._saved = look, saved

    def iterated(self, rows: list[PolicyRow]) -> None:
        if rows[0].score is not None:
            self._look.evaluated(rows[0].steps)
            self._saved()


def _agents(
    config: PolicyConfig, request: TrainRequest, folder: Path, selector: str, look: _Look, saved: Callable[[], None]
) -> Outcome:
    device = Device("cpu" if selector == "auto" else selector)
    trainer, watch = PolicyTrainer(config, device), _PolicyWatch(look, saved)
    if checkpoint.is_in(folder):
        run = trainer.resume(folder, request.solved_models, watch, look)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        run = trainer.run(folder, request.population, request.solved_models, watch, look)
    steps = run.iteration * run.members[0].agent.iteration_steps
    # A paused agent is judged by its last evaluation, which its rows have; at the end by fresh episodes.
    last = [[row.score for row in member.rows if row.score is not None][-1:] for member in run.members]
    scores = [member.score.mean for member in run.members if member.score is not None]
    scores = scores if run.complete else [score for each in last for score in each]
    least = config.evaluation.threshold
    return Outcome(
        look.status(run.complete),
        len(run.members),
        sum(score >= least > -math.inf for score in scores),
        effort=float(steps * len(run.members)),
        score=float(np.mean(scores)) if scores else None,
        done=steps,
        engine=str(device),
    )
