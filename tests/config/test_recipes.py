"""Recipes: the fields that they change, and the tasks that they fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflogic.config import presets, recipes
from difflogic.config.customise import configure
from difflogic.config.dataset import Dataset
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.errors import ConfigError

TRAINING = ("train", "optimizer", "schedule", "initial", "hardening", "growth", "search", "pool")


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_paper_changes_nothing(preset: str) -> None:
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
def test_steps_follow_the_size_of_an_image(task: dict[str, object], steps: int) -> None:
    """15 for 16 cells, more for a larger image, unless the configuration sets them."""
    config = presets.get("colored-g")
    rows, columns = (int(str(task.get(side, 16))) for side in ("height", "width"))
    blank = config.with_(task={**task, "picture": ["." * columns] * rows})
    assert recipes.applied("robust", blank).task.steps == steps
    assert recipes.applied("paper", blank).task.steps == blank.task.steps


def test_large_image_is_trained_longer_and_hardened() -> None:
    """More than 2000 values: 25x27 cells in three channels, but not 20x33."""
    for rows, columns, expected in ((20, 33, (105, 0.0)), (25, 27, (420, 0.4))):
        task = {"height": rows, "width": columns, "loss_channels": 3, "picture": ["1" * columns] * rows}
        made = recipes.applied("robust", presets.lizard().with_(task=task))
        assert (made.search.begin, made.hardening.share) == expected


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_robust_changes_training_and_wiring_alone(preset: str) -> None:
    before = presets.get(preset)
    after = recipes.applied("robust", before)
    assert after.model.wiring_per_kernel
    assert after.train.epochs == before.train.epochs
    # Something decides what gates become: hardening while they are trained, or a search afterwards.
    assert bool(after.hardening.share) != bool(after.search.begin)
    assert 0 <= after.hardening.begin <= after.hardening.end < after.train.epochs
    assert after.search.begin < after.train.epochs
    usual = {
        "wiring_per_kernel": before.model.wiring_per_kernel,
        "all_round": False,
        "input_wise": False,
        "candidates": 1,
    }
    model = replace(after.model, **usual)
    same = replace(after, model=model, **{name: getattr(before, name) for name in TRAINING})
    assert same == before


@pytest.mark.parametrize(
    ("preset", "find", "expected"),
    [
        ("checkerboard", lambda c: (c.hardening.begin, c.hardening.end), {1: (0, 1), 100: (6, 24), 1000: (60, 240)}),
        ("checkerboard", lambda c: c.growth.until, {1000: (400,), 500: (200,), 9: (4,), 1: ()}),
        ("lizard", lambda c: c.search.begin, {3500: 105, 700: 21, 1: 1}),
    ],
    ids=["hardening", "growth", "search"],
)
def test_schedule_is_spread_over_the_epochs_of_a_run(preset, find, expected) -> None:
    """A board does not grow in so few epochs that a grid would have none."""
    runs = {epochs: presets.get(preset).with_(train={"epochs": epochs}) for epochs in expected}
    assert {epochs: find(recipes.applied("robust", config)) for epochs, config in runs.items()} == expected


def test_other_rules_than_life_see_more_boards_at_once() -> None:
    """128 of 3x3, or as many cells."""
    life = presets.get("game-of-life")
    assert recipes.applied("robust", life).train.batch == life.train.batch == 20
    other = life.with_(name="mine", task={"rule": "B36/S23"})
    assert recipes.applied("robust", other).train.batch == 128
    assert recipes.applied("robust", other.with_(task={"start": "random", "height": 16, "width": 16})).train.batch == 4


SAMPLES = Dataset.of(np.zeros((5, 4, 4, 2)), np.zeros((5, 4, 4, 2)))


@pytest.mark.parametrize(
    ("config", "like", "decided"),
    [
        (presets.checkerboard(), "checkerboard", "hardening"),
        (presets.checkerboard_async(), "checkerboard-async", "hardening"),
        (presets.lizard(), "lizard", "search"),
        (presets.lizard().with_(task={"damage_side": 3, "damage_steps": [4]}), None, "hardening"),
        (presets.colored_g(), "colored-g", "search"),
        (presets.of_samples(SAMPLES), None, "hardening"),
    ],
)
def test_recipe_is_chosen_by_the_task_and_not_by_a_name(config: Config, like: str | None, decided: str) -> None:
    mine = recipes.applied("robust", config.with_(name="mine"))
    assert bool(mine.hardening.share) == (decided == "hardening")
    assert bool(mine.search.begin) == (decided == "search")
    assert mine.model.wiring_per_kernel
    if like is not None:
        assert mine == recipes.applied("robust", presets.get(like)).with_(name="mine")


def test_fields_that_a_configuration_sets_stay() -> None:
    own = {"optimizer": {"lr": 0.3}, "hardening": {"share": 0.5, "begin": 7, "end": 9}}
    made = recipes.applied("robust", presets.lizard().with_(**own))
    assert (made.optimizer.lr, made.optimizer.epsilon, made.initial.logit) == (0.3, 1e-9, 9)
    assert (made.hardening.share, made.hardening.end, made.search.begin) == (0.5, 9, 0)


def test_all_round_needs_room_in_perception() -> None:
    lizard = presets.lizard()
    assert recipes.applied("robust", lizard).model.all_round
    hexagons = lizard.with_(model={"neighbourhood": "hex"})
    assert not recipes.applied("robust", hexagons).model.all_round


@pytest.mark.parametrize("task", [{"height": 7}, {"steps": 8}, {"loss_steps": [18, 20]}, {"start": "zeros"}])
def test_task_that_smaller_grids_cannot_prepare_does_not_grow(task: dict[str, Any]) -> None:
    config = recipes.applied("robust", presets.get("checkerboard").with_(task=task))
    assert (config.growth.until, config.hardening.share) == ((), 0.8)


def test_wrong_recipe_is_one_sentence() -> None:
    sentence = r"^Unknown recipe 'robsut' \(did you mean robust\?\): expected one of robust, paper"
    with pytest.raises(ConfigError, match=sentence):
        recipes.applied("robsut", presets.get("checkerboard"))


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
