"""Open a case on an engine and verify its results before it is timed.

An engine is timed only if its first losses and, for cases that time evaluations, its first evaluation are correct.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from difflogic.bench.cases import Case
from difflogic.bench.engines import Bench
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
"""Duration of a repetition in seconds from which a train step is profiled once instead of three times."""
AUTHORS_FIRST_LOSS = {("checkerboard", 23): 231.266}
"""Mapping from (preset, seed) to the first soft loss of the authors' code for this unchanged preset."""
AUTHORS_TOLERANCE = 2e-5
"""Relative tolerance when a first loss is compared with that of the authors' code."""
FIRST_LOSS_TOLERANCE = 1e-4
"""Relative tolerance when a first loss is compared with the reference's: a driver's `exp` shifts all gate coefficients
by some units in the last place, states pass through hundreds of gates, and large grids do not average out the error."""
LATER_LOSS_TOLERANCE = 1e-3
"""Relative tolerance of later losses, which is higher since AdamW amplifies errors of small gradients."""
LARGE = 4 << 20
"""Maximum number of values per CA step with which the reference trains; with more, it only computes the first loss."""


@dataclass(kw_only=True)
class Contender(Timed):
    """Case of a circuit on an engine: an opened model with verified results."""

    case: Case
    model: Model
    first_loss: float
    first_s: float
    """Duration of the first train step in seconds, which may include compilation."""

    def _repeat(self, count: int) -> None:
        _REPETITIONS[self.case.kind](self.model, count)

    def close(self) -> None:
        self.model.close()

    @property
    def once(self) -> bool:
        return self.case.once and self.model.info.software

    def take_apart(self) -> Profile | None:
        """Profile a train step (close the model afterwards); None for the reference or separately trained models."""
        # A GPU trains all models by one plan if they fit into its memory. Other engines train models separately.
        is_one_piece = hasattr(self.model, "plan") or (self.case.models == 1 and self.model.info.engine == "cpu")
        return profile(self.model, rounds=3 if self.seconds[-1] < LONG else 1) if is_one_piece else None


def open_contender(case: Case, bench: Bench) -> Contender:
    """Open a case on an engine and verify its results. Raises WrongResultError, or LimitError for lack of memory."""
    seeds = population.configs(case.config, case.models)
    jobs = [make_job(config, Circuit.initial(config.model, config.seed)) for config in seeds]
    states = [TrainState.initial(job) for job in jobs]
    model = cast(Engine, bench.engine).open(jobs, states)
    try:
        return _verified(case, bench, model, jobs[0], states[0])
    except BaseException:
        model.close()
        raise


def _verified(case: Case, bench: Bench, model: Model, job: Job, state: TrainState) -> Contender:
    """Train for one or two epochs and return the contender if the results are correct. Raises WrongResultError."""
    # Evaluations are exact, so that any difference is an error, not rounding.
    if case.kind in ("hard", "judged"):
        got, right = model.evaluate()[0], ReferenceModel(job, state).evaluate()[0]
        if (got.hard_loss, got.wrong_probes) != (right.hard_loss, right.wrong_probes):
            raise WrongResultError(f"expected a first hard loss of {right.hard_loss}, got {got.hard_loss}")
    begin = time.perf_counter()
    model.train(1)
    losses = [metrics.soft_loss for metrics in model.fetch_metrics()[0]]
    first_s = time.perf_counter() - begin
    expected = expected_losses(case, job, state)
    # The second loss depends on the first gradients, so it verifies the backward pass.
    for _ in expected[1:]:
        model.train(1)
        losses += [metrics.soft_loss for metrics in model.fetch_metrics()[0]]
    if wrong := complaint(case, losses, expected):
        raise WrongResultError(wrong)
    contender = Contender(bench=bench, case=case, model=model, first_loss=losses[0], first_s=first_s)
    if contender.once:
        contender.seconds.append(first_s)
    return contender


def _train(model: Model, count: int) -> None:
    model.train(count)
    model.fetch_metrics()


def _train_logged(model: Model, count: int) -> None:
    """Train `count` epochs like a run that logs every epoch: fetch metrics after each call, which lasts about 0.1 s."""
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
    """Return the expected soft losses of the first epoch or, if the reference can train the case, of the first two."""
    work = case.work
    if case.once:
        # For these huge grids, a forward pass of the reference would need 13 GB.
        subject, task = Subject.of(job, state), job.config.task
        last = placement.open_engine("cpu").rollout(subject.circuit, subject.x, task.steps, masks=subject.masks)[-1]
        return [float(np.sum((last - subject.y)[..., : task.loss_channels] ** 2, dtype=np.float64))]
    if work.nodes // case.config.task.steps > LARGE:
        subject = Subject.of(job, state)
        return [ReferenceEngine().loss(subject.circuit, subject.batch)]
    return list(_first_losses(case.config))


@lru_cache
def _first_losses(config: Config) -> tuple[float, ...]:
    """Return the soft losses of the reference's first two epochs, cached for all cases of a configuration."""
    job = make_job(config, Circuit.initial(config.model, config.seed))
    model = ReferenceModel(job, TrainState.initial(job))
    model.train(2)
    return tuple(metrics.soft_loss for metrics in model.fetch_metrics()[0])


def complaint(case: Case, losses: list[float], expected: list[float]) -> str | None:
    """Return a message about the first wrong loss in `losses`, an engine's first losses; None if all are correct."""
    authors = AUTHORS_FIRST_LOSS.get((case.config.name, case.config.seed)) if case.name.startswith("train/") else None
    wanted = [expected[0] if authors is None else authors, *expected[1:]]
    for epoch, (loss, right) in enumerate(zip(losses, wanted, strict=True), start=1):
        first = FIRST_LOSS_TOLERANCE if authors is None else AUTHORS_TOLERANCE
        tolerance = first if epoch == 1 else LATER_LOSS_TOLERANCE
        if not abs(loss - right) <= tolerance * right:
            return f"the soft loss of epoch {epoch} is {loss:.6g}, expected {right:.6g}"
    return None
