"""An engine with one case's model: opened, verified, and ready to be timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from difflogic.bench import verify
from difflogic.bench.cases import Case
from difflogic.bench.profile import Profile, profile
from difflogic.circuit import Circuit
from difflogic.engine import Engine, Job, TrainingModel, TrainState
from difflogic.errors import DifflogicError, LimitError
from difflogic.train.tasks import make_job


class WrongResultError(DifflogicError):
    """An engine computes something else: it is not timed."""


@dataclass
class Contender:
    """One engine on one case."""

    case: Case
    name: str
    """What the engine was asked for as."""
    model: TrainingModel
    first_loss: float
    first_s: float
    """The first train step, which may compile."""
    per_round: int = 1
    """Repetitions of a round."""
    seconds: list[float] = field(default_factory=list)
    """Of one repetition, a value per round."""

    def repeat(self, count: int) -> float:
        """Seconds per repetition over `count` of them, waited for."""
        begin = time.perf_counter()
        _REPETITIONS[self.case.kind](self.model, count)
        return (time.perf_counter() - begin) / count

    def warm_up(self, seconds: float) -> None:
        """Settle the engine, and choose how many repetitions last `seconds`."""
        once = self.repeat(1)
        if once < seconds:
            once = self.repeat(max(1, min(10, int(seconds / once))))
        self.per_round = max(1, round(seconds / once))

    def take_apart(self) -> Profile | None:
        """Where a train step's time goes. The model must not be used for anything else afterwards."""
        return None if self.case.kind == "hard" else profile(self.model, rounds=3)


def open_contender(case: Case, name: str, engine: Engine) -> Contender:
    """A contender whose first results are right. Raises WrongResultError, or LimitError where it does not fit."""
    circuit = Circuit.initial(case.config.model, case.config.seed)
    job, state = make_job(case.config, circuit), TrainState.initial(circuit, case.config.seed)
    model = _open_model(case, engine, job, state)
    try:
        return _verified(case, name, model, job, state)
    except BaseException:
        model.close()
        raise


def _open_model(case: Case, engine: Engine, job: Job, state: TrainState) -> TrainingModel:
    if case.models == 1:
        return engine.open_model(job, state)
    open_population: Callable[..., Any] | None = getattr(engine, "open_population", None)
    if open_population is None:
        raise LimitError("this engine trains one model at a time")
    raise NotImplementedError


def _verified(case: Case, name: str, model: TrainingModel, job: Job, state: TrainState) -> Contender:
    if case.kind in ("hard", "judged"):
        got, right = model.evaluate(), verify.expected_evaluation(job, state)
        if (got.hard_loss, got.wrong_probes) != (right.hard_loss, right.wrong_probes):
            raise WrongResultError(f"the first hard loss is {got.hard_loss} where it should be {right.hard_loss}")
    expected = verify.expected_losses(case, job, state)
    begin = time.perf_counter()
    model.train(1)
    losses = [metrics.soft_loss for metrics in model.drain()]
    first_s = time.perf_counter() - begin
    model.train(len(expected) - 1)
    losses += [metrics.soft_loss for metrics in model.drain()]
    if complaint := verify.complaint(case, losses, expected):
        raise WrongResultError(complaint)
    return Contender(case, name, model, losses[0], first_s)


def _train(model: TrainingModel, count: int) -> None:
    model.train(count)
    model.drain()


def _train_logged(model: TrainingModel, count: int) -> None:
    for _ in range(count):
        model.train(1)
        model.drain()


def _train_judged(model: TrainingModel, count: int) -> None:
    for _ in range(count):
        model.train(1)
        model.evaluate()
    model.drain()


def _evaluate(model: TrainingModel, count: int) -> None:
    for _ in range(count):
        model.evaluate()


_REPETITIONS: dict[str, Callable[[TrainingModel, int], None]] = {
    "train": _train,
    "logged": _train_logged,
    "judged": _train_judged,
    "hard": _evaluate,
}
