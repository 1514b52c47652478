"""Train trials, each a run in a separate folder, and measure their results."""

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
    """Part of a trial that ends with a check, which may prune the trial."""

    spec: Spec
    trial: int
    values: Mapping[str, Any]
    """Values by the paths of the axes."""
    number: int
    """Number of the rung in its trial, counted from 0."""
    until: int | None
    """Epochs, or steps of agents, after which the next evaluation ends the rung; None: the end of the trial."""


def folder_of(number: int) -> str:
    """Return the path of a trial's run folder in the folder of the sweep."""
    return f"trials/{number:05}"


@dataclass(frozen=True)
class Outcome:
    """Result of a trial so far; None for unknown values."""

    status: Status
    """Status of the trial; `paused` is before its end."""
    models: int = 1
    solved: int = 0
    effort: float | None = None
    """Cost of all models, each up to its first solution, in billions of gate evaluations, or in environment steps."""
    wrong: float | None = None
    """Mean over all models of their fewest mismatches."""
    gates: float | None = None
    """Mean number of gates per cell over all solved models."""
    score: float | None = None
    """Mean over all agents of their mean returns, in new episodes or, before the end, at the last evaluation."""
    done: int = 0
    """Number of trained epochs, or of steps of agents."""
    engine: str = ""
    error: str = ""
    seconds: float = 0.0
    """Duration in seconds, the only value that depends on the machine."""

    def value(self, metric: str) -> float | None:
        """Return the metric of the trial, or None, which is worse than any number."""
        if metric == "tts":
            # Expected effort until one solution, if models are tried in turn.
            return self.effort / self.solved if self.solved and self.effort is not None else None
        return {"hard_loss": self.wrong, "gates": self.gates, "return": self.score}[metric]

    def standing(self, metric: str) -> float | None:
        """Return the value to compare an unfinished trial by, since few are solved before their end."""
        return self.score if metric == "return" else self.wrong


def train(request: TrainRequest, folder: Path, placement: Placement, observer: Observer) -> Outcome:
    """Train a trial in a folder, which may hold a part of it, until its end or the observer's stop.

    `request` has the configuration. Raises what `run_request` raises.
    """
    record = attempts.read(folder) if attempts.is_in(folder) else None
    if record is not None and record.is_over:
        # The process was killed after the trial's end, before that was recorded: there is nothing to train.
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
    # Paused agents are compared by their last evaluation, ended ones by new episodes.
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
        # All attempts together count as one model.
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
    # `spent` counts epochs of the complete task; one on a smaller grid is a fraction of one.
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
    """Return the mean; None for no values."""
    return sum(values) / len(values) if values else None
