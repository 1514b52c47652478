"""Epochs of evaluations, and the grids through which a run grows."""

from typing import Any

import pytest

from difflogic.config import presets, schedule
from difflogic.config.schema import Config
from difflogic.errors import ConfigError
from tests.train.tiny import tiny_config

GROWTH = {"until": (4, 7), "sides": (3, 4), "steps": (1, 2)}


@pytest.fixture
def config() -> Config:
    """3x3 cells and a step until epoch 4, 4x4 and two until epoch 7, then 5x6 and three."""
    return tiny_config(growth=GROWTH, initial={"noise": 0.5}, fire_rate=0.7)


def test_evaluations_follow_the_schedule() -> None:
    assert [epoch for epoch in range(1, 22) if schedule.is_evaluated(epoch, 10)] == [1, 10, 20]
    stops, epoch = [], 0
    while epoch < 23:
        epoch = schedule.next_stop(epoch, 23, 10)
        stops.append(epoch)
    assert stops == [1, 10, 20, 23]


def test_epochs_have_the_cells_of_their_stage(config: Config) -> None:
    assert [schedule.cells(config, epoch) for epoch in (1, 4, 5, 7, 8)] == [9, 9, 16, 16, 30]


def test_stage_is_an_ordinary_configuration(config: Config) -> None:
    small, whole = schedule.at_stage(config, 1), schedule.at_stage(config, 2)
    assert (small.task.height, small.task.width, small.task.steps) == (4, 4, 2)
    assert whole == config.with_(growth=dict.fromkeys(GROWTH, ()))
    assert small.with_(task=whole.task) == whole


@pytest.mark.parametrize(
    ("growth", "sentence"),
    [
        ({"sides": [3]}, "growth.until, growth.sides and growth.steps must have equal lengths, one"),
        ({"until": [7, 4]}, "growth.until must be ascending epochs between 1 and 2147483648, got [7, 4]."),
        ({"sides": [3, 6]}, "Each of growth.sides must be at least 3 and at most that of the task, 5, got [3, 6]."),
        ({"steps": [0, 2]}, "Each of growth.steps must be at least 1 and at most that of the task, 3, got [0, 2]."),
    ],
)
def test_wrong_growth_is_one_sentence(growth: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tiny_config(growth={**GROWTH, **growth})
    assert str(refused.value).startswith(sentence)


def test_neither_an_image_nor_a_pool_grows() -> None:
    sentence = (
        "[growth] needs a board or rule from random states, no loss_steps, damage, faults or pool: omit [growth]."
    )
    for config, pool in ((presets.get("lizard"), 0), (tiny_config(), 3)):
        with pytest.raises(ConfigError) as refused:
            config.with_(growth=GROWTH, pool={"size": pool})
        assert str(refused.value) == sentence
