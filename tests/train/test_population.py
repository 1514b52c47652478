"""Populations: each seed is the same as alone, bit for bit, also if the run was stopped and resumed."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from difflogic.config.schema import Config
from difflogic.core.interval import wilson_interval
from difflogic.engine.api import Engine
from difflogic.engine.job import Job, TrainState
from difflogic.engine.population import SequentialModels
from difflogic.errors import CheckpointError, ConfigError, LimitError, UsageError
from difflogic.model import netlist_json
from difflogic.runs import checkpoint
from difflogic.runs.journal import Row, read_rows
from difflogic.train.observer import Standing
from difflogic.train.run import Run
from difflogic.train.trainer import Trainer
from tests.train.diary import Diary
from tests.train.scripted import Scripted
from tests.train.tiny import EPOCHS, assert_same_run, every, state_of, tiny_config, untimed

M = 3
SEEDS = [23, 24, 25]


@pytest.fixture
def three(whole: Callable[[int], Run]) -> Run:
    """Three models, never stopped."""
    return whole(M)


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_each_member_is_the_same_seed_alone(fire_rate: float, engine: Engine) -> None:
    config = tiny_config(fire_rate=fire_rate)
    together = Trainer(config, engine).run(population=M)
    assert [member.seed for member in together.members] == SEEDS
    for member in together.members:
        alone = Trainer(config.with_(seed=member.seed), engine).run()
        assert state_of(alone.best) == state_of(member)
        assert untimed(alone.metrics) == untimed(member.metrics)
    assert len({member.state.logits.tobytes() for member in together.members}) == M


def test_a_population_of_one_is_a_single_run(finished: Run, config: Config, engine: Engine, tmp_path: Path) -> None:
    run = Trainer(config, engine).run(out=tmp_path / "one", population=1)
    names = [{child.name for child in path.iterdir()} for path in (run.path, finished.path)]
    assert names[0] == names[1]
    assert_same_run(run.path, finished.path)
    assert "seeds" not in json.loads((run.path / "manifest.json").read_text())


def test_population_writes_its_files(three: Run, engine: Engine) -> None:
    manifest = json.loads((three.path / "manifest.json").read_text())
    assert (manifest["status"], manifest["seed"], manifest["seeds"]) == ("complete", 23, SEEDS)
    assert manifest["result"] == three.summary.splitlines()[0]
    assert (three.path / "summary.txt").read_text() == three.summary
    assert Config.load(three.path / "config.toml") == tiny_config()
    with Image.open(three.path / "loss.png") as picture:
        assert picture.format == "PNG"
    x = three.member.job.probes
    netlist = netlist_json.load(three.path / "circuit.json")
    assert np.array_equal(netlist.rollout(x, 3), engine.rollout(three.circuit, x, 3, "hard"))
    assert state_of(checkpoint.load(three.path)) == state_of(three.best)
    saved = checkpoint.read(three.path)
    assert (saved.seeds, saved.best, saved.epoch) == (SEEDS, three.members.index(three.member), EPOCHS)


def test_metrics_have_a_row_for_each_epoch_and_seed(three: Run) -> None:
    lines = (three.path / "metrics.csv").read_text().splitlines()
    assert lines[0] == "seed,epoch,soft_loss,train_hard_loss,hard_loss,accuracy,best,gap,undecided,elapsed_s"
    expected = [[str(seed), str(epoch)] for epoch in range(1, EPOCHS + 1) for seed in SEEDS]
    assert [line.split(",")[:2] for line in lines[1:]] == expected
    rows = [json.loads(line) for line in (three.path / "metrics.jsonl").read_text().splitlines()]
    for row, line in zip(rows, lines[1:], strict=True):
        assert line == ",".join("" if row[name] is None else repr(row[name]) for name in lines[0].split(","))
    assert [untimed(each) for each in read_rows(three.path, SEEDS)] == [untimed(each.metrics) for each in three.members]


def test_rows_of_another_seed_are_refused(config: Config, one: Engine, tmp_path: Path) -> None:
    path = Trainer(config, one).run(epochs=5, out=tmp_path / "run", population=2).path
    journal = path / "metrics.jsonl"
    journal.write_text(journal.read_text().replace('"seed": 24, "epoch": 4', '"seed": 25, "epoch": 4'))
    with pytest.raises(CheckpointError, match="end at epoch 3, but its checkpoint is from epoch 5"):
        Trainer(config, one).run(resume=path)


def test_init_from_takes_the_best(three: Run, one: Engine) -> None:
    run = Trainer(tiny_config().with_(seed=5), Troupe(one, {})).run(init_from=three.path, population=2)
    for member in run.members:
        assert np.array_equal(member.state.logits, three.best.state.logits)
        assert np.array_equal(member.circuit.update_wires[0], three.best.circuit.update_wires[0])
    assert run.members[0].state.data_key.tolist() != run.members[1].state.data_key.tolist()


# what stops it, and what is told ----------------------------------------------------------------------

SOLVED = {23: {5: 0, 12: 4}, 24: {10: 0, 12: 0}, 25: {5: 3, 10: 3, 12: 7}}
"""Hard losses by seed and epoch, otherwise 9."""


class Troupe(Scripted):
    """A scripted engine for each seed."""

    def play(self, job: Job, state: TrainState) -> Scripted:
        actor = Scripted(self, SOLVED.get(job.config.seed, {}))
        return actor.play(job, state)


@pytest.mark.parametrize(("stop", "epochs"), [(0, 12), (1, 5), (2, 12)])
def test_stop_when_solved_counts_models(stop: int, epochs: int, config: Config, one: Engine) -> None:
    run = Trainer(config, Troupe(one, {})).run(population=M, stop_when_solved=stop)
    assert [member.state.epoch for member in run.members] == [epochs] * M


def test_summary_has_success_rate_and_interval(config: Config, one: Engine) -> None:
    run = Trainer(config, Troupe(one, {})).run(population=M)
    lines = run.summary.splitlines()
    solved = "Solved: right on all 4 evaluation grids (seed 24, epoch 12); 1 of 3 models are right at epoch 12."
    assert lines[0] == solved
    assert "Success rate:    33.3 % (1 of 3), 95 % Wilson interval 6.1 % to 79.2 %" in lines
    assert "First solved:    epoch 5 at best, 7.5 in the median" in lines
    assert "Lost again:      1 (solved at an earlier evaluation): seed 23" in lines
    assert "Hard loss:       0 at best, 4 in the median on the evaluation grids" in lines
    assert lines[-1] == "  seed 24: solved, first at epoch 10, 0 gates"
    assert any(line.startswith("Other sizes: ") for line in lines)
    assert (run.member.seed, run.solved) == (24, True)
    assert [member.first_solved for member in run.members] == [5, 10, None]


def test_summary_without_a_solved_model(config: Config, one: Engine) -> None:
    run = Trainer(config, Scripted(one, {5: 3})).run(epochs=5)
    assert run.summary.startswith("Not solved: 3 wrong cells on all 4 evaluation grids (epoch 5).")
    run = Trainer(config, Troupe(one, {})).run(epochs=4, population=M)
    assert run.summary.splitlines()[0] == (
        "Not solved: 9 wrong cells on all 4 evaluation grids (seed 23, epoch 4); 0 of 3 models are right at epoch 4."
    )
    assert "solved, first" not in run.summary


def test_observer_receives_metrics_of_all_models(config: Config, one: Engine) -> None:
    diary = Diary()
    Trainer(config, Troupe(one, {})).run(population=M, observer=every(6, diary))
    assert diary.began_with is not None
    assert diary.began_with.population == M
    assert [(each.epoch, each.solved) for each in diary.standings] == [(1, 0), (5, 1), (6, 1), (10, 1), (12, 1)]
    last = diary.standings[-1]
    assert last.seeds == tuple(SEEDS)
    assert last.soft_losses == (12.0, 12.0)
    assert [row.accuracy for row in last.judged if row is not None] == [1 - 4 / 120, 1.0, 1 - 7 / 120]


def test_losses_that_are_not_finite_are_left_out() -> None:
    rows = [Row(1, loss, None, None, None, None, 0.0, False) for loss in (3.0, math.nan, 1.0)]
    assert Standing((1, 2, 3), tuple(rows), (None,) * 3).soft_losses == (1.0, 2.0)
    assert all(math.isnan(loss) for loss in Standing((1,), (rows[1],), (None,)).soft_losses)


def test_skipped_epochs_name_their_seeds(config: Config, one: Engine) -> None:
    class Skips(Troupe):
        def play(self, job: Job, state: TrainState) -> Scripted:
            actor = super().play(job, state)
            actor.skipped = (7, 9) if job.config.seed != 24 else ()
            return actor

    diary = Diary()
    Trainer(config, Skips(one, {})).run(population=M, observer=diary)
    assert diary.notices == [
        "The gradient of seed 23, 25 was not finite in 2 epochs, from 7 to 9: these optimiser steps were skipped."
    ]


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (16, 24, 0.4671, 0.8203)],
)
def test_wilson_interval(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


def test_interval_ends_exactly_if_none_or_all_succeed() -> None:
    assert [(wilson_interval(0, n)[0], wilson_interval(n, n)[1]) for n in (3, 200, 777)] == [(0.0, 1.0)] * 3


# one after another ------------------------------------------------------------------------------------


def test_engine_trains_models_one_by_one(config: Config, one: Engine) -> None:
    troupe = Troupe(one, {})
    run = Trainer(config, troupe).run(population=2)
    actors = [Scripted(one, {}) for _ in range(2)]
    pairs = zip(actors, run.members, strict=True)
    models = SequentialModels([actor.play(member.job, member.state) for actor, member in pairs])
    assert models.epochs_per_call() == 1
    models.train(2)
    assert [actor.calls for actor in actors] == [[2], [2]]
    assert [[row.epoch for row in rows] for rows in models.fetch_metrics()] == [[13, 14]] * 2
    models.close()
    assert all(actor.closed for actor in actors)


def test_model_that_cannot_be_opened_closes_the_others(config: Config, one: Engine) -> None:
    actors: list[Scripted] = []

    class Small(Scripted):
        def play(self, job: Job, state: TrainState) -> Scripted:
            if len(actors) == 2:
                raise LimitError("There is room for two.")
            actors.append(Scripted(self, {}))
            return actors[-1].play(job, state)

    with pytest.raises(LimitError, match="room for two"):
        Trainer(config, Small(one, {})).run(population=M)
    assert [actor.closed for actor in actors] == [True, True]


# bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("population", [0, -2, 1.5])
def test_population_is_a_positive_number(population: int, config: Config, one: Engine, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"population. must be an integer between 1 and 2147483648, got {population}"):
        Trainer(config, one).run(population=population, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("batch", "population", "fits"), [(3, 2**31, r"train at most (\d+)"), (2**31, 1, "smaller grid, batch")]
)
def test_training_beyond_memory_says_what_fits(
    batch: int, population: int, fits: str, config: Config, engine: Engine, tmp_path: Path
) -> None:
    needed = r"needs (?:at least|about) \d+\.\d GB.*, but this machine has .* "
    with pytest.raises(LimitError, match=("One model " if population == 1 else "") + needed + fits):
        Trainer(config.with_(train={"batch": batch}), engine).run(population=population, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_population_beyond_the_last_seed_is_refused(config: Config, one: Engine) -> None:
    with pytest.raises(ConfigError, match="seed must be an integer between 0 and 4294967295, got 4294967296"):
        Trainer(config.with_(seed=2**32 - 1), one).run(population=2)


def test_more_solutions_than_models_are_refused(config: Config, one: Engine, tmp_path: Path) -> None:
    text = r"is a number of models: expected at most 2, the population, got 3"
    with pytest.raises(UsageError, match=text):
        Trainer(config, one).run(population=2, stop_when_solved=3, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    Trainer(config, one).run(epochs=1, population=2, out=tmp_path / "run")
    with pytest.raises(UsageError, match=text):
        Trainer(config, one).run(resume=tmp_path / "run", stop_when_solved=3)


def test_resume_keeps_the_population(config: Config, one: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not with out, init_from or population"):
        Trainer(config, one).run(resume=tmp_path, population=2)
