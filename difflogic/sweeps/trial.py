"""Training of trials, each in its own run folder, and measurement of their results."""

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
    """Part of a trial, after which the trial may be pruned."""

    spec: Spec
    trial: int
    values: Mapping[str, Any]
    """Mapping from the paths of the axes to the trial's values."""
    number: int
    """Number of the rung within its trial, counted from 0."""
    until: int | None
    """Epoch (for agents, environment step) after which the next evaluation ends the rung; None for the last rung."""


def folder_of(number: int) -> str:
    """Return the path of a trial's run folder, relative to the folder of the sweep."""
    return f"trials/{number:05}"


@dataclass(frozen=True)
class Outcome:
    """Result of a trial so far; unknown values are None."""

    status: Status
    """Status of the trial; `paused` means stopped between two rungs."""
    models: int = 1
    solved: int = 0
    effort: float | None = None
    """Total cost of all models until their first solutions: billions of gate evaluations, or environment steps."""
    wrong: float | None = None
    """Mean over the models of their lowest numbers of mismatches."""
    gates: float | None = None
    """Mean number of gates per cell over the solved models."""
    score: float | None = None
    """Mean return over the agents, in new episodes or, before the end, in the last evaluation."""
    done: int = 0
    """Number of trained epochs (for agents, environment steps)."""
    engine: str = ""
    error: str = ""
    seconds: float = 0.0
    """Training time in seconds, the only value that depends on the machine."""

    def value(self, metric: str) -> float | None:
        """Return the value of the metric named `metric`, or None if unknown, which ranks below any number."""
        if metric == "tts":
            # This is the expected effort until the first solution if models are trained one after another.
            return self.effort / self.solved if self.solved and self.effort is not None else None
        return {"hard_loss": self.wrong, "gates": self.gates, "return": self.score}[metric]

    def standing(self, metric: str) -> float | None:
        """Return the value that ranks unfinished trials, since few of them are solved: mean return or mismatches."""
        return self.score if metric == "return" else self.wrong


def train(request: TrainRequest, folder: Path, placement: Placement, observer: Observer) -> Outcome:
    """Train a trial until it ends or the observer stops it, in a folder that may contain an earlier part of the trial.

    `request` must have a configuration. Raises the errors of `run_request`.
    """
    record = attempts.read(folder) if attempts.is_in(folder) else None
    if record is not None and record.is_over:
        # The process was killed between the end of the trial and the storage of its result: nothing is left to train.
        return _measured("complete", load_any(folder / record.attempts[record.best].folder), record)
    out, resume = (None, folder) if is_in(folder) else (folder, None)
    trained = run_request(request, placement, out, resume, observer)
    last, series = trained.last, trained.attempts
    is_over = last.interrupted is None or last.complete or str(last.interrupted).startswith(OVER)
    paused = observer.stop is not None and observer.stop.reason == PAUSED
    status: Status = "complete" if is_over else PAUSED if paused else "interrupted"
    return _measured(status, trained.run, None if series is None else series.record)


def _measured(status: Status, run: Run | AgentRun, record: Record | None) -> Outcome:
    return _of_agents(status, run, record) if isinstance(run, AgentRun) else _of_automata(status, run, record)


def _of_agents(status: Status, run: AgentRun, record: Record | None) -> Outcome:
    # Unfinished agents are compared by their last evaluation, finished agents by their score in new episodes.
    latest = [[row.score for row in member.metrics if row.score is not None][-1:] for member in run.members]
    ended = [member.score.mean for member in run.members if member.score is not None]
    scores = ended if run.complete else [score for scores in latest for score in scores]
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
        # All attempts of a run together count as one model.
        models, solved = 1, int(any(attempt.status == "solved" for attempt in record.attempts))
        spent, wrongs = record.effort, [run.wrong]
    else:
        models, firsts = len(run.members), [member.first_solved for member in run.members]
        solved = models - firsts.count(None)
        spent = sum(schedule.effort(config, first or member.state.epoch)
                    for first, member in zip(firsts, run.members, strict=True))  # fmt: skip
        wrongs = [min((row.hard_loss for row in member.metrics if row.hard_loss is not None), default=None)
                  for member in run.members]  # fmt: skip
    circuits = [run.circuit] if solved else []
    right = circuits if models == 1 else [member.circuit for member in run.members if member.solved]
    # `spent` is in epochs of the complete task; an epoch on a smaller grid counts as a fraction.
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
    """Return the mean of `values`, or None if there are none."""
    return sum(values) / len(values) if values else None
