"""Training that begins on a smaller grid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from difflogic import presets
from difflogic.config import Config
from difflogic.engine import Engine
from difflogic.errors import ConfigError
from difflogic.train import growth, start, tasks
from difflogic.train.loop import Trainer
from tests.train.test_contest import LONG, Listener, paced_pair
from tests.train.tiny import assert_same_run, tiny_config

GROWTH = {"growth_until": (4, 7), "growth_sides": (3, 4), "growth_steps": (1, 2)}


@pytest.fixture
def config() -> Config:
    return tiny_config(**GROWTH, logit_noise=0.5, fire_rate=0.7)


def test_the_stage_of_an_epoch(config: Config) -> None:
    assert [growth.stage_of(config.train, epochs) for epochs in (0, 3, 4, 6, 7, 99)] == [0, 0, 1, 1, 2, 2]
    assert [growth.cells(config, epoch) for epoch in (1, 4, 5, 7, 8)] == [9, 9, 16, 16, 30]


def test_a_stage_is_an_ordinary_training(config: Config) -> None:
    small, whole = growth.at_stage(config, 1), growth.at_stage(config, 2)
    assert (small.task.height, small.task.width, small.task.steps) == (4, 4, 2)
    assert whole == config.with_(train=dict.fromkeys(GROWTH, ()))
    assert small.with_(task=whole.task) == whole


def test_every_stage_goes_on_where_the_last_one_was(config: Config, engine: Engine) -> None:
    """The same as a model for each stage, opened by hand."""
    member = start.fresh(config, None).members[0]
    state, losses = member.state, []
    for stage, epochs in enumerate((4, 3, 5)):
        model = engine.open_model(tasks.make_job(growth.at_stage(config, stage), member.circuit), state)
        model.train(epochs)
        losses += [row.soft_loss for row in model.drain()]
        state, judged = model.to_cpu(), model.evaluate()
        model.close()
    run = Trainer(config, engine).run()
    assert [row.soft_loss for row in run.metrics] == losses
    assert run.state.logits.tobytes() == state.logits.tobytes()
    assert (run.metrics[-1].hard_loss, run.metrics[-1].train_hard_loss) == (judged.hard_loss, judged.train_hard_loss)


def test_it_is_judged_on_the_grid_that_it_grows_to(config: Config, engine: Engine) -> None:
    """With a learning rate of 0 the circuit is always the same, and so is the verdict on it."""
    still = config.with_(train={"lr": 0.0, "eval_interval": 1})
    verdicts = {row.hard_loss for row in Trainer(still, engine).run().metrics}
    assert verdicts == {row.hard_loss for row in Trainer(growth.at_stage(still, 2), engine).run().metrics}
    assert len(verdicts) == 1


@pytest.mark.parametrize("population", [1, 2])
def test_a_run_resumed_within_a_stage_is_the_run_that_never_stopped(
    config: Config, engine: Engine, population: int, tmp_path: Path
) -> None:
    whole, parts = (tmp_path / name for name in ("whole", "parts"))
    one = Trainer(config, engine).run(out=whole, population=population)
    Trainer(config, engine).run(epochs=2, out=parts, population=population)
    for epochs in (5, 7, 12):
        other = Trainer(config, engine).run(epochs=epochs, resume=parts)
    for ours, theirs in zip(one.members, other.members, strict=True):
        assert ours.state.logits.tobytes() == theirs.state.logits.tobytes()
        assert [replace(row, elapsed_s=0) for row in ours.metrics] == [
            replace(row, elapsed_s=0) for row in theirs.metrics
        ]
    if population == 1:
        assert_same_run(whole, parts)


def test_engines_compete_for_the_whole_grid() -> None:
    contest, gpu, cpu, decisions = paced_pair(1.0, 0.5)
    listener = Listener()
    Trainer(tiny_config(**GROWTH, **LONG), contest).run(observer=listener)
    assert gpu.epochs[:11] == list(range(1, 12))  # the small grids, then the first heat
    assert cpu.epochs == list(range(12, 101))
    assert len(decisions) == len(listener.heard) == 1


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ({"growth_sides": [3]}, "train: growth_until, growth_sides and growth_steps need a number for each"),
        ({"growth_until": [7, 4]}, "growth_until must be ascending epochs between 1 and 2147483648, got [7, 4]."),
        ({"growth_sides": [3, 6]}, "Each of growth_sides must be between 3 and 5, the task's own, got [3, 6]."),
        ({"growth_steps": [0, 2]}, "Each of growth_steps must be between 1 and 3, the task's own, got [0, 2]."),
        ({"pool": 3}, "A grid grows only with a random start, and without picture, loss_steps, damage and pool."),
    ],
)
def test_a_growth_that_cannot_be_is_one_sentence(train: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tiny_config(**{**GROWTH, **train})
    assert str(refused.value).startswith(sentence.removeprefix("train: "))


def test_a_picture_does_not_grow() -> None:
    with pytest.raises(ConfigError, match=r"^A grid grows only with a random start, "):
        presets.get("lizard").with_(train=GROWTH)
