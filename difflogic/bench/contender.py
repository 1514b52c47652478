"""An engine with one case's model: opened, verified, and ready to be timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from difflogic.bench import memory, verify
from difflogic.bench.cases import Case
from difflogic.bench.profile import Profile, can_profile, profile
from difflogic.circuit import Circuit
from difflogic.engine import Engine, EpochMetrics, Evaluation, Job, PopulationModel, TrainingModel, TrainState
from difflogic.errors import DifflogicError
from difflogic.train import population
from difflogic.train.tasks import make_job

LONG = 1.0
"""Seconds of a repetition, above which one profile must do."""


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
    peak: int | None = None
    """Bytes that opening the model and its first step took, where that is known: see `Case.once`."""

    def repeat(self, count: int) -> float:
        """Seconds per repetition over `count` of them, waited for."""
        begin = time.perf_counter()
        _REPETITIONS[self.case.kind](self.model, count)
        return (time.perf_counter() - begin) / count

    def warm_up(self, seconds: float) -> float:
        """Settle the engine, choose how many repetitions last `seconds`, and say how long a round will take."""
        once = self.repeat(1)
        if once < seconds:
            once = self.repeat(max(1, min(10, int(seconds / once))))
        self.per_round = max(1, round(seconds / once))
        return once * self.per_round

    @property
    def once(self) -> bool:
        """Whether the first step is all that is timed."""
        return self.case.once and self.model.info.software

    @property
    def held(self) -> TrainingModel | PopulationModel:
        """What the engine opened."""
        return self.model.held if isinstance(self.model, Together) else self.model

    def take_apart(self) -> Profile | None:
        """Where a train step's time goes; None where it is not one step of one piece. Close the model after it."""
        rounds = 3 if self.seconds[-1] < LONG else 1
        return profile(self.held, rounds) if can_profile(self.held) else None


def open_contender(case: Case, name: str, engine: Engine) -> Contender:
    """A contender whose first results are right. Raises WrongResultError, or LimitError where it does not fit."""
    circuit = Circuit.initial(case.config.model, case.config.seed)
    job = make_job(case.config, circuit)
    state = TrainState.initial(job)
    before = memory.forget_own_peak() if case.once else None
    model = engine.open_model(job, state) if case.models == 1 else _open_population(case, engine)
    try:
        return _verified(case, name, model, job, state, before)
    except BaseException:
        model.close()
        raise


class Together:
    """Several models as if they were one: `difflogic.engine.TrainingModel`, seen through the first of them."""

    def __init__(self, held: PopulationModel) -> None:
        self.held = held
        self.info = held.info

    def train(self, epochs: int) -> None:
        self.held.train(epochs)

    def drain(self) -> list[EpochMetrics]:
        return self.held.drain_all()[0]

    def evaluate(self) -> Evaluation:
        return self.held.evaluate_all()[0]

    def to_cpu(self) -> TrainState:
        return self.held.to_cpu_all()[0]

    def max_epochs_per_call(self) -> int:
        return self.held.max_epochs_per_call()

    def close(self) -> None:
        self.held.close()


def _open_population(case: Case, engine: Engine) -> TrainingModel:
    """Seeds from the case's own on."""
    jobs, states = [], []
    for config in population.configs(case.config, case.models):
        jobs.append(make_job(config, Circuit.initial(config.model, config.seed)))
        states.append(TrainState.initial(jobs[-1]))
    return Together(population.open_models(engine, jobs, states))


def _verified(
    case: Case, name: str, model: TrainingModel, job: Job, state: TrainState, before: int | None
) -> Contender:
    """Trained once or twice; `before`: bytes that were resident at the start."""
    if case.kind in ("hard", "judged"):
        got, right = model.evaluate(), verify.expected_evaluation(job, state)
        if (got.hard_loss, got.wrong_probes) != (right.hard_loss, right.wrong_probes):
            raise WrongResultError(f"the first hard loss is {got.hard_loss} where it should be {right.hard_loss}")
    begin = time.perf_counter()
    model.train(1)
    losses = [metrics.soft_loss for metrics in model.drain()]
    first_s = time.perf_counter() - begin
    peak = None if before is None else memory.own_peak_bytes()
    expected = verify.expected_losses(case, job, state)
    for _ in expected[1:]:
        model.train(1)
        losses += [metrics.soft_loss for metrics in model.drain()]
    if complaint := verify.complaint(case, losses, expected):
        raise WrongResultError(complaint)
    contender = Contender(case, name, model, losses[0], first_s)
    if contender.once:
        contender.seconds.append(first_s)
    if before is not None and peak is not None:
        contender.peak = peak - before
    return contender


def _train(model: TrainingModel, count: int) -> None:
    model.train(count)
    model.drain()


def _train_logged(model: TrainingModel, count: int) -> None:
    """As a run that logs every epoch does: its rows come home with every call, and a call is a tenth of a second."""
    while count > 0:
        together = min(count, model.max_epochs_per_call())
        model.train(together)
        model.drain()
        count -= together


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
