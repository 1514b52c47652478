"""An engine with one case's model: opened, verified, and ready to be timed.

Nothing is timed that computes something else: the first losses and the first verdict must be right.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from difflogic.bench.cases import Case
from difflogic.bench.profile import Profile, profile
from difflogic.bench.timed import Timed, WrongResultError
from difflogic.config.schema import Config
from difflogic.devices import open as placement
from difflogic.devices.check_gradients import Subject
from difflogic.engine import population
from difflogic.engine.api import Engine, Model
from difflogic.engine.job import Job, TrainState, make_job
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.model import ReferenceModel

LONG = 1.0
"""Seconds of a repetition, above which one profile must do."""
AUTHORS_FIRST_LOSS = {("checkerboard", 23): 231.266}
"""The first soft loss that the authors' code has, by name and seed of an unchanged preset."""
AUTHORS_TOLERANCE = 2e-5
"""Relative, for the authors' first loss."""
FIRST_LOSS_TOLERANCE = 1e-4
"""Relative, for the reference's: a driver's `exp` shifts the coefficients of all gates alike by some units in the last
place, and a state passes through hundreds of gates; on large grids it does not average out."""
LATER_LOSS_TOLERANCE = 1e-3
"""Relative, after steps from an engine's own gradients: AdamW makes much of small ones."""
LARGE = 4 << 20
"""Values of one CA step, above which the reference only runs forward: its train step takes minutes and gigabytes."""


@dataclass(kw_only=True)
class Contender(Timed):
    """One engine on one case of circuits."""

    case: Case
    model: Model
    first_loss: float
    first_s: float
    """The first train step, which may compile."""

    def _repeat(self, count: int) -> None:
        _REPETITIONS[self.case.kind](self.model, count)

    def close(self) -> None:
        self.model.close()

    @property
    def once(self) -> bool:
        return self.case.once and self.model.info.software

    def take_apart(self) -> Profile | None:
        """Where a train step's time goes; None for the reference and for several pieces. Close the model after it."""
        # A GPU trains many models by one plan, where they are not too many for it; elsewhere each model is on its own.
        is_one_piece = hasattr(self.model, "plan") or (self.case.models == 1 and self.model.info.engine == "cpu")
        return profile(self.model, rounds=3 if self.seconds[-1] < LONG else 1) if is_one_piece else None


def open_contender(case: Case, name: str, engine: Engine) -> Contender:
    """A contender whose first results are right. Raises WrongResultError, or LimitError where it does not fit."""
    seeds = population.configs(case.config, case.models)
    jobs = [make_job(config, Circuit.initial(config.model, config.seed)) for config in seeds]
    states = [TrainState.initial(job) for job in jobs]
    model = engine.open(jobs, states)
    try:
        return _verified(case, name, model, jobs[0], states[0])
    except BaseException:
        model.close()
        raise


def _verified(case: Case, name: str, model: Model, job: Job, state: TrainState) -> Contender:
    """Train once or twice, and return the contender if the results are right."""
    # A verdict is exact, so one that is off by a single value is an error and no rounding.
    if case.kind in ("hard", "judged"):
        got, right = model.evaluate()[0], ReferenceModel(job, state).evaluate()[0]
        if (got.hard_loss, got.wrong_probes) != (right.hard_loss, right.wrong_probes):
            raise WrongResultError(f"the first hard loss is {got.hard_loss} where it should be {right.hard_loss}")
    begin = time.perf_counter()
    model.train(1)
    losses = [metrics.soft_loss for metrics in model.fetch_metrics()[0]]
    first_s = time.perf_counter() - begin
    expected = expected_losses(case, job, state)
    # The second loss follows from the first gradients: it shows a backward pass that is wrong.
    for _ in expected[1:]:
        model.train(1)
        losses += [metrics.soft_loss for metrics in model.fetch_metrics()[0]]
    if wrong := complaint(case, losses, expected):
        raise WrongResultError(wrong)
    contender = Contender(name=name, case=case, model=model, first_loss=losses[0], first_s=first_s)
    if contender.once:
        contender.seconds.append(first_s)
    return contender


def _train(model: Model, count: int) -> None:
    model.train(count)
    model.fetch_metrics()


def _train_logged(model: Model, count: int) -> None:
    """Train like a run that logs every epoch: each call returns its rows, and takes about a tenth of a second."""
    while count > 0:
        together = min(count, model.epochs_per_call())
        model.train(together)
        model.fetch_metrics()
        count -= together


def _train_judged(model: Model, count: int) -> None:
    for _ in range(count):
        model.train(1)
        model.evaluate()
    model.fetch_metrics()


def _evaluate(model: Model, count: int) -> None:
    for _ in range(count):
        model.evaluate()


_REPETITIONS: dict[str, Callable[[Model, int], None]] = {
    "train": _train,
    "logged": _train_logged,
    "judged": _train_judged,
    "hard": _evaluate,
}


def expected_losses(case: Case, job: Job, state: TrainState) -> list[float]:
    """The soft loss of the first epoch or the first two."""
    work = case.work
    if case.once:
        # Even a forward pass of the reference would not fit into memory here.
        return [_first_loss_of_a_rollout(job, state, placement.open_engine("cpu"))]
    if work.nodes // case.config.task.steps > LARGE:
        subject = Subject.of(job, state)
        return [ReferenceEngine().loss(subject.circuit, subject.batch)]
    return list(_first_losses(case.config))


@lru_cache
def _first_losses(config: Config) -> tuple[float, ...]:
    """The soft losses of two epochs of the reference, which takes seconds: cases of one configuration share them."""
    job = make_job(config, Circuit.initial(config.model, config.seed))
    model = ReferenceModel(job, TrainState.initial(job))
    model.train(2)
    return tuple(metrics.soft_loss for metrics in model.fetch_metrics()[0])


def _first_loss_of_a_rollout(job: Job, state: TrainState, engine: Engine) -> float:
    """The first loss, from an engine that smaller cases compare with the reference, which would need 13 GB on a huge
    grid.
    """
    subject, task = Subject.of(job, state), job.config.task
    last = engine.rollout(subject.circuit, subject.x, task.steps, masks=subject.masks)[-1]
    return float(np.sum((last - subject.y)[..., : task.loss_channels] ** 2, dtype=np.float64))


def complaint(case: Case, losses: list[float], expected: list[float]) -> str | None:
    """What is wrong with an engine's first losses, in one sentence; None where they are right."""
    authors = AUTHORS_FIRST_LOSS.get((case.config.name, case.config.seed)) if case.name.startswith("train/") else None
    wanted = [expected[0] if authors is None else authors, *expected[1:]]
    for epoch, (loss, right) in enumerate(zip(losses, wanted, strict=True), start=1):
        first = FIRST_LOSS_TOLERANCE if authors is None else AUTHORS_TOLERANCE
        tolerance = first if epoch == 1 else LATER_LOSS_TOLERANCE
        if not abs(loss - right) <= tolerance * right:
            return f"the soft loss of epoch {epoch} is {loss:.6g} where it should be {right:.6g}"
    return None
