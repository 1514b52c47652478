"""Kernels of the soft forward and backward pass against their references, two models at once."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.engine.events import NO_FAULTS
from difflogic.engine.shape import Shape
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import LaunchConfig
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from difflogic.reference.kernels.coefficients import Parameters, coefficients
from difflogic.reference.kernels.gate_backward import gate_backward
from difflogic.reference.kernels.gate_forward import gate_forward
from difflogic.reference.kernels.gradients import gradients
from difflogic.reference.kernels.loss import loss
from tests import tolerances
from tests.gpu.rig import LAUNCHES, SAMPLE, Rig, rig
from tests.random_circuits import random_circuit
from tests.sampled import sampled

M = 2
CLOSE = {"rtol": tolerances.STATE_RTOL, "atol": tolerances.STATE_ATOL}
WAYS = [
    *((launch, False) for launch in LAUNCHES),
    # A kernel with trees takes a software adapter many seconds to compile: the two schedules that differ most.
    (SAMPLE[0], True),
    (SAMPLE[-1], True),
]
"""Schedules, and whether the wiring is the paper's, with trees."""

SHAPES = {
    "zero": (Shape(3, 5, 7, 2, steps=3), 1.0),
    "periodic": (Shape(1, 3, 3, 3, steps=2, periodic=True), 1.0),
    "asynchronous": (Shape(2, 4, 6, 1, steps=2), 0.5),
    "asynchronous periodic": (Shape(17, 3, 4, 2, steps=2, periodic=True), 0.5),
}

CORNERS = (("zero", "asynchronous periodic"), ("periodic", "asynchronous"))
_TRIED = [(name, *way) for number, way in enumerate(WAYS) for name in (CORNERS[number % 2] if number else SHAPES)]
TRIED = sampled(_TRIED, [case for case in _TRIED if case[1] in SAMPLE])
"""Every shape with the first way, and with each other two of them, in turns: both borders, all cells and some."""


@pytest.fixture
def case(name: str) -> tuple[Shape, float]:
    return SHAPES[name]


def circuits(shape: Shape, trees: bool = False) -> list[Circuit]:
    """Two of one shape, wired differently: only the second's update reads the cell itself, and so needs more slots."""
    drawn = []
    for m in range(M):
        rng = np.random.default_rng(m)
        options = {"periodic": shape.periodic, "per_kernel": True, "trees": trees, "unique": trees}
        circuit = random_circuit(rng, shape.channels, **options)
        first = circuit.update_wires[0]
        source = rng.integers(0, shape.channels, first.shape) if m else np.maximum(first, shape.channels)
        drawn.append(replace(circuit, update_wires=(source, *circuit.update_wires[1:])))
    few, many = (flat_layout(circuit).slot_count for circuit in drawn)
    assert few + shape.channels < many
    return drawn


def coefficients_of(circuit: Circuit) -> np.ndarray:
    made = np.empty((circuit.gates, 4), dtype=np.float32)
    coefficients(circuit.flat_logits(), made, np.empty(circuit.gates, dtype=np.uint32))
    return made


def some_masks(shape: Shape, fire_rate: float, rng: np.random.Generator) -> np.ndarray | None:
    if fire_rate == 1:
        return None
    return (rng.random((M, shape.steps, shape.cells_per_grid)) <= fire_rate).astype(np.float32)


def uniform(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.random(shape, dtype=np.float32)


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_coefficients(device: GpuDevice, scale: float) -> None:
    drawn = circuits(Shape(1, 3, 3, 2, 1))
    logits = np.stack([np.round(scale * circuit.flat_logits()) for circuit in drawn])
    assert (logits == logits.max(axis=-1, keepdims=True)).sum() > M * drawn[0].gates, "some largest are tied"
    with rig(device, drawn, Shape(1, 3, 3, 2, 1)) as r:
        r.put("logits", logits)
        r.run(*r.work.coefficients)
        got = r.get("coefficients", drawn[0].gates, 4)
        ids = r.get("gate_ids", drawn[0].gates, dtype=np.uint32)
    for m in range(M):
        expected, expected_ids = np.empty_like(got[m]), np.empty_like(ids[m])
        with np.errstate(under="ignore"):
            coefficients(logits[m], expected, expected_ids)
        np.testing.assert_allclose(got[m], expected, rtol=0, atol=tolerances.COEFFICIENT_ATOL)
        np.testing.assert_array_equal(ids[m], expected_ids)


@pytest.mark.parametrize(("name", "launch", "trees"), TRIED, ids=str)
def test_gate_forward(device: GpuDevice, case: tuple[Shape, float], launch: LaunchConfig, trees: bool) -> None:
    """The step before the last: it reads and writes in the middle of the states."""
    shape, fire_rate = case
    at = shape.steps - 1
    drawn = circuits(shape, trees)
    rng = np.random.default_rng(9)
    start = uniform(rng, M, shape.channels, shape.cells)
    masks = some_masks(shape, fire_rate, rng)
    with rig(device, drawn, shape, launch=launch, fire_rate=fire_rate) as r:
        r.put("coefficients", np.stack([coefficients_of(circuit) for circuit in drawn]))
        r.put_cells(r.work.state(at), start)
        if masks is not None:
            r.put("masks", masks)
        r.run(r.work.forward[at])
        got = r.get_cells(r.work.state(at + 1), *start.shape[1:])
        nodes = r.get_kept(at)
        assert r.plan.wirings[0].trees is trees
    for m in range(M):
        values, after = np.empty((r.layouts[m].nodes, shape.cells), dtype=np.float32), np.empty_like(start[m])
        masked = None if masks is None else masks[m]
        parameters = Parameters(coefficients_of(drawn[m]))
        gate_forward(shape, at, r.layouts[m], parameters, masked, start[m], after, values)
        np.testing.assert_array_equal(nodes[m][: 9 * shape.channels], values[: 9 * shape.channels])
        np.testing.assert_allclose(nodes[m], r.nodes_of(m, values), **CLOSE)
        np.testing.assert_allclose(got[m], after, **CLOSE)


@pytest.mark.parametrize("name", SHAPES)
def test_loss(device: GpuDevice, case: tuple[Shape, float]) -> None:
    shape = replace(case[0], loss_channels=case[0].channels)
    rng = np.random.default_rng(2)
    state = uniform(rng, M, shape.channels, shape.cells)
    targets = uniform(rng, M, shape.loss_channels, shape.cells)
    control = np.arange(1, 8 * M + 1, dtype=np.uint32).reshape(M, 8)
    with rig(device, circuits(shape), shape) as r:
        r.put_cells(r.work.state(shape.steps), state)
        r.put_cells("targets", targets)
        r.put("control", control)
        r.run(r.work.backward[0])
        patches = (9 * shape.channels, shape.cells)
        d_patches = r.get_cells(r.work.d_patches(shape.steps), *patches)
        assert np.isnan(r.get_cells(r.work.d_patches(shape.steps + 1), *patches)).all()
        partials = r.get("loss_partials", r.plan.chunks)
        words = r.get("control", 8, dtype=np.uint32)
    for m in range(M):
        expected, by_cell = np.empty(patches, np.float32), np.empty(shape.cells, np.float32)
        loss(shape, state[m], targets[m][None], expected, by_cell, control[m])
        np.testing.assert_array_equal(d_patches[m], expected)
        by_chunk = np.add.reduceat(by_cell, np.arange(0, shape.cells, 16))
        np.testing.assert_allclose(partials[m][: len(by_chunk)], by_chunk, rtol=tolerances.LOSS_RTOL)
        assert not partials[m][len(by_chunk) :].any()
    np.testing.assert_array_equal(words, control)


def backward_inputs(
    r: Rig, drawn: list[Circuit], rng: np.random.Generator, masks: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Random inputs of one backward step, uploaded, by name; the nodes in trees follow from the patch."""
    shape, layout = r.shape, r.layouts[0]
    inputs = {
        "coefficients": np.stack([coefficients_of(circuit) for circuit in drawn]),
        "kept": uniform(rng, M, layout.nodes, shape.cells),
        "d_next": uniform(rng, M, 9 * shape.channels, shape.cells) - np.float32(0.5),
        "partials": uniform(rng, M, r.plan.blocks, 4, layout.instances, 4),
    }
    models = zip(inputs["kept"], inputs["coefficients"], r.layouts, r.plan.wirings, strict=True)
    for nodes, coefs, layout, wiring in models:
        c0, ca, cb, cab = coefs[layout.instance_gates[: wiring.inner]].T[:, :, None]
        for _ in range(wiring.tree_levels - 1):  # level by level: what a round reads wrong, the next does not
            a, b = (nodes[layout.wires[: wiring.inner, side]] for side in (0, 1))
            nodes[layout.patch_nodes : layout.patch_nodes + wiring.inner] = c0 + ca * a + (cb + cab * a) * b
    r.put("coefficients", inputs["coefficients"])
    if masks is not None:
        r.put("masks", masks)
    return inputs


@pytest.mark.parametrize(("name", "launch", "trees"), TRIED, ids=str)
@pytest.mark.parametrize("last", [False, True])
def test_gate_backward(device: GpuDevice, case: tuple[Shape, float], launch, last, trees) -> None:
    shape, fire_rate = case
    at = shape.steps - 1 if last else 0
    drawn = circuits(shape, trees)
    rng = np.random.default_rng(4)
    masks = some_masks(shape, fire_rate, rng)
    with rig(device, drawn, shape, launch=launch, fire_rate=fire_rate) as r:
        layout = r.layouts[0]
        given = backward_inputs(r, drawn, rng, masks)
        nodes = given["kept"]
        r.put_kept(at, np.stack([r.nodes_of(m, given["kept"][m]) for m in range(M)]))
        r.put_cells(r.work.d_patches(at + 1), given["d_next"])
        if not last:
            r.put("partials", given["partials"])
        r.run(*r.work.backward_step(at))
        got = r.get_cells(r.work.d_patches(at), *given["d_next"].shape[1:])
        partials = r.get("partials", *given["partials"].shape[1:])
    before = np.zeros_like(partials) if last else given["partials"]
    for m in range(M):
        d, moments = given["d_next"][m], np.zeros((layout.instances, 4), dtype=np.float32)
        d_patches = np.empty_like(d)
        scratch = np.full((r.layouts[m].slot_count, shape.cells), np.nan, dtype=np.float32)
        parameters, mask = Parameters(given["coefficients"][m]), None if masks is None else masks[m]
        gate_backward(shape, at, r.layouts[m], parameters, mask, nodes[m], d, scratch, d_patches, moments)
        atol = tolerances.GRADIENT_SHARE * np.abs(d_patches).max()
        np.testing.assert_allclose(got[m], d_patches, rtol=0, atol=atol)
        added = (partials[m] - before[m]).sum(axis=(0, 1))
        np.testing.assert_allclose(added, moments, rtol=0, atol=tolerances.GRADIENT_SHARE * np.abs(moments).max())


@pytest.mark.parametrize(("blocks", "launch"), [(1, 1), (5, 1), (21, 1), (24, 0)])
def test_gradients(device: GpuDevice, blocks: int, launch: int) -> None:
    """Blocks that the eight invocations of a gate share unevenly."""
    shape = Shape(1, 4, 4 * blocks, 3, steps=1)
    drawn = circuits(shape, trees=launch == 0)
    rng = np.random.default_rng(5)
    with rig(device, drawn, shape, launch=SAMPLE[launch]) as r:
        assert r.plan.blocks == blocks
        layout = r.layouts[0]
        partials = uniform(rng, M, blocks, 4, layout.instances, 4) - np.float32(0.5)
        r.put("partials", partials)
        r.put("logits", np.stack([circuit.flat_logits() for circuit in drawn]))
        r.put("control", np.zeros((M, 8), dtype=np.uint32))
        r.run(r.work.backward[-2])
        got = r.get("gradients", layout.gates, 16)
        words = r.get("control", 8, dtype=np.uint32)
    for m in range(M):
        expected, control = np.empty_like(got[m]), np.zeros(8, dtype=np.uint32)
        gradients(NO_FAULTS, r.layouts[m], partials[m].sum(axis=(0, 1)), drawn[m].flat_logits(), expected, control)
        np.testing.assert_array_equal(words[m], control)
        np.testing.assert_allclose(got[m], expected, rtol=0, atol=tolerances.GRADIENT_SHARE * np.abs(expected).max())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_gradients_flag_what_is_not_finite(device: GpuDevice, bad: float) -> None:
    shape = Shape(1, 3, 3, 2, steps=1)
    drawn = circuits(shape)
    with rig(device, drawn, shape) as r:
        partials = np.zeros((M, r.plan.blocks, 4, r.layouts[0].instances, 4), dtype=np.float32)
        partials[1, 0, 3, -1, 2] = bad
        r.put("partials", partials)
        r.put("logits", np.stack([circuit.flat_logits() for circuit in drawn]))
        r.put("control", np.zeros((M, 8), dtype=np.uint32))
        r.run(r.work.backward[-2])
        words = r.get("control", 8, dtype=np.uint32)
    assert words[:, 6].tolist() == [0, 1]
    assert words.sum() == 1
