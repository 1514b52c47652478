"""Kernels at the end of a train step against their references."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.engine import control as c
from difflogic.engine.events import NO_FAULTS, FaultRates, Hardening
from difflogic.engine.shape import Hyper, Shape
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.plan import HISTORY
from difflogic.reference.kernels.adamw import adamw
from difflogic.reference.kernels.clip_norm import clip_norm
from difflogic.reference.kernels.coefficients import coefficients
from difflogic.reference.kernels.commit import commit
from difflogic.reference.kernels.harden import harden
from tests import tolerances
from tests.gpu.rig import rig
from tests.random_circuits import random_circuit

SHAPE = Shape(3, 5, 7, 2, steps=2)
CIRCUIT = random_circuit(np.random.default_rng(0))
MOMENTS = ("logits", "mu", "nu")


def control_words(**values: int) -> np.ndarray:
    """Two models' control blocks, the second's keys and counters other than the first's."""
    words = np.random.default_rng(1).integers(0, 2**32, (2, 8), dtype=np.uint32)
    words[:, 4:] = [[7, 70, 0, 3], [8, 70, 0, 0]]
    for name, value in values.items():
        words[:, getattr(c, name)] = value
    return words


@pytest.mark.parametrize("epoch", [0, HISTORY - 1, HISTORY, 3 * HISTORY + 5])
@pytest.mark.parametrize(
    ("spoiled", "flag"), [(1.0, 0), (1.0, 1), (np.nan, 0), (np.inf, 0), (-np.inf, 0), (3e38, 0), (np.nan, 1)]
)
def test_commit(device: GpuDevice, epoch: int, spoiled: float, flag: int) -> None:
    """One of the second model's chunks is `spoiled` (3e38: their sum overflows), its gradients if `flag`."""
    control = control_words(EPOCH=epoch)
    control[1, c.NONFINITE] = flag
    shape = Shape(9, 16, 16, 2, steps=1)
    with rig(device, [CIRCUIT] * 2, shape) as r:
        partials = np.random.default_rng(2).random((2, r.plan.chunks), dtype=np.float32)
        partials[1, -1] = spoiled
        partials[1, 0] = spoiled if spoiled > 1e38 else 0
        r.put("loss_partials", partials)
        r.put("control", control)
        r.run(r.work.backward[-1])
        got = r.get("control", 8, dtype=np.uint32)
        history = r.get("history", HISTORY, dtype=np.uint64).reshape(HISTORY, 2).view(np.uint32).reshape(HISTORY, 2, 2)
    for m in range(2):
        expected, ring = control[m].copy(), np.full((HISTORY, 2), np.nan, dtype=np.float32)
        commit(partials[m], expected, ring)
        np.testing.assert_array_equal(got[m], expected)
        losses = np.ascontiguousarray(history[:, m, 0]).view(np.float32)
        np.testing.assert_allclose(losses, ring[:, 0], rtol=tolerances.LOSS_RTOL)
        entry = history[epoch % HISTORY, m]
        assert entry[1] == ring[epoch % HISTORY, 1] == expected[c.NONFINITE]
    assert got[:, c.NONFINITE].tolist() == [0, spoiled != 1 or flag]


def moments(rng: np.random.Generator, scale: float) -> dict[str, np.ndarray]:
    size = (2, CIRCUIT.gates, 16)
    return {
        "gradients": (scale * rng.standard_normal(size)).astype(np.float32),
        "logits": rng.standard_normal(size).astype(np.float32),
        "mu": rng.standard_normal(size).astype(np.float32),
        "nu": rng.random(size, dtype=np.float32),
    }


@pytest.mark.parametrize("step", [1, 2, 3, 1000, 100_000])
@pytest.mark.parametrize(
    "hyper",
    [
        Hyper(),
        Hyper(0.3, 0.2, 0.5, 0.7, 1e-3, 0.25),
        Hyper(lr_end=0.1, lr_from=40, lr_to=140),
        Hyper(lr_end=0.0, lr_from=69, lr_to=70),
        Hyper(0.3, 0.2, 0.5, 0.7, 1e-3, 0.5, input_wise=True),
    ],
    ids=["usual", "other", "falling", "fallen", "input-wise"],
)
def test_adamw(device: GpuDevice, step: int, hyper: Hyper) -> None:
    """Gradients on both sides of the clip."""
    rng = np.random.default_rng(3)
    before = moments(rng, 2 * hyper.clip)
    assert 0.2 < (np.abs(before["gradients"]) > hyper.clip).mean() < 0.8
    with rig(device, [CIRCUIT] * 2, SHAPE, hyper=hyper) as r:
        for name, array in before.items():
            r.put(name, array)
        control = control_words(STEP=step)
        r.put("control", control)
        r.run(*r.work.update)
        after = {name: r.get(name, CIRCUIT.gates, 16) for name in before}
        mixed = r.get("coefficients", CIRCUIT.gates, 4)
        ids = r.get("gate_ids", CIRCUIT.gates, dtype=np.uint32)
        np.testing.assert_array_equal(r.get("control", 8, dtype=np.uint32), control)
    np.testing.assert_array_equal(after["gradients"], before["gradients"])
    for m in range(2):
        expected = {name: before[name][m].copy() for name in MOMENTS}
        adamw(hyper, control[m], before["gradients"][m], *expected.values())
        for name in MOMENTS:
            np.testing.assert_allclose(
                after[name][m], expected[name], rtol=1e-6, atol=tolerances.STEP_ATOL_SAME_GRADIENTS, err_msg=name
            )
        expected_mix, expected_ids = np.empty_like(mixed[m]), np.empty_like(ids[m])
        coefficients(after["logits"][m], expected_mix, expected_ids)
        np.testing.assert_allclose(mixed[m], expected_mix, rtol=0, atol=tolerances.COEFFICIENT_ATOL)
        np.testing.assert_array_equal(ids[m], expected_ids)


@pytest.mark.parametrize("gates", [1, 2, 9])
@pytest.mark.parametrize("spoiled", [1.0, 3e38, np.inf, np.nan])
def test_clip_norm(device: GpuDevice, gates: int, spoiled: float) -> None:
    """Each model by its own norm: the first beyond the bound, the second within it or with a gradient `spoiled`."""
    circuit = random_circuit(np.random.default_rng(6), hidden=(gates, 61), channels=2)
    size, hyper = (2, circuit.gates, 16), Hyper(clip=40.0, clip_by="norm")
    before = np.random.default_rng(7).standard_normal(size).astype(np.float32)
    before[0] *= 100
    before[1, -1, -1] = spoiled
    control = control_words()
    with rig(device, [circuit] * 2, SHAPE, hyper=hyper) as r:
        (made,) = (dispatch for dispatch in r.work.backward if dispatch.kernel == "clip_norm")
        results = []
        for _ in range(2):
            r.put("gradients", before)
            r.put("control", control)
            r.run(made)
            results.append((r.get("gradients", *size[1:]), r.get("control", 8, dtype=np.uint32)))
    assert results[0][0].tobytes() == results[1][0].tobytes()
    after, words = results[0]
    for m in range(2):
        expected, flagged = before[m].copy(), control[m].copy()
        clip_norm(hyper, expected, flagged)
        np.testing.assert_array_equal(words[m], flagged)
        assert np.linalg.norm(before[0]) > 2 * hyper.clip
        if not flagged[c.NONFINITE]:
            np.testing.assert_allclose(after[m], expected, rtol=1e-5)
            assert (after[m].tobytes() == before[m].tobytes()) == (m == 1)


def test_entries_are_clipped_without_a_kernel_more(device: GpuDevice) -> None:
    with rig(device, [CIRCUIT], SHAPE) as r:
        assert "clip_norm" not in [dispatch.kernel for dispatch in r.work.backward]


def test_adamw_leaves_a_flagged_model_alone(device: GpuDevice) -> None:
    """Bit for bit, NaN gradients or not, and the other model takes its step."""
    before = moments(np.random.default_rng(4), 1.0)
    before["gradients"][1, ::3] = np.nan
    before["coefficients"] = np.random.default_rng(5).random((2, CIRCUIT.gates, 4), dtype=np.float32)
    before["gate_ids"] = np.full((2, CIRCUIT.gates), 77, dtype=np.uint32)
    control = control_words()
    control[1, c.NONFINITE] = 1
    with rig(device, [CIRCUIT] * 2, SHAPE) as r:
        for name, array in before.items():
            r.put(name, array)
        r.put("control", control)
        r.run(*r.work.update)
        after = {name: r.get(name, *array.shape[1:], dtype=array.dtype) for name, array in before.items()}
    for name, array in before.items():
        assert after[name][1].tobytes() == array[1].tobytes(), name
        assert (after[name][0] != array[0]).any() == (name != "gradients"), name


@pytest.mark.parametrize("epoch", [0, 9, 10, 11, 70, 1000, 2**31])
@pytest.mark.parametrize("hardening", [Hardening(10, 100, 1 << 15), Hardening(0, 65535, 1 << 16), Hardening()])
@pytest.mark.parametrize("rates", [NO_FAULTS, FaultRates(gates=1 << 30)])
def test_harden(device: GpuDevice, hardening: Hardening, rates: FaultRates, epoch: int) -> None:
    """Hard and stuck gates are exactly those expected, at the ends of the growth and after it."""
    logits = np.random.default_rng(6).standard_normal((2, CIRCUIT.gates, 16)).astype(np.float32)
    logits[:, ::3, 2:5] = 4  # ties
    control = control_words(EPOCH=epoch)
    with rig(device, [CIRCUIT] * 2, replace(SHAPE, faults=rates), hardening=hardening) as r:
        r.put("control", control)
        r.put("logits", logits)
        r.run(r.work.dispatch("harden"))
        got = r.get("coefficients", CIRCUIT.gates, 4)
    for m in range(2):
        expected = np.empty_like(got[m])
        harden(hardening, rates, control[m], logits[m], expected)
        whole = (expected == np.round(expected)).all(axis=1)
        np.testing.assert_array_equal(got[m][whole], expected[whole])
        np.testing.assert_allclose(got[m], expected, rtol=0, atol=tolerances.COEFFICIENT_ATOL)
