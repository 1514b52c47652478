"""Attempts that share one budget of epochs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from difflogic import presets
from difflogic.config import Config
from difflogic.engine import Engine, EpochMetrics
from difflogic.errors import UsageError
from difflogic.train import restarts
from difflogic.train.journal import Row
from difflogic.train.loop import Run, Trainer
from difflogic.train.observer import Observer
from difflogic.train.placement import open_engine
from difflogic.train.session import GiveUp

EPOCHS = 500
PLAIN = presets.checkerboard()
SEARCHED = PLAIN.with_(train={"hardening": 0.8, "harden_from": 101, "harden_to": 400, "settle_from": 400})
GROWING = PLAIN.with_(train={"growth_until": [60, 100], "growth_sides": [8, 12], "growth_steps": [9, 14]})


def rows(*losses: float) -> list[Row]:
    return [Row.of(EpochMetrics(epoch, loss), 0.0) for epoch, loss in enumerate(losses, 1)]


def falling(epochs: int, by: float = 0.997) -> list[float]:
    return [64 * by**epoch for epoch in range(epochs)]


@pytest.mark.parametrize("epochs", [1, 50, 99])
def test_nothing_stalls_before_a_fifth_of_the_epochs(epochs: int) -> None:
    assert not restarts.is_stalled(rows(*[64.0] * epochs), EPOCHS, EPOCHS, PLAIN)


def test_a_flat_loss_stalls_and_a_falling_one_does_not() -> None:
    assert restarts.is_stalled(rows(*[64.0] * 100), EPOCHS, EPOCHS, PLAIN)
    assert restarts.is_stalled(rows(*falling(100, 0.98), *[9.0] * 60), EPOCHS, EPOCHS, PLAIN)
    assert not restarts.is_stalled(rows(*falling(100)), EPOCHS, EPOCHS, PLAIN)
    assert not restarts.is_stalled(rows(*falling(299)), EPOCHS, EPOCHS, PLAIN)


def test_a_small_loss_may_rise_again() -> None:
    """Hardening does that."""
    assert not restarts.is_stalled(rows(*falling(150, 0.95), *[0.1] * 60, *[1.0] * 60), EPOCHS, EPOCHS, PLAIN)


@pytest.mark.parametrize(
    ("losses", "stalled"),
    [
        ([16] * 50 + [9] * 10, False),
        ([16] * 50 + [11] * 10, True),
        ([16] * 50 + [11] * 9, False),  # too early to say
        ([16] * 50 + [9] * 10 + [36] * 30 + [22] * 10 + [64] * 29, False),
        ([16] * 50 + [9] * 10 + [36] * 30 + [23] * 10, True),
        ([16] * 50 + [9] * 10 + [36] * 30 + [22] * 10 + [64] * 30, True),
        ([16] * 50 + [9] * 10 + [36] * 30 + [22] * 10 + [64] * 20 + [39] * 10, False),
    ],
)
def test_the_loss_of_a_cell_must_have_fallen_on_every_grid(losses: list[float], stalled: bool) -> None:
    assert restarts.is_stalled(rows(*losses), EPOCHS, EPOCHS, GROWING) == stalled


@pytest.mark.parametrize(("epochs", "stalled"), [(249, False), (250, True)])
def test_what_has_grown_and_is_late_is_given_up(epochs: int, stalled: bool) -> None:
    assert restarts.is_stalled(rows(*falling(epochs, 0.98)), EPOCHS, EPOCHS, GROWING) == stalled


@pytest.mark.parametrize(
    ("losses", "stalled"),
    [
        ([12.7] * 100, False),
        ([12.9] * 100, True),
        ([12.9] * 99, False),  # too early to say
        ([64] * 90 + [12.7] * 10 + [64] * 250, False),  # later losses do not matter
        ([12.7] * 99 + [math.nan], True),
    ],
)
def test_what_ends_with_a_search_is_judged_once(losses: list[float], stalled: bool) -> None:
    """By 512 values, of 2 samples of 16x16 cells."""
    assert restarts.is_stalled(rows(*losses), EPOCHS, EPOCHS, SEARCHED) == stalled


def test_a_schedule_that_ends_with_a_search_shrinks_and_others_are_cut_short() -> None:
    alone = restarts.attempt_of(SEARCHED, 1, 250)
    assert alone.seed == restarts.seed_of(SEARCHED.seed, 1)
    train = alone.train
    assert (train.epochs, train.harden_from, train.harden_to, train.settle_from) == (250, 51, 200, 200)
    assert restarts.attempt_of(SEARCHED, 0, EPOCHS) == SEARCHED
    cut = restarts.attempt_of(GROWING, 2, 250)
    assert cut == GROWING.with_(seed=restarts.seed_of(GROWING.seed, 2), train={"epochs": 250})


def test_what_is_late_or_not_finite_is_given_up() -> None:
    assert restarts.is_stalled(rows(*falling(300)), EPOCHS, EPOCHS, PLAIN)
    assert restarts.is_stalled(rows(*falling(100), math.nan), EPOCHS, EPOCHS, PLAIN)


@pytest.mark.parametrize(("left", "stalled"), [(201, True), (200, False), (100, False)])
def test_nothing_is_given_up_where_no_other_attempt_could_be_of_use(left: int, stalled: bool) -> None:
    assert restarts.is_stalled(rows(*[64.0] * 100), left, EPOCHS, PLAIN) == stalled


def test_every_attempt_has_a_seed_of_its_own() -> None:
    seeds = [restarts.seed_of(seed, attempt) for seed in range(9) for attempt in range(5)]
    assert seeds[::5] == list(range(9))
    assert len(set(seeds)) == 45
    assert all(0 <= seed < 2**32 for seed in seeds)


def flattened(config: Config) -> Config:
    """With a learning rate of 0 and always the same start the loss never changes."""
    return config.with_(task={"start": "zeros"}, train={"lr": 0.0, "epochs": 100, "eval_interval": 5})


@pytest.fixture(scope="module")
def engine() -> Engine:
    """One is enough: attempts know nothing of engines."""
    return open_engine("cpu")


def attempts(config: Config, engine: Engine, number: int, population: int, out: Path) -> restarts.Attempts:
    def attempt(own: Config, folder: Path | None, give_up: GiveUp | None) -> Run:
        return Trainer(own, engine).run(out=folder, population=population, stop_when_solved=1, give_up=give_up)

    return restarts.train(config, number, population, out, attempt, Observer())


@pytest.mark.parametrize("population", [1, 2])
def test_attempts_share_the_epochs(population: int, config: Config, engine: Engine, tmp_path: Path) -> None:
    flat = flattened(config)
    done = attempts(flat, engine, 2, population, tmp_path / "run")
    lengths = [run.state.epoch * population for run in done.runs]
    assert lengths == {1: [20, 20, 60], 2: [30, 30, 40]}[population]  # two means of 10 epochs must not overlap
    assert done.epochs == sum(lengths) == 100
    assert [run.interrupted for run in done.runs] == [None] * 3
    told = json.loads((tmp_path / "run" / restarts.NAME).read_text())
    assert [each["folder"] for each in told["attempts"]] == ["attempt-1", "attempt-2", "attempt-3"]
    assert [each["seed"] for each in told["attempts"]] == [restarts.seed_of(config.seed, n) for n in range(3)]
    manifest = json.loads((tmp_path / "run" / "attempt-1" / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    circuits = {(tmp_path / "run" / f"attempt-{n}" / "circuit.json").read_bytes() for n in (1, 2, 3)}
    assert len(circuits) == 3


def test_an_attempt_is_what_it_would_be_alone(config: Config, engine: Engine, tmp_path: Path) -> None:
    flat = flattened(config)
    second = attempts(flat, engine, 1, 1, tmp_path / "run").last
    alone = Trainer(second.config, engine).run()
    assert second.state.logits.tobytes() == alone.state.logits.tobytes()
    assert [row.soft_loss for row in second.metrics] == [row.soft_loss for row in alone.metrics]


@pytest.mark.parametrize(
    ("number", "population", "sentence"),
    [
        (5, 1, "5 restarts share 500 epochs, but no run is given up before epoch 100: give at most 4 restarts."),
        (-1, 1, "--restarts must be a whole number of at least 0, got -1."),
        (1, 6, "With restarts, 500 epochs are shared by all 6 models, 83 each, but one useful run takes 100: "
               "give a smaller population, or more epochs."),
    ],
)  # fmt: skip
def test_a_budget_that_is_too_small_is_refused(number: int, population: int, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        restarts.check(PLAIN, number, population)
    assert str(refused.value) == sentence
