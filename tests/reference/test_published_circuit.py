"""The checkerboard circuit that the paper prints: five gates, and it draws the board from any start."""

import numpy as np
import pytest

from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests.experiments import checkerboard_target
from tests.random_circuits import bits
from tests.sampled import sampled

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
