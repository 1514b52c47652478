"""The notebook's first losses at seed 23: its wiring, keys, grids, masks, rollout and loss at once."""

from __future__ import annotations

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.core import prng
from difflogic.engine.job import Job, TrainState
from difflogic.engine.shape import Shape
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.kernels.fire_mask import draw_masks
from tests import parity, tolerances
from tests.experiments import MODELS, checkerboard_target

SEED = 23


def squared_error(states: np.ndarray, target: np.ndarray) -> float:
    """Of the last state's first channel, summed in float64."""
    return float(np.sum((states[-1][..., :1].astype(np.float64) - target) ** 2))


def losses(
    circuit: Circuit, x: np.ndarray, target: np.ndarray, steps: int, masks: np.ndarray | None = None
) -> list[float]:
    engine = ReferenceEngine()
    return [squared_error(engine.rollout(circuit, x, steps, mode, masks), target) for mode in ("soft", "hard")]


@pytest.mark.parametrize("small", [False, True])
def test_checkerboard(small: bool) -> None:
    config = presets.checkerboard(small)
    circuit = Circuit.initial(config.model, SEED)
    job = Job(config, circuit, checkerboard_target(16, 16), np.zeros((1, 16, 16, 8), dtype=np.uint8))
    model = ReferenceEngine().open([job], [TrainState.initial(job)])
    model.train(1)
    assert model.evaluate()[0].train_hard_loss == 256
    if not small:
        assert model.drain()[0][0].soft_loss == pytest.approx(231.266, rel=tolerances.LOSS_RTOL)


def test_game_of_life() -> None:
    """Its data chain splits once more before the loop."""
    life = parity.load("primitives")
    key, _ = prng.split(prng.key_from_seed(SEED))
    _, sub = prng.split(key)
    boards = prng.randint_power_of_two(sub, (20,), 512)
    x, target = (life[f"gol/{name}"][boards][..., None].astype(np.float32) for name in ("boards", "next"))
    soft, hard = losses(Circuit.initial(MODELS["gol"], SEED), x, target, steps=1)
    assert soft == pytest.approx(105.844, rel=tolerances.LOSS_RTOL)
    assert hard == 108


def test_asynchronous_checkerboard() -> None:
    key = prng.key_from_seed(SEED)
    x = prng.randint_power_of_two(prng.split(key)[1], (1, 14, 14, 8), 2).astype(np.float32)
    train_key, _ = prng.split(key)
    masks = draw_masks(Shape(1, 14, 14, 8, steps=50), 0.6, prng.split(train_key)[1])
    circuit = Circuit.initial(MODELS["checkerboard_async"], SEED)
    soft, hard = losses(circuit, x, checkerboard_target(14, 14), 50, masks.reshape(50, 14, 14, 1))
    assert soft == pytest.approx(87.93, abs=0.005)  # published to two places
    assert hard == 96


def test_the_game_of_life_boards_are_numbers() -> None:
    """Board `i` is the bits of `i`, row by row, the most significant first: what its training data relies on."""
    boards = parity.load("primitives")["gol/boards"].reshape(512, 9)
    np.testing.assert_array_equal(boards @ (1 << np.arange(9)[::-1]), np.arange(512))
