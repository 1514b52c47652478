"""One trial, where it is trained: a run in a folder of its own, begun or gone on with, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from difflogic.circuits.synthesis.function import live_gates
from difflogic.config import schedule
from difflogic.config.request import TrainRequest
from difflogic.devices.cost import cost_of
from difflogic.devices.open import Placement
from difflogic.model.cell_netlist import CellNetlist
from difflogic.runs import attempts
from difflogic.runs.attempts import Record
from difflogic.sweeps.spec import Spec
from difflogic.train.observer import Observer
from difflogic.train.run import AgentRun, Run, load_any
from difflogic.train.run_request import is_in, run_request
from difflogic.train.signals import OVER

Status = Literal["complete", "paused", "interrupted", "failed"]
PAUSED: Status = "paused"
BILLION = 10**9


class Rung(NamedTuple):
    """A trial, up to where it is looked at."""

    spec: Spec
    trial: int
    values: Mapping[str, Any]
    """By the paths of the axes."""
    number: int
    """Of the rungs of a trial, counted from 0."""
    until: int | None
    """Epochs, of agents steps, after which it is looked at, at the next evaluation; None: to its end."""


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
    """Mean number of gates per cell over all solved models."""
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


def train(request: TrainRequest, folder: Path, placement: Placement, observer: Observer) -> Outcome:
    """Begin in the folder, or go on there, until the end or until the observer's stop says so.

    `request` has its configuration. Raises what `run_request` raises.
    """
    record = attempts.read(folder) if attempts.is_in(folder) else None
    if record is not None and record.is_over:
        # Killed between its end and the line that says so: there is nothing to train.
        return _measured("complete", load_any(folder / record.attempts[record.best].folder), record)
    out, resume = (None, folder) if is_in(folder) else (folder, None)
    trained = run_request(request, placement, out, resume, observer)
    last, made = trained.last, trained.attempts
    is_over = last.interrupted is None or last.complete or str(last.interrupted).startswith(OVER)
    paused = observer.stop is not None and observer.stop.reason == PAUSED
    status: Status = "complete" if is_over else PAUSED if paused else "interrupted"
    return _measured(status, trained.run, None if made is None else made.record)


def _measured(status: Status, run: Run | AgentRun, record: Record | None) -> Outcome:
    return _of_agents(status, run, record) if isinstance(run, AgentRun) else _of_automata(status, run, record)


def _of_agents(status: Status, run: AgentRun, record: Record | None) -> Outcome:
    # A paused agent is compared by its last evaluation, which its rows have; at the end by fresh episodes.
    last = [[row.score for row in each.metrics if row.score is not None][-1:] for each in run.members]
    ended = [each.score.mean for each in run.members if each.score is not None]
    scores = ended if run.complete else [score for each in last for score in each]
    return Outcome(
        status,
        len(run.members),
        sum(score >= run.config.evaluation.threshold > -math.inf for score in scores),
        effort=float(run.epoch * len(run.members)) if record is None else record.effort,
        score=mean(scores),
        done=run.epoch,
        engine=run.engine.engine,
    )


def _of_automata(status: Status, run: Run, record: Record | None) -> Outcome:
    config = run.config
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
    kept = [run.circuit] if solved else []
    right = kept if models == 1 else [each.circuit for each in run.members if each.solved]
    # `spent` counts epochs of the whole task, of which one on a smaller grid, while it grows, is a fraction.
    return Outcome(
        status,
        models,
        solved,
        effort=spent * cost_of(config, 1).evaluations / config.train.epochs / BILLION,
        wrong=mean([wrong for wrong in wrongs if wrong is not None]),
        gates=mean([live_gates(CellNetlist.of_run(circuit, config)) for circuit in right]),
        done=run.state.epoch,
        engine=run.engine.engine,
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean; None for no values."""
    return sum(values) / len(values) if values else None
