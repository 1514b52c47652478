"""Early stopping: the losses and mismatches that end an attempt."""

import math
from dataclasses import replace

import pytest

from difflogic.config import presets, schedule
from difflogic.config.customise import configure
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.engine.api import EpochMetrics
from difflogic.runs.journal import Row
from difflogic.train import stalled

EPOCHS = 500
PLAIN = presets.checkerboard()
SEARCHED = PLAIN.with_(search={"begin": 40})
GROWING = PLAIN.with_(growth={"until": [60], "sides": [8], "steps": [10]})
"""An epoch of the smaller grid costs an eighth: a quarter of the cells, half of the steps."""
LOOK = 100


def rows(*losses: float) -> list[Row]:
    return [Row.of(EpochMetrics(epoch, loss), 0.0) for epoch, loss in enumerate(losses, 1)]


def falling(epochs: int, by: float = 0.97) -> list[float]:
    return [64 * by**epoch for epoch in range(epochs)]


def why(losses: list[float], config: Config = PLAIN, left: int = 10 * EPOCHS) -> str | None:
    return stalled.why(rows(*losses), left, EPOCHS, config)


@pytest.mark.parametrize(
    ("config", "look"),
    [
        (PLAIN, LOOK),
        (GROWING, 60),
        (SEARCHED, 80),
        (PLAIN.with_(search={"begin": 70}), LOOK),
        (PLAIN.with_(search={"begin": 1}), LOOK),
    ],
)
def test_first_look_is_early_and_not_before_the_first_stage_ends(config: Config, look: int) -> None:
    assert stalled.first_look(config, EPOCHS) == look


def test_attempt_does_not_end_before_its_first_look() -> None:
    assert why([64.0] * (LOOK - 1)) is None
    assert why([64.0] * LOOK) == "its soft loss hardly fell"


@pytest.mark.parametrize("share", [0.29, 0.31])
@pytest.mark.parametrize("config", [PLAIN, GROWING, PLAIN.with_(search={"begin": 70})])
def test_loss_of_a_cell_must_have_fallen_by_the_first_look(config: Config, share: float) -> None:
    look = stalled.first_look(config, EPOCHS)
    losses = [64.0] * 20 + [64 * share] * (look - 20)
    assert (why(losses, config) == "its soft loss hardly fell") == (share > 0.3)


def test_attempt_ends_when_it_made_no_progress_for_as_long_as_it_took_so_far() -> None:
    losses = [*falling(150), *[6.0] * 200]
    since = stalled.last_progress(rows(*losses), PLAIN)
    assert 110 < since <= 150
    assert why(losses[: 2 * since - 1]) is None
    assert why(losses[: 2 * since]) == f"it made no progress since epoch {since}"
    assert why(falling(350)) is None


def test_noise_is_averaged_and_the_lowest_loss_counts() -> None:
    losses = falling(100) + [2.4, 1.6] * 100
    assert why([*losses, *[1.2] * 10, *[2.4, 1.6] * 40]) is None
    assert why([*losses, *[1.9] * 10, *[2.4, 1.6] * 40]) is not None


@pytest.mark.parametrize(("fewest", "ends"), [(8, False), (9, True)])
def test_a_tenth_fewer_mismatches_are_progress(fewest: int, ends: bool) -> None:
    done = rows(*falling(100), *[6.0] * 150)
    done[90] = replace(done[90], hard_loss=10)
    done[200] = replace(done[200], hard_loss=fewest)
    assert (stalled.why(done, 10 * EPOCHS, EPOCHS, PLAIN) is not None) == ends


def test_search_ends_when_it_repairs_nothing() -> None:
    losses = falling(40, 0.9) + [math.nan] * 200
    done = [replace(row, hard_loss=5 if row.epoch < 60 else 4) for row in rows(*losses)]
    assert stalled.why(done[:119], 10 * EPOCHS, EPOCHS, SEARCHED) is None
    assert stalled.why(done[:120], 10 * EPOCHS, EPOCHS, SEARCHED) == "it made no progress since epoch 60"


def test_milestones_double() -> None:
    """Evaluations every 30 epochs, a first look at 80."""
    done = [replace(row, hard_loss=9 if row.epoch % 30 == 0 else None) for row in rows(*[1.0] * 700)]
    reached = [count for count in range(30, 701, 30) if stalled.is_milestone(done[:count], SEARCHED)]
    assert reached == [90, 180, 330, 660]


def test_search_from_the_start_has_no_loss_to_fall() -> None:
    done = [replace(row, hard_loss=600 - row.epoch) for row in rows(64.0, *[math.nan] * 499)]
    assert stalled.why(done, 10 * EPOCHS, EPOCHS, PLAIN.with_(search={"begin": 1})) is None


def test_epochs_of_a_smaller_grid_cost_less() -> None:
    """60 small epochs cost 7.5 of the whole task, and so do 7.5 more of these."""
    losses = [*falling(60, 0.85), *[640.0] * 10]
    since = stalled.last_progress(rows(*losses), GROWING)
    assert since == 60
    assert why(losses[:67], GROWING) is None
    assert why(losses[:68], GROWING) == "it made no progress since epoch 60"


def test_loss_and_mismatches_of_a_larger_grid_are_compared_by_the_cell() -> None:
    losses = [*falling(60, 0.85), *[64.0] * 20]
    assert stalled.last_progress(rows(*losses), GROWING) == 60
    done = [replace(row, hard_loss=10 if row.epoch <= 60 else 35) for row in rows(*losses)]
    assert stalled.last_progress(done, GROWING) == 61


def test_loss_that_is_not_finite_ends_the_attempt() -> None:
    assert why([*falling(LOOK), math.nan]) == "its soft loss is not finite"


@pytest.mark.parametrize(("left", "ends"), [(2 * LOOK + 1, True), (2 * LOOK, False), (LOOK, False)])
def test_attempt_continues_if_another_one_would_be_useless(left: int, ends: bool) -> None:
    assert (why([64.0] * LOOK, left=left) is not None) == ends


@pytest.mark.parametrize("left", [600, 700])
def test_attempt_continues_if_another_one_could_not_get_as_far(left: int) -> None:
    losses = [*falling(220), *[5.0] * 220]
    since = stalled.last_progress(rows(*losses), PLAIN)
    assert (why(losses, left=left) is not None) == (left - len(losses) >= since)


def test_search_of_a_parity_has_time() -> None:
    parity = configure(TrainRequest("game-of-life", rule="B1357/S1357")).config
    assert isinstance(parity, Config)
    assert stalled.first_look(schedule.attempt_of(parity, 1, parity.train.epochs), 3000) == 600
