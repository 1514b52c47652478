"""The rivals compute what the authors' code computes; skipped where they are not installed."""

import importlib.util

import numpy as np
import pytest

from benchmarks.rivals.problem import FIRST_HARD_LOSS, FIRST_SOFT_LOSS, complaint
from benchmarks.rivals.worker import open_verified
from difflogic.devices.open import hardware_gpus
from difflogic.errors import NoAdapterError
from tests.parity import SMALL_MODELS, SmallModel, small_model

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(params=SMALL_MODELS)
def model(request: pytest.FixtureRequest) -> SmallModel:
    return small_model(request.param)


def assert_right(model: SmallModel, loss: float, gradients: dict[str, list[np.ndarray]]) -> None:
    arrays = model.arrays
    assert loss == pytest.approx(float(arrays["opt0/loss_soft"]), rel=1e-6)
    for network, layers in gradients.items():
        for index, layer in enumerate(layers):
            wanted = arrays[f"opt0/grad/{network}/{index}"]
            assert np.abs(layer - wanted).max() <= 1e-4 * np.abs(wanted).max()


@needs_jax
@pytest.mark.parametrize("tuned", [False, True])
def test_jax(tuned: bool, model: SmallModel) -> None:
    from benchmarks.rivals import jax_training, jax_tuned
    from difflogic.autodiff import jax_model

    module = jax_tuned if tuned else jax_model
    assert_right(model, *jax_model.gradients(model.circuit, model.batch, module.make_rollout))
    if "hard/states" in model.arrays:
        hard = jax_training.last_state(module, model.circuit, model.batch, hard=True)
        assert np.array_equal(hard, model.arrays["hard/states"][-1])


@needs_torch
def test_torch(model: SmallModel) -> None:
    from difflogic.autodiff import torch_model

    assert_right(model, *torch_model.gradients(model.circuit, model.batch))


@pytest.mark.parametrize(
    ("soft", "hard", "said"),
    [
        ([231.2665, 228.9], [FIRST_HARD_LOSS, 250], None),
        ([231.3, 228.9], [FIRST_HARD_LOSS, 250], "the soft loss of epoch 1 is 231.3, expected 231.266"),
        ([231.266, 200.0], [FIRST_HARD_LOSS, 250], "the soft loss of epoch 2 is 200.0, expected 228.9"),
        ([231.266, float("nan")], [FIRST_HARD_LOSS, 250], "the soft loss of epoch 2 is nan, expected 228.9"),
        ([231.266, 228.9], [255, 250], "the first hard loss is 255, expected 256"),
    ],
)
def test_complaints(soft: list[float], hard: list[int], said: str | None) -> None:
    assert complaint(soft, hard, [231.266, 228.9]) == said


def test_our_own_contender_passes_the_same_verification() -> None:
    _, wrong = open_verified("difflogic", on_gpu=False, expected=[FIRST_SOFT_LOSS, 228.9217])
    assert wrong is None
    _, wrong = open_verified("difflogic", on_gpu=False, expected=[FIRST_SOFT_LOSS, 200.0])
    assert wrong is not None


@pytest.mark.skipif(bool(hardware_gpus()), reason="there is a hardware GPU")
def test_software_is_no_gpu_to_measure_rivals_on() -> None:
    with pytest.raises(NoAdapterError):
        open_verified("difflogic", on_gpu=True, expected=[FIRST_SOFT_LOSS, 228.9217])
