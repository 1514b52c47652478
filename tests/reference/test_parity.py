"""The reference's parts, and its float64, against what the authors' own code computed; see also `tests/engines`."""

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.events import draw_masks
from difflogic.engine.shape import Hyper, Shape
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.kernels.adamw import adamw
from difflogic.reference.kernels.grid import write_patches
from tests import parity, tolerances
from tests.closeness import assert_gradients_close
from tests.experiments import MODELS, checkerboard_target
from tests.parity import SmallModel

PRIMITIVES = parity.load("primitives")


@pytest.fixture(params=parity.SMALL_MODELS)
def model(request: pytest.FixtureRequest) -> SmallModel:
    return parity.small_model(request.param)


def test_float64_states_loss_and_gradients(model: SmallModel) -> None:
    engine = ReferenceEngine(np.float64)
    states = engine.rollout(model.circuit, model.x, model.steps, masks=model.masks)
    np.testing.assert_allclose(states[-1], model.arrays["f64/soft_y_T"], rtol=tolerances.FLOAT64_RTOL)
    loss, gradients = engine.loss_and_gradients(model.circuit, model.batch)
    assert loss == pytest.approx(float(model.arrays["f64/loss_soft"]), rel=tolerances.FLOAT64_RTOL)
    expected = parity.layers(model.arrays, "f64/grad/")
    assert all(layer.any() for layers in expected.values() for layer in layers)
    assert_gradients_close(gradients, expected, tolerances.FLOAT64_RTOL)


def test_five_clipped_steps_from_the_authors_gradients() -> None:
    assert max(np.abs(PRIMITIVES[f"opt/g{step}"]).max() for step in range(5)) > Hyper().clip
    logits = PRIMITIVES["opt/p0"].copy()
    mu, nu = np.zeros_like(logits), np.zeros_like(logits)
    control = np.zeros(c.WORDS, dtype=np.uint32)
    for step in range(5):
        control[c.STEP] = step + 1
        adamw(Hyper(lr=0.05), control, PRIMITIVES[f"opt/g{step}"], logits, mu, nu)
        expected = PRIMITIVES[f"opt/p{step + 1}"]
        np.testing.assert_allclose(logits, expected, rtol=0, atol=tolerances.STEP_ATOL_SAME_GRADIENTS)


@pytest.mark.parametrize("periodic", [False, True])
def test_patches(periodic: bool) -> None:
    grid = PRIMITIVES["patch/grid"]
    height, width, channels = grid.shape
    nodes = np.empty((9 * channels, height * width), dtype=grid.dtype)
    shape = Shape(1, height, width, channels, steps=1, periodic=periodic)
    write_patches(shape, grid.reshape(-1, channels).T, nodes)
    ours = nodes.reshape(channels, 9, height * width).transpose(2, 1, 0)
    np.testing.assert_array_equal(ours, PRIMITIVES[f"patch/periodic{int(periodic)}"])


def test_a_whole_circuit_on_one_patch() -> None:
    logits, wires = (parity.layers(PRIMITIVES, f"kernel2/{table}/") for table in ("logits", "wires"))
    patch = PRIMITIVES["kernel1/patch"]
    circuit = Circuit.from_arrays(logits, wires, channels=patch.shape[1])
    after = ReferenceEngine().rollout(circuit, patch.reshape(1, 3, 3, -1), steps=1)[1, :, 1, 1]
    np.testing.assert_allclose(after, PRIMITIVES["kernel2/circuit_out"], rtol=tolerances.STATE_RTOL)


def test_the_asynchronous_checkerboards_first_losses() -> None:
    """Losses at seed 23, with the epoch's own masks: 87.93 and 96. Other models are in `tests/engines`."""
    key = prng.key_from_seed(23)
    train_key, sub = prng.split(key)
    x = prng.randint_power_of_two(sub, (1, 14, 14, 8), 2).astype(np.float32)
    masks = draw_masks(prng.split(train_key)[1], 50, (14, 14, 1), 0.6)[1]
    circuit, target = Circuit.initial(MODELS["checkerboard_async"], 23), checkerboard_target(14, 14)
    soft, hard = (ReferenceEngine().rollout(circuit, x, 50, mode, masks)[-1][..., :1] for mode in ("soft", "hard"))
    assert np.sum((soft.astype(np.float64) - target) ** 2) == pytest.approx(87.93, abs=0.005)  # published to two places
    assert np.sum((hard - target) ** 2) == 96


def test_the_game_of_life_boards_are_numbers() -> None:
    """Board `i` is the bits of `i`, row by row, the most significant first: what its training data relies on."""
    boards = PRIMITIVES["gol/boards"].reshape(512, 9)
    np.testing.assert_array_equal(boards @ (1 << np.arange(9)[::-1]), np.arange(512))
