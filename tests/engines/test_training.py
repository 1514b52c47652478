"""The optimiser's settings and the paper's first losses, on every engine."""

from typing import Any

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.engine import job as tasks
from difflogic.engine.api import Engine
from difflogic.engine.job import TrainState
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.jobs import make_job, start, train
from tests.sampled import exhaustive


@pytest.mark.parametrize(
    ("epochs", "fields"), [(3, {"beta1": 0.1, "beta2": 0.2}), (5, {"model": {"input_wise": True}})]
)
def test_optimiser_uses_the_numbers_of_the_configuration(engine: Engine, epochs: int, fields: dict[str, Any]) -> None:
    job = make_job(lr=0.2, weight_decay=0.3, epsilon=1e-3, clip=0.01, **fields)
    state, *_ = train(engine, job, start(job), epochs)
    expected, *_ = train(ReferenceEngine(), job, start(job), epochs)
    np.testing.assert_allclose(state.logits, expected.logits, rtol=0, atol=3e-3)
    assert state.optimizer.mu[:, 4:].any() == ("model" not in fields)  # input-wise gates have four numbers each
    assert state.optimizer.mu[:, :4].any()


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_gradients_are_clipped_by_their_norm(engine: Engine, fire_rate: float) -> None:
    """A bound that every epoch is beyond, and an epsilon by which the length of a gradient counts."""
    options: dict[str, Any] = {"fire_rate": fire_rate, "lr": 0.2, "clip": 1e-3, "epsilon": 1e-3}
    job = make_job(clip_by="norm", **options)
    state, *_ = train(engine, job, start(job), 5)
    expected, *_ = train(ReferenceEngine(), job, start(job), 5)
    np.testing.assert_allclose(state.logits, expected.logits, rtol=0, atol=1e-4)
    entries, *_ = train(engine, make_job(**options), start(job), 5)
    assert np.abs(entries.logits - state.logits).max() > 0.1


@pytest.mark.parametrize(
    ("config", "soft", "hard"),
    [
        *exhaustive((presets.checkerboard(), 231.266, 256)),
        (presets.checkerboard(small=True), None, 256),
        (presets.game_of_life(), 105.844, 108),
        *exhaustive((presets.checkerboard_async(), 87.93, 96)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_papers_first_losses(any_engine: Engine, config: Config, soft: float | None, hard: int) -> None:
    """Losses at seed 23, as in the authors' notebook."""
    circuit = Circuit.initial(config.model, config.seed, config.initial)
    job = tasks.make_job(config, circuit)
    _, (row,), evaluation = train(any_engine, job, TrainState.initial(job), 1)
    if config.train.asynchronous:
        assert row.soft_loss == pytest.approx(soft, abs=0.005)  # published to two places
    elif soft is not None:  # of the small circuit they print none
        assert row.soft_loss == pytest.approx(soft, rel=tolerances.LOSS_RTOL)
    masks_differ = config.train.asynchronous  # an evaluation has masks of its own
    assert evaluation.train_hard_loss == hard or masks_differ
