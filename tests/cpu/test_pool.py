"""The sample pool."""

from types import SimpleNamespace

import numpy as np

from difflogic.core.bits import IGNORED
from difflogic.cpu.kernels import pool
from difflogic.cpu.tables import make_grid
from difflogic.engine.shape import Shape
from difflogic.reference.kernels.sample_losses import sample_losses
from tests import tolerances


def test_losses_of_samples_are_of_the_last_targets_that_count() -> None:
    rng = np.random.default_rng(3)
    shape = Shape(5, 3, 4, 2, steps=2, loss_steps=(1, 2), targets=2)
    grid = make_grid(shape)
    state = rng.random((shape.channels, shape.cells), dtype=np.float32)
    targets = rng.integers(0, 2, (shape.targets, shape.loss_channels, shape.cells)).astype(np.float32)
    targets[rng.random(targets.shape) < 0.3] = IGNORED
    states = np.zeros((shape.steps + 1, shape.channels, grid.stride), dtype=np.float32)
    states[-1, :, grid.guard :][:, : shape.cells] = state
    found, worst, expected = np.zeros(shape.batch), np.zeros(shape.batch, dtype=bool), np.zeros(shape.batch)
    buffers = SimpleNamespace(
        sample_losses=found, states=states.reshape(3, -1), targets=targets, worst=worst, pool_reset=2
    )
    pool.rank.py_func(grid, buffers)
    sample_losses(shape, state, targets, expected)
    np.testing.assert_allclose(found, expected, rtol=tolerances.LOSS_RTOL)
    assert set(np.flatnonzero(worst)) == set(np.argsort(-expected)[:2])
