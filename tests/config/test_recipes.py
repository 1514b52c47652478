"""Recipes: what they change, and for whom they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from difflogic.config import presets, recipes
from difflogic.errors import ConfigError

TRAINING = ("train", "optimizer", "schedule", "initial", "hardening", "growth", "search", "pool")


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_the_paper_changes_nothing(preset: str) -> None:
    assert recipes.applied("paper", presets.get(preset)) == presets.get(preset)


@pytest.mark.parametrize("preset", recipes.ROBUST)
def test_robust_changes_training_and_wiring_alone(preset: str) -> None:
    before = presets.get(preset)
    after = recipes.applied("robust", before)
    assert after.model.wiring_per_kernel
    assert 0 < after.hardening.share <= 1
    assert 0 < after.hardening.begin < after.hardening.end < after.train.epochs == before.train.epochs
    model = replace(after.model, wiring_per_kernel=False, all_round=False)
    same = replace(after, model=model, **{name: getattr(before, name) for name in TRAINING})
    assert same == before


def test_hardening_is_spread_over_the_epochs_that_a_run_has() -> None:
    short, long = (
        recipes.applied("robust", presets.get("checkerboard").with_(train={"epochs": epochs})).hardening
        for epochs in (100, 1000)
    )
    assert (short.begin, short.end) == (10, 36)
    assert (long.begin, long.end) == (100, 360)
    assert recipes.applied("robust", presets.get("checkerboard").with_(train={"epochs": 1})).hardening.end == 1


def test_the_learning_rate_falls_in_the_epochs_that_a_run_has() -> None:
    falls = [
        (schedule.share < 1, schedule.begin, schedule.end)
        for schedule in (
            recipes.applied("robust", presets.get("lizard").with_(train={"epochs": epochs})).schedule
            for epochs in (3500, 700, 1)
        )
    ]
    assert falls == [(True, 2000, 2800), (True, 400, 560), (True, 1, 2)]


def test_the_lizard_is_searched_at_the_end_of_the_epochs_that_a_run_has() -> None:
    searched = [
        recipes.applied("robust", presets.get("lizard").with_(train={"epochs": epochs})).search.begin
        for epochs in (3500, 700, 1)
    ]
    assert searched == [2000, 400, 1]


def test_a_board_grows_in_the_epochs_that_a_run_has() -> None:
    """Not in so few that a grid would have none."""
    until = [
        recipes.applied("robust", presets.get("checkerboard").with_(train={"epochs": epochs})).growth.until
        for epochs in (1000, 500, 9, 3)
    ]
    assert until == [(120, 200), (60, 100), (1, 2), ()]


@pytest.mark.parametrize("task", [{"height": 10}, {"steps": 12}, {"loss_steps": [18, 20]}, {"start": "zeros"}])
def test_a_task_that_smaller_grids_cannot_prepare_does_not_grow(task: dict[str, Any]) -> None:
    config = recipes.applied("robust", presets.get("checkerboard").with_(task=task))
    assert (config.growth.until, config.hardening.share) == ((), 0.8)


def test_what_cannot_be_is_one_sentence() -> None:
    with pytest.raises(
        ConfigError, match=r"^There is no recipe 'robsut' \(did you mean robust\?\): expected one of paper"
    ):
        recipes.applied("robsut", presets.get("checkerboard"))
    with pytest.raises(ConfigError, match=r"^The recipe robust is made for the presets .*, not for 'mine': "):
        recipes.applied("robust", presets.get("checkerboard").with_(name="mine"))
