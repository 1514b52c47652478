"""Scheduling is free: no WG, no number of lanes and no number of workgroups changes a single bit."""

import numpy as np
import pytest

from difflogic.engine.batch import Batch
from difflogic.engine.events import Damage
from difflogic.engine.shape import Shape
from difflogic.gpu import plan
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.wiring import wired
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.closeness import assert_gradients_close
from tests.gpu.rig import LAUNCHES, PAIRED, RECOMPUTING, SAMPLE
from tests.random_circuits import bits, random_circuit
from tests.sampled import sampled

CIRCUIT = random_circuit(np.random.default_rng(0), channels=3, kernels=3, hidden=(40, 20), periodic=True, unique=True)
GRID = (5, 9, 11)  # 31 chunks, the last one not full
STEPS = 3


def given() -> Batch:
    rng = np.random.default_rng(1)
    x, y = (bits(rng, *GRID, 3) for _ in range(2))
    damage = Damage(4, (0, 1, 2), rng.integers(0, (9, 11), (3, GRID[0], 2)))
    masks = bits(rng, STEPS, *GRID[1:], 1)
    return Batch(x, y, STEPS, loss_channels=2, masks=masks, loss_steps=(1, 2, 3), damage=damage)


SETS = [[SAMPLE[1], RECOMPUTING[1]], [*LAUNCHES, *RECOMPUTING]]


def everything(device: GpuDevice, launch: LaunchConfig, circuit: Circuit = CIRCUIT) -> dict[str, np.ndarray]:
    engine = GpuEngine(device, launch)
    batch = given()
    loss, gradients = engine.loss_and_gradients(circuit, batch)
    after, state, metrics = engine.train_step(circuit, None, batch)
    layers = [layer.reshape(-1, 16) for network in gradients.values() for layer in network]
    return {
        "states": engine.rollout(circuit, batch.x, STEPS, masks=batch.masks, damage=batch.damage),
        "hard": engine.rollout(circuit, batch.x, STEPS, "hard", batch.masks, batch.damage),
        "loss": np.array([loss, metrics["soft_loss"]]),
        "gradients": np.concatenate(layers),
        "logits": after.flat_logits(),
        "mu": state.mu,
        "nu": state.nu,
    }


@pytest.mark.parametrize("tiles", [1, 3])
@pytest.mark.parametrize("launch", sampled((SAMPLE[0], PAIRED), SAMPLE), ids=str)
def test_adjoints_of_patches_are_gathered_in_windows(device: GpuDevice, monkeypatch, launch, tiles) -> None:
    """At window borders nine adjoints are summed in another order, and those of losses come last."""
    expected = everything(device, launch)
    monkeypatch.setattr(Plan, "window_tiles", tiles)
    got = everything(device, launch)
    for name in ("states", "hard"):
        np.testing.assert_array_equal(got[name], expected[name])
    np.testing.assert_allclose(got["loss"], expected["loss"], rtol=1e-6)
    np.testing.assert_allclose(got["gradients"], expected["gradients"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scratch_groups", [256, 1], ids=["parallel", "looping"])
@pytest.mark.parametrize("max_blocks", [128, 7, 1], ids="blocks={}".format)
@pytest.mark.parametrize("launches", sampled(SETS, SETS[:1]), ids=["two", "every"])
def test_every_schedule_gives_the_same_bits(
    device: GpuDevice,
    monkeypatch: pytest.MonkeyPatch,
    launches: list[LaunchConfig],
    max_blocks: int,
    scratch_groups: int,
) -> None:
    """Blocks of one chunk, of 8 and of all; and a single workgroup for all the work."""
    monkeypatch.setattr(plan, "MAX_BLOCKS", max_blocks)
    expected = everything(device, SAMPLE[0])
    monkeypatch.setattr(plan, "MAX_SCRATCH_GROUPS", scratch_groups)
    for launch in launches:
        got = everything(device, launch)
        for name, array in expected.items():
            assert got[name].tobytes() == array.tobytes(), f"{name} under {launch}"


@pytest.mark.parametrize("max_blocks", [128, 7, 1])
def test_the_number_of_blocks_changes_rounding_only(device: GpuDevice, monkeypatch, max_blocks: int) -> None:
    monkeypatch.setattr(plan, "MAX_BLOCKS", max_blocks)
    shape = Shape.of(CIRCUIT, (*GRID, 3), STEPS)
    own = Plan(tuple(wired([flat_layout(CIRCUIT)])), shape, SAMPLE[1])
    assert own.chunks_per_block == {128: 1, 7: 8, 1: 32}[max_blocks]
    loss, gradients = GpuEngine(device).loss_and_gradients(CIRCUIT, given())
    expected_loss, expected = ReferenceEngine().loss_and_gradients(CIRCUIT, given())
    assert loss == pytest.approx(expected_loss, rel=tolerances.LOSS_RTOL)
    assert_gradients_close(gradients, expected)
