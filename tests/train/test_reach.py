"""Targets that cannot be reached from an initial state, or not in the given steps."""

from typing import Any

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.engine.api import Engine
from difflogic.errors import ConfigError
from difflogic.train import reach
from difflogic.train.trainer import Trainer
from tests.train.diary import Diary

CORNERS = ("1.....1", ".......", "...1...", ".......", ".......", ".......", "1.....1")


def drawn(rows: tuple[str, ...], start: str = "seed", steps: int = 2, periodic: bool = False, **task: Any) -> Config:
    sides = {"height": len(rows), "width": len(rows[0])}
    asked = {"target": "picture", "picture": rows, "start": start, "steps": steps, **sides, **task}
    return presets.checkerboard(small=True).with_(model={"periodic": periodic}, task=asked)


def test_signal_of_one_cell_fills_a_square() -> None:
    told = reach.notice(drawn(CORNERS, periodic=True))
    assert told == (
        "In 2 steps a signal travels from the one cell to 5x5, so at least 4 of the 49 cells of the target stay "
        "wrong, whatever is learned: task.steps should be at least 3, with which an epoch takes 1.5 times as long."
    )
    assert reach.notice(drawn(CORNERS, periodic=True, steps=3)) is None


@pytest.mark.parametrize(("neighbourhood", "steps"), [("moore", 3), ("von-neumann", 5), ("hex", 4)])
def test_distance_of_a_corner_depends_on_the_neighbourhood(neighbourhood: str, steps: int) -> None:
    """Cells at (3, 3) differ from the others after 4 steps on a torus of hexagons, after 5 with four neighbours."""
    config = drawn(CORNERS, steps=steps, periodic=True).with_(model={"neighbourhood": neighbourhood})
    assert reach.notice(config) is None
    assert reach.notice(config.with_(task={"steps": steps - 1})) is not None


def test_signal_stays_on_its_line() -> None:
    one_row = {"picture": ["1..1..1"], "height": 1, "width": 7, "steps": 2}
    line = drawn(CORNERS, periodic=True).with_(model={"neighbourhood": "line"}, task=one_row)
    assert reach.notice(line) is None
    assert reach.notice(line.with_(task={"steps": 1})) is not None


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_preset_has_enough_steps(name: str) -> None:
    assert reach.notice(presets.get(name)) is None


def test_signal_of_the_border_begins_with_the_second_step() -> None:
    """After one step all cells of an empty grid are alike still: outside there is 0 as well."""
    middle = (".....", ".111.", ".111.", ".111.", ".....")
    told = [reach.notice(drawn(middle, "zeros", steps)) for steps in (1, 2)]
    assert told[0] is not None
    assert "to a depth of 0, so at least 9 of the 25 cells" in told[0]
    assert told[0].endswith("task.steps should be at least 2, with which an epoch takes 2 times as long.")
    assert told[1] is None


def test_first_compared_step_counts() -> None:
    told = reach.notice(drawn(CORNERS, periodic=True, steps=5, loss_steps=[2, 5]))
    assert told is not None
    assert told.endswith("the first of task.loss_steps should be at least 3.")


@pytest.mark.parametrize("start", ["zeros", "picture"])
def test_nothing_grows_from_identical_cells(start: str) -> None:
    picture = {"start_picture": ("1" * 7,) * 7} if start == "picture" else {}
    config = drawn(CORNERS, start, periodic=True, **picture)
    sentence = "^This target cannot grow from .* on a torus in any number of steps, because"
    with pytest.raises(ConfigError, match=sentence):
        reach.notice(config)
    assert reach.notice(config.with_(model={"periodic": False}, task={"steps": 9})) is None
    for colour in "1.":  # the same everywhere: a constant will do
        assert reach.notice(config.with_(task={"picture": (colour * 7,) * 7})) is None


def test_classes_hold_for_random_rules() -> None:
    """Cells of one class have the same state under a random rule of nine bits."""
    random = np.random.default_rng(5)
    for periodic in (True, False):
        for start in ("seed", "zeros"):
            config = drawn(CORNERS, start, periodic=periodic)
            for _ in range(20):
                table, state = random.integers(0, 2, 512), np.zeros((7, 7), np.int64)
                state[3, 3] = start == "seed"
                for classes, _ in zip(reach._partitions(config), range(6), strict=False):
                    assert all(len(set(state[classes == each])) == 1 for each in np.unique(classes))
                    wide = np.pad(state, 1, mode="wrap" if periodic else "constant")
                    parts = [wide[row : row + 7, column : column + 7] for row in range(3) for column in range(3)]
                    state = table[sum(part << place for place, part in enumerate(parts))]


def test_unreachable_target_is_refused_before_training(engine: Engine) -> None:
    listener = Diary()
    config = drawn(CORNERS, periodic=True).with_(train={"epochs": 1})
    Trainer(config, engine).run(observer=listener)
    assert listener.notices == [reach.notice(config)]
    with pytest.raises(ConfigError, match="This target cannot grow"):
        Trainer(config.with_(task={"start": "zeros"}), engine).run()
