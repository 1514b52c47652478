"""Sizes that the planner computes, and its messages if a device is too small."""

import re
from dataclasses import replace

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.engine.shape import Shape
from difflogic.errors import LimitError
from difflogic.gpu import planner
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import HARDWARE, LaunchConfig
from difflogic.gpu.plan import BatchSource, Plan
from difflogic.gpu.planner import make_plan, plan_for
from difflogic.gpu.wiring import wired
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, Level, flat_layout
from tests.gpu.rig import LAUNCHES, RECOMPUTING, SAMPLE, on_device, rig, train_alone
from tests.jobs import assert_same, make_job, start
from tests.random_circuits import random_circuit

SHAPE = Shape(17, 5, 7, 2, steps=3, loss_channels=2)
RICH = replace(SHAPE, loss_steps=(2, 3), damage_side=2, damage_steps=(0, 2))
"""Shape with all optional buffers, to which the next constants belong."""
POOL = BatchSource("seed", ruled=True, pool=34, resets=2)
CIRCUIT = random_circuit(np.random.default_rng(0))
LAYOUT = flat_layout(CIRCUIT)


@pytest.mark.parametrize("launch", [*SAMPLE[:2], *RECOMPUTING], ids=str)
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize(("shape", "batch_source"), [(SHAPE, BatchSource()), (RICH, POOL)], ids=["plain", "rich"])
def test_predicted_bytes_are_the_buffers(device: GpuDevice, launch, models, shape, batch_source) -> None:
    options = {"launch": launch, "probes": 40, "hard_batch": 17, "batch_source": batch_source}
    with rig(device, [CIRCUIT] * models, shape, **options) as r:
        uniforms = {"shape", "hard_shape", "at", "mark"}
        real = {name: [buffer.size] for name, buffer in r.work.buffers.items() if name not in uniforms}
        real |= {name: [buffer.size for buffer in buffers] for name, buffers in r.work.several.items()}
        counts = r.plan.buffer_counts()
        assert real == {name: [size] * counts.get(name, 1) for name, size in r.plan.buffer_bytes().items()}
        assert r.plan.total_bytes() == sum(map(sum, real.values()))


def plan(
    adapter: Adapter,
    limits: dict[str, int],
    shape: Shape = SHAPE,
    layout: Layout = LAYOUT,
    max_memory: int | None = None,
) -> Plan:
    return make_plan(adapter, limits, Plan(tuple(wired([layout])), shape), max_memory=max_memory)


@pytest.fixture
def hardware(adapter: Adapter) -> Adapter:
    return replace(adapter, name="Big Card 9000", type="DiscreteGPU")


@pytest.fixture
def software(adapter: Adapter) -> Adapter:
    return replace(adapter, type="CPU")


@pytest.mark.parametrize(("allowed", "wg"), [(1024, 256), (256, 256), (255, 128), (128, 128), (64, 64)])
@pytest.mark.parametrize("limit", ["max-compute-invocations-per-workgroup", "max-compute-workgroup-size-x"])
def test_a_smaller_schedule_is_taken_where_the_device_is_smaller(
    hardware: Adapter, device: GpuDevice, limit: str, allowed: int, wg: int
) -> None:
    assert plan(hardware, device.limits | {limit: allowed}).launch == LaunchConfig(wg, 1, split_chunks=wg == 256)


def test_a_chunk_is_split_where_its_levels_fit(hardware: Adapter, device: GpuDevice) -> None:
    """Two levels' slots fill the 16 KiB that every device has; wider ones need more."""
    models = (presets.checkerboard().model, presets.lizard().model)
    board, lizard = (flat_layout(Circuit.initial(model, 1)) for model in models)
    limit = "max-compute-workgroup-storage-size"

    def split(layout: Layout, allowed: int, side: int = 16) -> bool:
        shape = replace(SHAPE, batch=1, height=side, width=side, channels=layout.channels)
        binding = dict.fromkeys(("max-storage-buffer-binding-size", "max-buffer-size"), 1 << 31)
        return plan(hardware, device.limits | binding | {limit: allowed}, shape, layout).launch.split_chunks

    assert split(board, 1 << 14)
    assert not split(board, (1 << 14) - 1)
    assert not split(lizard, 1 << 14)
    assert split(lizard, 1 << 16)
    assert split(board, 1 << 16, side=1024)


def test_a_layer_that_reads_far_back_keeps_chunks_whole(hardware: Adapter, device: GpuDevice) -> None:
    levels = tuple(Level(2 * i, 2, 2 * i, 1) for i in range(3))
    wires = np.array([(0, 1), (2, 3), (9, 10), (9, 0), (11, 12), (11, 4)], dtype=np.uint32)
    for far, split in ((4, True), (9, False)):
        wires[-1, 1] = far
        layout = Layout(channels=1, gates=6, levels=levels, wires=wires.copy())
        assert plan(hardware, device.limits, replace(SHAPE, channels=1), layout).launch.split_chunks == split


TOO_LARGE = (
    "The buffer 'scratch' needs 0.5 MB, but this device binds at most 0.1 MB: use a smaller grid, batch or circuit."
)
REFUSED = {
    ("max-compute-invocations-per-workgroup", 32): (
        "The kernel coefficients needs workgroups of 64, but the device allows 32: use the CPU engine."
    ),
    ("max-storage-buffers-per-shader-stage", 4): (
        "The kernel draw_samples binds 5 storage buffers, but this device allows 4: use the CPU engine."
    ),
    ("max-compute-workgroup-storage-size", 512): (
        "The kernel gradients needs 1024 bytes of workgroup memory, but this device has 512: use the CPU engine."
    ),
    ("max-storage-buffer-binding-size", 100_000): TOO_LARGE,
    ("max-buffer-size", 100_000): TOO_LARGE,
    ("max-compute-workgroups-per-dimension", 0): "Expected at most 65535 models at once, got 1: train fewer.",
}


@pytest.mark.parametrize(("limit", "allowed"), REFUSED)
def test_limits_are_named_with_numbers(adapter: Adapter, device: GpuDevice, limit: str, allowed: int) -> None:
    with pytest.raises(LimitError) as caught:
        plan(adapter, device.limits | {limit: allowed})
    assert str(caught.value) == REFUSED[limit, allowed]


def test_too_many_layers(adapter: Adapter, device: GpuDevice) -> None:
    deep = flat_layout(random_circuit(np.random.default_rng(1), perceive=(8, 2), hidden=(2,) * 300))
    with pytest.raises(LimitError) as caught:
        plan(adapter, device.limits, layout=deep)
    assert str(caught.value) == (
        "The circuit has 303 layers, but the GPU kernels support 256: use fewer layers, or set `engine` to cpu."
    )


def test_too_many_gates(adapter: Adapter, device: GpuDevice) -> None:
    gates = 65535 * 8 + 1
    levels = (Level(0, gates - 1, 0, 1), Level(gates - 1, 1, gates - 1, 1))
    wide = Layout(channels=1, gates=gates, levels=levels, wires=np.zeros((gates, 2), dtype=np.uint32))
    with pytest.raises(LimitError) as caught:
        plan(adapter, device.limits, replace(SHAPE, channels=1), wide)
    assert str(caught.value) == (
        "The circuit has 524281 gates, but the GPU kernels support 524280: use narrower layers, or set `engine` to cpu."
    )


def test_a_model_too_large_is_refused_before_anything_is_made(adapter: Adapter) -> None:
    device = GpuDevice(adapter, {"max-storage-buffer-binding-size": 1 << 27})
    config = presets.checkerboard().with_(train={"batch": 20000})
    circuit = Circuit.initial(config.model, 23)
    job = replace(make_job(), config=config, circuit=circuit)
    sentence = r"^The buffer 'states' needs 165\.\d MB, but this device binds at most 134\.2"
    with pytest.raises(LimitError, match=sentence):
        on_device(device, [job], [start(job)])


def test_memory_that_the_device_does_not_have(device: GpuDevice) -> None:
    expected = r"^Could not allocate 1000000\.0 MB for the buffer 'states' \(.*\): use a smaller grid, batch or circ"
    with pytest.raises(LimitError, match=expected):
        device.buffer("states", 10**12)


def test_the_order_of_sums_follows_from_circuit_and_grid_alone() -> None:
    """Blocks hold a power of two of chunks, at most 128 blocks in all, before rounding up to lanes."""
    for batch, each, blocks in ((1, 1, 3), (17, 1, 38), (58, 1, 127), (59, 2, 65), (2000, 64, 69)):
        for launch in LAUNCHES:
            got = Plan(tuple(wired([LAYOUT])), replace(SHAPE, batch=batch), launch)
            assert got.chunks_per_block == each
            assert 0 <= got.blocks - blocks < launch.chunks_per_workgroup
            assert got.chunks == got.blocks * each


SMALL = {
    "max-compute-invocations-per-workgroup": 64,
    "max-compute-workgroup-size-x": 64,
    "max-compute-workgroup-storage-size": 1024,
    "max-storage-buffer-binding-size": 1 << 20,
    "max-buffer-size": 1 << 20,
}


def test_a_small_device_trains(adapter: Adapter, device: GpuDevice) -> None:
    """The device has these limits, so that the driver would complain; also under hardware's schedule."""
    job = make_job()
    expected = train_alone(device, job, start(job), 2)
    small = GpuDevice(adapter, SMALL)
    assert {name: small.limits[name] for name in SMALL} == SMALL
    assert_same(train_alone(small, job, start(job), 2), expected)
    assert_same(train_alone(small, job, start(job), 2, launch=HARDWARE[-1]), expected)
    assert plan_for(small, [job]).total_bytes() < 1 << 20


def test_nodes_are_kept_while_memory_allows(adapter: Adapter, device: GpuDevice) -> None:
    kept = plan(adapter, device.limits)
    again = plan(adapter, device.limits, max_memory=kept.total_bytes() - 1)
    assert kept.launch.store_activations
    assert not again.launch.store_activations
    assert again.total_bytes() < kept.total_bytes()
    assert plan(adapter, device.limits, max_memory=kept.total_bytes()) == kept


@pytest.mark.parametrize(("memory", "kept"), [(64 << 30, True), (8 << 30, False), (None, False)])
def test_software_keeps_nodes_by_the_machines_memory(
    software: Adapter,
    hardware: Adapter,
    device: GpuDevice,
    monkeypatch: pytest.MonkeyPatch,
    memory: int | None,
    kept: bool,
) -> None:
    """Some 2 GB of nodes. A card does not report its memory: one with its own is expected to have enough."""
    monkeypatch.setattr(planner, "physical_memory", lambda: memory)
    circuit = Circuit.initial(presets.checkerboard().model, 23)
    shape = Shape.of(circuit, (2, 64, 64, 8), 20)
    assert plan(software, device.limits, shape, flat_layout(circuit)).launch.store_activations == kept
    assert plan(hardware, device.limits, shape, flat_layout(circuit)).launch.store_activations
    integrated = replace(hardware, type="IntegratedGPU")
    assert not plan(integrated, device.limits, shape, flat_layout(circuit)).launch.store_activations


def test_too_little_memory_names_the_least(adapter: Adapter, device: GpuDevice) -> None:
    words = r"The smallest plan needs [\d.]+ MB, but --max-memory allows 0\.0 MB: allow at least ([\d.]+) MB"
    least = re.compile(words)
    with pytest.raises(LimitError, match=least) as raised:
        plan(adapter, device.limits, max_memory=1)
    found = least.search(str(raised.value))
    assert found is not None
    assert plan(adapter, device.limits, max_memory=round(float(found[1]) * 1e6)).total_bytes() <= float(found[1]) * 1e6


def test_a_big_grid_is_planned_without_keeping_nodes(software: Adapter, hardware: Adapter, device: GpuDevice) -> None:
    """256x256 under the portable 128 MiB binding: nothing scales with cells times nodes."""
    circuit = Circuit.initial(presets.checkerboard().model, 23)
    shape = Shape.of(circuit, (1, 256, 256, 8), 20)
    limits = device.limits | {"max-storage-buffer-binding-size": 1 << 27}
    for adapter in (software, hardware):
        made = plan(adapter, limits, shape, flat_layout(circuit))
        assert not made.launch.store_activations
        assert made.total_bytes() < 300e6


def test_the_worked_example() -> None:
    """The example in `Plan`: bytes stored for the paper's checkerboard."""
    config = presets.checkerboard()
    circuit = Circuit.initial(config.model, config.seed)
    kept = Plan(tuple(wired([flat_layout(circuit)])), Shape.training(circuit, config))
    assert (kept.chunks, kept.nodes, kept.buffer_counts()["kept"]) == (32, 3144, 20)
    assert kept.buffer_bytes()["kept"] == 32 * 3144 * 64
    counts = [
        replace(kept, launch=kept.launch.with_memory(False, spacing)).buffer_counts()["states"]
        for spacing in planner.checkpoint_distances(20)
    ]
    assert counts == [21, 12, 9]
