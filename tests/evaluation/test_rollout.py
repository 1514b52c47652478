"""Rollouts far from training: any grid, asynchronous, damaged, in stretches; on every engine, to the bit."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.config.resized import resized
from difflogic.core import prng
from difflogic.engine import job
from difflogic.engine.api import Engine
from difflogic.engine.events import draw_corners
from difflogic.errors import ConfigError, DataError
from difflogic.evaluation import rehearsal, rollout
from difflogic.evaluation.rollout import DAMAGE_STREAM, FIRE_STREAM, DamagePlan, evenly, play
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests.evaluation.pass_on import keeper_config
from tests.random_circuits import bits, circuits, random_circuit

KEY = prng.key_from_seed(11)


def one_by_one(
    circuit: Circuit, start: np.ndarray, steps: int, fire_rate: float, damage: DamagePlan | None
) -> np.ndarray:
    """The same by its definition: a step of the reference, cell by cell a draw, a square of zeros."""
    fire, place = prng.fold_in(KEY, FIRE_STREAM), prng.fold_in(KEY, DAMAGE_STREAM)
    states = [_damaged(start.astype(np.uint8), damage, place, 0)]
    for step in range(1, steps + 1):
        new = ReferenceEngine().rollout(circuit, states[-1], 1, "hard")[-1].astype(np.uint8)
        if fire_rate < 1:
            fire, sub = prng.split(fire)
            fires = prng.uniform(sub, (*start.shape[1:3], 1)) <= np.float32(fire_rate)
            new = np.where(fires, new, states[-1])
        states.append(_damaged(new, damage, place, step))
    return np.stack(states)


def _damaged(state: np.ndarray, damage: DamagePlan | None, key: prng.Key, step: int) -> np.ndarray:
    state = state.copy()
    if damage is None or step not in damage.steps:
        return state
    batch, height, width = state.shape[:3]
    for sample in range(batch):
        row, column = (height - damage.side) // 2, (width - damage.side) // 2
        if damage.place == "random":
            row, column = draw_corners(prng.fold_in(key, step), 1, batch, height, width)[0, sample]
        elif damage.place != "centre":
            row, column = damage.place
        for y in range(max(0, row), min(height, row + damage.side)):
            for x in range(max(0, column), min(width, column + damage.side)):
                state[sample, y, x] = 0
    return state


@given(
    circuit=circuits(),
    height=st.integers(3, 9),
    width=st.integers(3, 9),
    batch=st.integers(1, 3),
    steps=st.integers(1, 7),
    fire_rate=st.sampled_from([1.0, 0.6]),
    damage=st.none()
    | st.builds(
        DamagePlan,
        side=st.integers(1, 3),
        steps=st.sampled_from([range(1, 8), [0], [0, 2, 3], [5]]),
        place=st.sampled_from(["centre", "random", (1, 2)]),
    ),
    stretch=st.sampled_from([1, 600, 1 << 20]),
)
def test_play_is_its_definition(circuit, height, width, batch, steps, fire_rate, damage, stretch):
    start = bits(np.random.default_rng(steps), batch, height, width, circuit.channels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollout, "STRETCH_BYTES", stretch)
        played = list(play(ReferenceEngine(), circuit, start, steps, KEY, fire_rate, damage))
    assert np.array_equal(np.stack(played), one_by_one(circuit, start, steps, fire_rate, damage))


def test_every_engine_plays_alike(engine: Engine):
    rng = np.random.default_rng(3)
    circuit = random_circuit(rng, channels=3, periodic=True)
    start, damage = bits(rng, 2, 13, 35, 3), DamagePlan(4, range(2, 6), "random")
    played = np.stack(list(play(engine, circuit, start, 9, KEY, 0.6, damage)))
    assert np.array_equal(played, one_by_one(circuit, start, 9, 0.6, damage))


def test_a_long_rollout_takes_a_stretch_of_memory_at_a_time(monkeypatch):
    asked = []

    class Asked(ReferenceEngine):
        def rollout(self, circuit, x, steps, mode="soft", masks=None):
            asked.append(steps)
            return super().rollout(circuit, x, steps, mode, masks)

    circuit = random_circuit(np.random.default_rng(1))
    monkeypatch.setattr(rollout, "STRETCH_BYTES", 4 * 4 * 5 * 2 * 6)  # six states
    states = play(Asked(), circuit, bits(np.random.default_rng(2), 1, 4, 5, 2), 15, KEY, 1.0, DamagePlan(1, [3]))
    next(states)
    assert asked == []
    assert len(list(states)) == 15
    assert asked == [3, 6, 6]


@pytest.mark.parametrize(
    ("start", "steps", "text"),
    [
        (np.full((1, 4, 4, 2), 0.5), 2, "every value of x must be 0 or 1"),
        (np.full((1, 4, 4, 2), 300), 2, "every value of x must be 0 or 1"),
        (np.zeros((1, 2, 4, 2)), 2, "A grid needs at least 3x3 cells, got 4x2."),
        (np.zeros((1, 4, 4, 3)), 2, r"x must have shape \[B, H, W, 2\]"),
        (np.zeros((1, 4, 4, 2)), 0, "steps must be at least 1, got 0."),
    ],
)
def test_bad_starts(start, steps, text):
    with pytest.raises(DataError, match=text):
        next(play(ReferenceEngine(), random_circuit(np.random.default_rng(1)), start, steps, KEY))


def test_evenly():
    assert evenly(20, 8) == [0, 3, 6, 9, 12, 15, 18, 20]
    assert evenly(3, 8) == [0, 1, 2, 3]
    assert evenly(4000, 200)[-1] == 4000
    assert len(evenly(4000, 200)) <= 200


PICTURE = ("1..", ".1.", "..1", "111")
GROWN = {"target": "picture", "picture": PICTURE, "height": 4, "width": 3, "steps": 5}


def test_a_picture_lies_in_the_middle_where_its_seed_is():
    config = resized(keeper_config(2, GROWN | {"start": "seed"}), 9, 8)
    target, seed = job.fixed_target(config.task), rehearsal.fresh_starts(config, 1, KEY)[0]
    assert target.shape == (9, 8, 1)
    small = job.target(keeper_config(2, GROWN | {"start": "seed"}).task)
    top, left = 9 // 2 - 4 // 2, 8 // 2 - 3 // 2
    assert np.array_equal(target[top : top + 4, left : left + 3], small)
    assert target.sum() == small.sum()
    assert seed[top + 2, left + 1].tolist() == [1, 1]
    assert seed.sum() == 2


def test_other_tasks_on_other_grids():
    board = resized(keeper_config(2, {"target": "checkerboard", "height": 4, "width": 4, "steps": 3}), 6, 7)
    squares = [[(x // 2 + y // 2) % 2 for x in range(7)] for y in range(6)]
    assert np.array_equal(job.fixed_target(board.task)[..., 0], squares)
    assert rehearsal.fresh_starts(board, 5, KEY).shape == (5, 6, 7, 2)
    one, other = (rehearsal.fresh_starts(board, 1, key) for key in (KEY, prng.split(KEY)[0]))
    assert not np.array_equal(one, other)
    life = {"target": "rule", "rule": "B3/S23", "start": "boards", "height": 3, "width": 3, "steps": 1}
    config = keeper_config(1, life)
    assert resized(config, 3, 3).task.start == "boards"
    assert resized(config, 20, 20).task.start == "random"


def test_damage_is_left_behind():
    task = {"target": "checkerboard", "height": 4, "width": 4, "steps": 3, "damage_side": 2, "damage_steps": (1,)}
    assert resized(keeper_config(2, task), 4, 4).task.damage_steps == ()


@pytest.mark.parametrize(
    ("height", "width", "text"),
    [
        (4, 2, "The run's target image has 3x4 cells: the grid must be at least as large, got 2x4."),
        (3, 9, "The run's target image has 3x4 cells"),
    ],
)
def test_grids_too_small_for_a_picture(height, width, text):
    with pytest.raises(ConfigError, match=text):
        resized(keeper_config(2, GROWN | {"start": "seed"}), height, width)


def test_grids_below_three():
    config = keeper_config(2, {"target": "checkerboard", "height": 4, "width": 4, "steps": 3})
    with pytest.raises(ConfigError, match="2"):
        resized(config, 2, 9)


def test_evaluation_draws_what_training_does_not():
    config = keeper_config(2, {"target": "checkerboard", "height": 8, "width": 8, "steps": 3})
    ours = rehearsal.fresh_starts(config, 32, prng.split(rehearsal.evaluation_key(config))[0])
    assert not any(np.array_equal(one, other) for one, other in pairwise([*ours, *job.probes(config)]))
    assert not np.array_equal(rehearsal.evaluation_key(config), rehearsal.evaluation_key(replace(config, seed=8)))
