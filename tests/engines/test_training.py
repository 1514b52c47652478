"""What a training model does, on every engine."""

from __future__ import annotations

import numpy as np
import pytest

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import Engine, EpochMetrics, Evaluation, Job, TrainState
from difflogic.reference.engine import ReferenceEngine
from difflogic.train import tasks
from tests import tolerances
from tests.gpu.jobs import make_job, start


def train(
    engine: Engine, job: Job, state: TrainState, epochs: int
) -> tuple[TrainState, list[EpochMetrics], Evaluation]:
    """A run of `epochs`, and what it leaves."""
    model = engine.open_model(job, state)
    model.train(epochs)
    outcome = model.to_cpu(), model.drain(), model.evaluate()
    model.close()
    return outcome


def test_no_epochs_change_nothing(engine: Engine) -> None:
    job = make_job()
    before = start(job)
    after, rows, _ = train(engine, job, before, 0)
    assert rows == []
    assert after.epoch == before.epoch
    assert after.logits.tobytes() == before.logits.tobytes()


def test_the_configurations_optimiser_is_used(engine: Engine) -> None:
    """All its numbers unlike the usual ones, over three epochs."""
    job = make_job(lr=0.2, weight_decay=0.3, beta1=0.1, beta2=0.2, epsilon=1e-3, clip=0.01)
    state, *_ = train(engine, job, start(job), 3)
    expected, *_ = train(ReferenceEngine(), job, start(job), 3)
    np.testing.assert_allclose(state.logits, expected.logits, rtol=0, atol=3e-3)


@pytest.mark.parametrize(
    ("config", "soft", "hard"),
    [
        (presets.checkerboard(), 231.266, 256),
        (presets.game_of_life(), 105.844, 108),
        (presets.checkerboard_async(), 87.93, 96),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_papers_first_losses(engine: Engine, config: Config, soft: float, hard: int) -> None:
    """At seed 23, as the authors' notebook prints them."""
    circuit = Circuit.initial(config.model, config.seed, config.train.initial_logit)
    job = tasks.make_job(config, circuit)
    _, (row,), evaluation = train(engine, job, TrainState.initial(job), 1)
    if config.train.asynchronous:
        assert row.soft_loss == pytest.approx(soft, abs=0.005)  # published to two places
    else:
        assert row.soft_loss == pytest.approx(soft, rel=tolerances.LOSS_RTOL)
    masks_differ = config.train.asynchronous  # a verdict has masks of its own
    assert evaluation.train_hard_loss == hard or masks_differ
