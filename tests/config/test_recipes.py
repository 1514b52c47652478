"""Recipes: what they change, and for whom they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from difflogic.config import presets, recipes
from difflogic.config.customise import configure
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.errors import ConfigError

TRAINING = ("train", "optimizer", "schedule", "initial", "hardening", "growth", "search", "pool")


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_the_paper_changes_nothing(preset: str) -> None:
    assert recipes.applied("paper", presets.get(preset)) == presets.get(preset)


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        ({}, 15),
        ({"height": 8, "width": 12}, 15),
        ({"height": 24, "width": 20}, 23),
        ({"height": 32, "width": 32, "steps": 40}, 40),
        ({"height": 32, "width": 32, "loss_steps": [12, 15]}, 15),
    ],
)
def test_steps_follow_the_size_of_a_picture(task: dict[str, object], steps: int) -> None:
    """15 for 16 cells: more where it is larger, unless somebody said how many."""
    config = presets.get("colored-g")
    rows, columns = (int(str(task.get(side, 16))) for side in ("height", "width"))
    blank = config.with_(task={**task, "picture": ["." * columns] * rows})
    assert recipes.applied("robust", blank).task.steps == steps
    assert recipes.applied("paper", blank).task.steps == blank.task.steps


@pytest.mark.parametrize("preset", recipes.ROBUST)
def test_robust_changes_training_and_wiring_alone(preset: str) -> None:
    before = presets.get(preset)
    after = recipes.applied("robust", before)
    assert after.model.wiring_per_kernel
    assert after.train.epochs == before.train.epochs
    # Something decides what gates become: hardening while they are trained, or a search afterwards.
    assert bool(after.hardening.share) != bool(after.search.begin)
    assert 0 <= after.hardening.begin <= after.hardening.end < after.train.epochs
    assert after.search.begin < after.train.epochs
    model = replace(after.model, wiring_per_kernel=False, all_round=False)
    same = replace(after, model=model, **{name: getattr(before, name) for name in TRAINING})
    assert same == before


@pytest.mark.parametrize(
    ("preset", "find", "expected"),
    [
        ("checkerboard", lambda c: (c.hardening.begin, c.hardening.end), {1: (0, 1), 100: (6, 24), 1000: (60, 240)}),
        ("checkerboard", lambda c: c.growth.until, {1000: (400,), 500: (200,), 9: (4,), 1: ()}),
        ("lizard", lambda c: c.search.begin, {3500: 700, 700: 140, 1: 1}),
    ],
    ids=["hardening", "growth", "search"],
)
def test_it_is_spread_over_the_epochs_that_a_run_has(
    preset: str, find: Callable[[Config], Any], expected: dict[int, Any]
) -> None:
    """A board does not grow in so few epochs that a grid would have none."""
    runs = {epochs: presets.get(preset).with_(train={"epochs": epochs}) for epochs in expected}
    assert {epochs: find(recipes.applied("robust", config)) for epochs, config in runs.items()} == expected


def test_other_rules_than_life_see_more_boards_at_once() -> None:
    life = presets.get("game-of-life")
    assert recipes.applied("robust", life).train.batch == life.train.batch == 20
    assert recipes.applied("robust", life.with_(task={"rule": "B36/S23"})).train.batch == 128


@pytest.mark.parametrize("task", [{"height": 7}, {"steps": 8}, {"loss_steps": [18, 20]}, {"start": "zeros"}])
def test_a_task_that_smaller_grids_cannot_prepare_does_not_grow(task: dict[str, Any]) -> None:
    config = recipes.applied("robust", presets.get("checkerboard").with_(task=task))
    assert (config.growth.until, config.hardening.share) == ((), 0.8)


def test_what_cannot_be_is_one_sentence() -> None:
    with pytest.raises(
        ConfigError, match=r"^There is no recipe 'robsut' \(did you mean robust\?\): expected one of robust, paper"
    ):
        recipes.applied("robsut", presets.get("checkerboard"))
    with pytest.raises(ConfigError, match=r"^The recipe robust is made for the presets .*, not for 'mine': "):
        recipes.applied("robust", presets.get("checkerboard").with_(name="mine"))


def test_presets_are_trained_robustly_unless_the_request_says_otherwise() -> None:
    board = presets.checkerboard()
    for request, recipe, config in [
        (TrainRequest("checkerboard"), "robust", recipes.applied("robust", board)),
        (TrainRequest("checkerboard", recipe="paper"), "paper", board),
        (TrainRequest(config=board), "paper", board),
        (TrainRequest(config=board, recipe="robust"), "robust", recipes.applied("robust", board)),
    ]:
        made = configure(request)
        assert (made.request.recipe, made.request.config, made.config) == (recipe, config, config)
