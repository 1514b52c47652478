"""Training whose last epochs search the hard circuit."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices.open import Placement, open_engine
from difflogic.engine import job, search
from difflogic.engine.api import Engine
from difflogic.errors import CheckpointError, ConfigError
from difflogic.train import start
from difflogic.train.local_search import LocalSearchModel
from difflogic.train.stages import Training
from difflogic.train.trainer import Trainer
from tests.devices.test_race import LONG, Rivals
from tests.sections import sections
from tests.tasks import task_config
from tests.train.tiny import tiny_config


@pytest.fixture
def config() -> Config:
    return tiny_config(search={"begin": 4}, fire_rate=0.7, batch=1)


def test_run_trains_until_the_epoch_and_then_searches(config: Config, engine: Engine, tmp_path: Path) -> None:
    run = Trainer(config, engine).run(out=tmp_path / "run")
    first = Trainer(config, engine).run(epochs=4)
    assert [math.isnan(row.soft_loss) for row in run.metrics] == 4 * [False] + 8 * [True]
    state, before = run.state, first.state
    assert (state.epoch, state.optimizer.step) == (12, 4)
    for name in ("data_key", "train_key"):
        np.testing.assert_array_equal(getattr(state, name), getattr(before, name))
    np.testing.assert_array_equal(state.optimizer.mu, before.optimizer.mu)
    np.testing.assert_array_equal(np.sort(state.logits, axis=1), np.sort(before.logits, axis=1))
    assert (state.logits != before.logits).any()
    assert state.costs is not None
    assert state.costs.max() > 1


def test_search_is_the_same_on_every_engine(config: Config, engine: Engine) -> None:
    still = config.with_(optimizer={"lr": 0.0, "weight_decay": 0.0})
    ours, reference = (Trainer(still, each).run() for each in (engine, open_engine("reference")))
    assert ours.state.logits.tobytes() == reference.state.logits.tobytes()
    assert [row.hard_loss for row in ours.metrics] == [row.hard_loss for row in reference.metrics]


def test_search_is_evaluated_like_training(config: Config, engine: Engine) -> None:
    member = start.fresh(TrainRequest(config=config)).members[0]
    training = Training(Placement(engine), [member.job], [member.state])
    while training.advance(7) < 7:
        pass
    (judged,), (state,) = training.evaluate(), training.states()
    other = engine.open([job.make_job(config, member.circuit)], [state])
    assert (judged.hard_loss, judged.wrong_probes) == (other.evaluate()[0].hard_loss, other.evaluate()[0].wrong_probes)
    assert (judged.train_hard_loss, judged.values) == (judged.hard_loss, other.evaluate()[0].values)
    assert [row.epoch for row in training.fetch_metrics()[0]] == list(range(1, 8))


@pytest.mark.exhaustive
def test_search_solves_what_gradients_leave_wrong() -> None:
    picture = {"target": "picture", "picture": ["....", ".1..", "....", "...1"], "height": 4, "width": 4}
    task = picture | {"start": "seed", "steps": 3}
    fields = sections(task=task, epochs=200, batch=1, eval_interval=1, lr=0.0, weight_decay=0.0, search={"begin": 1})
    config = presets.get("checkerboard-small").with_(**fields)
    run = Trainer(config, open_engine("cpu")).run(stop_when_solved=1)
    assert run.metrics[0].hard_loss
    assert run.solved
    solved = run.state
    still = LocalSearchModel([job.make_job(config, run.circuit)], [solved], run.engine)
    still.train(3)
    assert still.states()[0].logits.tobytes() == solved.logits.tobytes()


@pytest.mark.parametrize(("begins", "decisions"), [(98, 1), (7, 0)])
def test_engines_are_compared_before_the_search_only(begins: int, decisions: int, monkeypatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, 0.5)
    rivals.train(search={"begin": begins}, **LONG)
    assert [*rivals.gpu.epochs, *rivals.cpu.epochs] == list(range(1, begins + 1))
    assert len(rivals.decisions) == len(rivals.heard) == decisions


def test_function_is_chosen_by_swapping_logits() -> None:
    logits = np.array([[3, 1, 2, *13 * [0]], [5, *14 * [0], 5], [0, 7, *14 * [0]]], dtype=np.float32)
    changed = search.chosen(logits, np.array([2, 15, 1]))
    assert changed.argmax(axis=1).tolist() == [2, 15, 1]
    assert changed[0].tolist() == [2, 1, 3, *13 * [0]]
    assert changed[1, 0] == 5
    assert 5 < changed[1, 15] < 5.00001
    assert changed[2].tolist() == logits[2].tolist()


def test_costs_rise_every_sixteen_rounds_if_little_is_repaired() -> None:
    assert all(search.costs_rise(epoch, 16) for epoch in range(1, 9))
    assert [epoch for epoch in range(1, 25) if search.costs_rise(epoch, 2)] == [8, 16, 24]
    assert [now for now in range(140, 150) if search.stuck(150, now)] == [148, 149]
    assert search.stuck(100, search.FEW)
    assert not search.stuck(100, search.FEW + 1)
    assert search.rounds(presets.get("lizard"), 1) == 16
    assert search.rounds(presets.get("checkerboard"), 32) == 1


@pytest.mark.parametrize("name", ["a pool", "damage"])
def test_task_that_cannot_be_searched_is_one_sentence(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^A search requires fresh initial states, .*: set search\.begin to 0"):
        task_config(name, search={"begin": 1})


def test_costs_of_another_size_are_refused(config: Config, engine: Engine) -> None:
    """Compiled code would read past their end."""
    member = start.fresh(TrainRequest(config=config)).members[0]
    state = replace(member.state, epoch=5, costs=np.ones((1, 1, 2), dtype=np.uint32))
    with pytest.raises(CheckpointError, match=r"costs must be uint32 \[1, 1, \d+\], as .*, got uint32 \[1, 1, 2\]"):
        Training(Placement(engine), [member.job], [state])
