"""The reference, and its float64, against the authors' own code and the circuit that the paper prints."""

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
from tests.random_circuits import bits
from tests.sampled import sampled

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


A, OR, NOT_A_OR_B = 3, 7, 13
READ = (0, 2, 3, 6, 8)
"""The patch positions that the circuit reads; perception kernel `k` passes position `READ[k]` on."""


def seen(channel: int, f: int) -> int:
    """The update network's input that holds patch position `f` of `channel`, for C 8, S 1, K 5."""
    return 8 + channel * len(READ) + READ.index(f)


def layer(*gates: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    ids, a, b = np.array(gates).T
    return 10 * np.eye(16, dtype=np.float32)[ids], np.stack([a, b])


def published() -> Circuit:
    def keep(channel: int, f: int) -> tuple[int, int, int]:
        return (A, seen(channel, f), seen(channel, f))

    layers = [
        layer(
            (OR, seen(2, 0), seen(2, 8)),  # later channel 0
            (OR, seen(1, 0), seen(1, 8)),
            *(keep(*each) for each in ((0, 6), (0, 0), (6, 8), (0, 0), (4, 6), (7, 6), (3, 6), (2, 6))),
        ),
        layer((OR, 0, 8), *((A, i, i) for i in range(1, 8)), (A, 9, 9)),
        layer((NOT_A_OR_B, 0, 8), *((A, i, i) for i in range(1, 8))),  # NOT (a AND NOT b)
    ]
    return Circuit.from_arrays(
        logits={
            "perceive": [np.tile(layer((A, 0, 0))[0], (len(READ), 1, 1))],
            "update": [logits for logits, _ in layers],
        },
        wires={"perceive": [np.array([[[f], [f]] for f in READ])], "update": [wires for _, wires in layers]},
        channels=8,
    )


@pytest.mark.parametrize(("side", "steps"), sampled([(16, 16), (64, 68)], {(16, 16)}))
def test_it_draws_the_board_from_any_start(side: int, steps: int) -> None:
    starts = bits(np.random.default_rng(23), 32, side, side, 8)
    states = ReferenceEngine().rollout(published(), starts, steps, mode="hard")
    board = checkerboard_target(side, side)
    np.testing.assert_array_equal(states[-1][..., :1], np.broadcast_to(board, (32, side, side, 1)))
    assert (states[steps // 2][..., :1] != board).any()
