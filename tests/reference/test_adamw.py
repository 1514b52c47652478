"""AdamW and the clip by the global norm, against their definitions."""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from difflogic.config.train import OptimizerConfig
from difflogic.core.gates import INPUT_WISE, TRUTH
from difflogic.engine import control as c
from difflogic.engine.shape import Hyper
from difflogic.errors import ConfigError
from difflogic.reference.kernels.adamw import adamw, learning_rate, power
from difflogic.reference.kernels.clip_norm import clip_norm
from tests import tolerances

Entry = tuple[float, float, float]


def plain_adamw(hyper: Hyper, step: int, gradient: float, entry: Entry) -> Entry:
    """One entry's `(logit, mu, nu)` after a step."""
    logit, mu, nu = entry
    gradient = max(-hyper.clip, min(hyper.clip, gradient))
    mu = hyper.beta1 * mu + (1 - hyper.beta1) * gradient
    nu = hyper.beta2 * nu + (1 - hyper.beta2) * gradient**2
    mu_hat, nu_hat = mu / (1 - hyper.beta1**step), nu / (1 - hyper.beta2**step)
    update = mu_hat / (math.sqrt(nu_hat) + hyper.epsilon) + hyper.weight_decay * logit
    progress = (step - hyper.lr_from) / max(1, hyper.lr_to - hyper.lr_from)
    lr = hyper.lr + (hyper.lr_end - 1) * hyper.lr * min(1, max(0, progress))
    return logit - lr * update, mu, nu


def at_step(step: int, nonfinite: bool = False) -> np.ndarray:
    """Return the control block of a run without a skipped epoch."""
    control = np.zeros(c.WORDS, dtype=np.uint32)
    control[c.STEP], control[c.EPOCH], control[c.NONFINITE] = step, step, nonfinite
    return control


@pytest.mark.parametrize(
    "hyper",
    [
        Hyper(),
        Hyper(lr=0.3, weight_decay=0.2, beta1=0.5, beta2=0.7, epsilon=1e-3, clip=1.0),
        Hyper(weight_decay=0.0, beta1=0.0, beta2=0.0),
        Hyper(lr_end=0.1, lr_from=1, lr_to=4),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "rtol", "atol"),
    [(np.float64, tolerances.FLOAT64_RTOL, 1e-15), (np.float32, 0, tolerances.STEP_ATOL_SAME_GRADIENTS)],
)
def test_six_steps_entry_by_entry(hyper: Hyper, dtype: npt.DTypeLike, rtol: float, atol: float) -> None:
    """Compare for logits as in training, with gradients far below epsilon and far above the clip."""
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((3, 16)).astype(dtype)
    mu, nu = np.zeros_like(logits), np.zeros_like(logits)
    entries: list[Entry] = [(float(value), 0.0, 0.0) for value in logits.flat]
    for step in range(1, 7):
        scale = 10.0 ** rng.integers(-9, 4, logits.shape)
        gradients = (scale * rng.standard_normal(logits.shape)).astype(dtype)
        adamw(hyper, at_step(step), gradients, logits, mu, nu)
        entries = [
            plain_adamw(hyper, step, float(gradient), entry)
            for gradient, entry in zip(gradients.flat, entries, strict=True)
        ]
        np.testing.assert_allclose(logits.reshape(-1), [entry[0] for entry in entries], rtol=rtol, atol=atol)
    np.testing.assert_allclose(mu.reshape(-1), [entry[1] for entry in entries], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(nu.reshape(-1), [entry[2] for entry in entries], rtol=1e-5, atol=1e-24)


def test_steps_of_input_wise_gates_are_those_of_their_numbers() -> None:
    """The softmax of the sums is a product of sigmoids, and a gate's four numbers are optimised as four logits are."""
    rng = np.random.default_rng(3)
    numbers, moments = rng.standard_normal((5, 4)), np.zeros((2, 5, 16))
    logits, alone = numbers @ INPUT_WISE.T, np.zeros((2, 5, 4))
    hyper = Hyper(lr=0.3, weight_decay=0.2, clip=0.5, epsilon=1e-3, input_wise=True)
    for step in range(1, 7):
        shares = 1 / (1 + np.exp(-numbers))
        product = np.where(TRUTH[None], shares[:, None], 1 - shares[:, None]).prod(axis=2)
        softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(softmax, product, rtol=1e-12)
        wanted = rng.standard_normal((5, 4))  # the gradient of each share
        slopes = softmax * (wanted @ TRUTH.T - (softmax @ TRUTH * wanted).sum(axis=1, keepdims=True))
        adamw(hyper, at_step(step), slopes, logits, *moments)
        adamw(replace(hyper, input_wise=False), at_step(step), wanted * shares * (1 - shares), numbers, *alone)
        np.testing.assert_allclose(logits, numbers @ INPUT_WISE.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moments[..., :4], alone, rtol=1e-9)


def test_the_learning_rate_falls_evenly_and_stays() -> None:
    falling = Hyper(lr=0.5, lr_end=0.25, lr_from=10, lr_to=40)
    rates = [learning_rate(falling, epoch, np.float64) for epoch in range(60)]
    assert set(rates[:11]) == {0.5}
    assert rates[25] == 0.3125
    assert set(rates[40:]) == {0.125}
    assert np.diff(rates[10:41]) == pytest.approx(np.full(30, -0.0125))


@pytest.mark.parametrize("epoch", [0, 1, 7, 2**32 - 1])
def test_a_learning_rate_that_does_not_fall_is_the_one_given(epoch: int) -> None:
    assert learning_rate(Hyper(lr=0.07, lr_from=3), epoch, np.float32) == np.float32(0.07)


def test_a_flagged_step_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    arrays = [rng.random((2, 16)) for _ in range(3)]
    before = [array.copy() for array in arrays]
    adamw(Hyper(), at_step(5, nonfinite=True), np.full((2, 16), np.nan), *arrays)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64, 499])
def test_powers_by_squaring(exponent: int) -> None:
    assert power(np.float64(0.99), exponent) == pytest.approx(0.99**exponent, rel=1e-14)
    assert isinstance(power(np.float32(0.99), exponent), np.float32)


def test_a_power_below_every_float_is_zero() -> None:
    with np.errstate(under="ignore"):
        assert power(np.float32(0.9), 100_000) == 0


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
