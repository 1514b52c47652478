"""Clip by the global norm, against its definition."""

import numpy as np
import pytest

from difflogic.config.train import OptimizerConfig
from difflogic.engine import control as c
from difflogic.engine.shape import Hyper
from difflogic.errors import ConfigError
from difflogic.reference.kernels.clip_norm import clip_norm


def clipped(gradients: np.ndarray, clip: float) -> tuple[np.ndarray, int]:
    control = np.zeros(c.WORDS, dtype=np.uint32)
    clip_norm(Hyper(clip=clip, clip_by="norm"), after := gradients.copy(), control)
    return after, int(control[c.NONFINITE])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e18])
def test_beyond_the_bound_the_direction_stays_and_the_length_is_the_bound(dtype: type, size: float) -> None:
    gradients = (size * np.random.default_rng(1).standard_normal((7, 16))).astype(dtype)
    length = float(np.linalg.norm(gradients.astype(np.float64)))
    after, flag = clipped(gradients, 0.25 * length)
    np.testing.assert_allclose(after, 0.25 * gradients, rtol=1e-6)
    assert after.dtype == dtype
    assert flag == 0


def test_within_the_bound_no_bit_changes() -> None:
    gradients = np.random.default_rng(2).standard_normal((7, 16)).astype(np.float32)
    after, flag = clipped(gradients, 1.01 * float(np.linalg.norm(gradients)))
    assert after.tobytes() == gradients.tobytes()
    assert flag == 0
    assert clipped(np.zeros((3, 16)), 1.0)[1] == 0


@pytest.mark.parametrize("spoiled", [np.nan, np.inf, 3e38])
def test_a_norm_that_is_not_finite_raises_the_flag(spoiled: float) -> None:
    gradients = np.ones((7, 16), dtype=np.float32)
    gradients[3, 5] = spoiled
    assert clipped(gradients, 1.0)[1] == 1


def test_a_norm_needs_a_bound() -> None:
    assert OptimizerConfig(clip=0.0).clip == 0
    with pytest.raises(ConfigError, match=r'^clip must be more than 0 if clip_by is "norm", got 0\.$'):
        OptimizerConfig(clip=0.0, clip_by="norm")
