"""What the first losses and the first verdict must be: nothing is timed that computes something else."""

from __future__ import annotations

import numpy as np

from difflogic.bench.cases import Case
from difflogic.engine import Engine, Evaluation, Job, TrainState
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.model import ReferenceModel
from difflogic.train import placement
from difflogic.train.gradients_check import Subject

AUTHORS_FIRST_LOSS = {("checkerboard", 23): 231.266}
"""By name and seed of a preset as it stands, from the authors' code."""
AUTHORS_TOLERANCE = 2e-5
"""Relative, for the authors' first loss."""
FIRST_LOSS_TOLERANCE = 1e-4
"""Relative, for the reference's: a driver's `exp` shifts the coefficients of all gates alike by some units in the last
place, and a state passes through hundreds of gates; on large grids it does not average out."""
LATER_LOSS_TOLERANCE = 1e-3
"""Relative, after steps from an engine's own gradients: AdamW makes much of small ones."""
LARGE = 4 << 20
"""Values of one CA step, above which the reference only runs forward: its train step takes minutes and gigabytes."""


def expected_losses(case: Case, job: Job, state: TrainState) -> list[float]:
    """The soft loss of the first epoch or the first two."""
    work = case.work
    if case.once:
        return [_first_loss_of_a_rollout(job, state, placement.open_engine("cpu"))]
    if work.nodes // case.config.task.steps > LARGE:
        return [_first_loss(job, state)]
    model = ReferenceModel(job, state)
    model.train(2)
    return [metrics.soft_loss for metrics in model.drain()]


def _first_loss(job: Job, state: TrainState) -> float:
    subject = Subject.of(job, state)
    return ReferenceEngine().loss(subject.circuit, subject.batch)


def _first_loss_of_a_rollout(job: Job, state: TrainState, engine: Engine) -> float:
    """By an engine that the smaller cases hold to the reference, whose own values would take 13 GB on a huge grid."""
    subject, task = Subject.of(job, state), job.config.task
    last = engine.rollout(subject.circuit, subject.x, task.steps, masks=subject.masks)[-1]
    return float(np.sum((last - subject.y)[..., : task.loss_channels] ** 2, dtype=np.float64))


def expected_evaluation(job: Job, state: TrainState) -> Evaluation:
    """The verdict about the circuit as it starts; exact."""
    return ReferenceModel(job, state).evaluate()


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
