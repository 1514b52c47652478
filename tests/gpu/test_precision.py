"""Nodes kept in 16 bits: 9/16 of the bytes, nearly the same gradients, and the same ones whatever is kept."""

from __future__ import annotations

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.cpu.engine import CpuEngine
from difflogic.engine.job import Job, TrainState
from difflogic.engine.job import make_job as make_real_job
from difflogic.errors import UsageError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import HARDWARE, SOFTWARE
from difflogic.gpu.model import GpuModel
from difflogic.gpu.planner import plan_for
from difflogic.model.circuit import Circuit
from difflogic.reference.model import ReferenceModel
from tests import tolerances
from tests.gpu.rig import train_alone
from tests.jobs import assert_same, make_job, start

HALF = {"precision": "f16-storage"}


def gradients(device: GpuDevice, job: Job, state: TrainState) -> list[np.ndarray]:
    """Of the first epoch, by layer."""
    model = GpuModel.from_cpu(device, [job], [state])
    model.train(1)
    flat = model.workspace.download("gradients", np.float32, "test").reshape(-1, 16)
    model.close()
    return [layer for layers in job.circuit.unflatten(flat).values() for layer in layers]


def assert_share(got: list[np.ndarray], expected: list[np.ndarray], share: float) -> None:
    for ours, theirs in zip(got, expected, strict=True):
        assert np.abs(ours - theirs).max() <= share * np.abs(theirs).max()


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_gradients_lose_little(device: GpuDevice, fire_rate: float) -> None:
    exact, half = (make_job(steps=6, fire_rate=fire_rate, **options) for options in ({}, HALF))
    expected, got = (gradients(device, job, start(job)) for job in (exact, half))
    assert_share(got, expected, tolerances.HALF_GRADIENT_SHARE)
    assert any((ours != theirs).any() for ours, theirs in zip(got, expected, strict=True))


@pytest.mark.exhaustive
def test_gradients_lose_little_where_they_are_hardest_to_keep(device: GpuDevice) -> None:
    """While the checkerboard is learned: states are nearly alike, and gradients small differences of large sums."""
    config = presets.checkerboard()
    job = make_real_job(config, Circuit.initial(config.model, config.seed))
    learner = CpuEngine().open([job], [TrainState.initial(job)])
    learner.train(125)
    state = learner.states()[0]
    half = make_real_job(config.with_(train=HALF), job.circuit)
    assert_share(gradients(device, half, state), gradients(device, job, state), tolerances.HALF_GRADIENT_SHARE)


@pytest.mark.exhaustive
def test_what_is_kept_changes_nothing(device: GpuDevice) -> None:
    """Nodes that are computed again are rounded as the kept ones are."""
    job = make_job(steps=5, **HALF)
    expected = train_alone(device, job, start(job), 3)
    again = [SOFTWARE[0].with_memory(store_activations=False, checkpoint_every=spacing) for spacing in (1, 2)]
    for launch in (*again, HARDWARE[-1]):
        assert_same(train_alone(device, job, start(job), 3, launch=launch), expected)


def test_an_epoch_is_the_references(device: GpuDevice) -> None:
    job = make_job(**HALF)
    reference, model = ReferenceModel(job, start(job)), GpuModel.from_cpu(device, [job], [start(job)])
    for each in (reference, model):
        each.train(1)
    (ours,), (theirs,) = model.drain()[0], reference.drain()[0]
    assert ours.soft_loss == pytest.approx(theirs.soft_loss, rel=tolerances.LOSS_RTOL)
    moments, expected = model.states()[0].optimizer.mu, reference.states()[0].optimizer.mu
    assert np.abs(moments - expected).max() <= tolerances.HALF_GRADIENT_SHARE * np.abs(expected).max()
    model.close()


def test_what_is_kept_is_nearly_half_as_large(device: GpuDevice) -> None:
    exact, half = (plan_for(device, [make_job(**options)]) for options in ({}, HALF))
    assert exact.launch.store_activations
    assert half.launch.store_activations
    assert 36 * exact.buffer_bytes()["kept"] <= 64 * half.buffer_bytes()["kept"] < 37 * exact.buffer_bytes()["kept"]


def test_the_cpu_engine_refuses() -> None:
    job = make_job(**HALF)
    with pytest.raises(UsageError, match=r"^The precision f16-storage is how the GPU engine keeps gate values, but"):
        CpuEngine().open([job], [start(job)])
