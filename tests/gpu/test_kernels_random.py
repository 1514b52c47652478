"""Random numbers: the same bits as NumPy's, for words, start grids and fire masks."""

from __future__ import annotations

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Shape
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.probes import AnyShader
from difflogic.gpu.shaders import Source, shader_root
from difflogic.reference.kernels.fire_mask import fire_mask
from difflogic.reference.kernels.seed_grid import seed_grid
from tests.gpu.rig import assert_twins, rig
from tests.random_circuits import random_circuit

COUNT_WORDS = """
@group(0) @binding(0) var<storage, read> keys: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> words: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> splits: array<vec4<u32>>;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) {
    let key = keys[id.x];
    splits[id.x] = vec4<u32>(split_first(key), split_second(key));
    let half = (COUNT + 1u) / 2u;
    for (var i = 0u; i < half; i++) { words[id.x * half + i] = random_pair(key, i, COUNT); }
}
"""


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_words_and_splits(device: GpuDevice, count: int) -> None:
    keys = np.random.default_rng(1).integers(0, 2**32, (9, 2), dtype=np.uint32)
    keys[0], keys[1] = 0, 0xFFFFFFFF
    half = (count + 1) // 2
    text = (shader_root() / "common/threefry.wgsl").read_text() + COUNT_WORDS.replace("COUNT", f"{count}u")
    outputs = [np.zeros((9, half, 2), np.uint32), np.zeros((9, 4), np.uint32)]
    program = AnyShader(device, Source("words", text, ()), [keys, *outputs], uniforms=0)
    program.run([0, 1, 2], (9, 1))
    words = program.read(1).reshape(9, half, 2).transpose(0, 2, 1).reshape(9, -1)[:, :count]
    np.testing.assert_array_equal(words, [prng.random_bits(key, count) for key in keys])
    np.testing.assert_array_equal(program.read(2).reshape(9, 2, 2), [prng.split(key) for key in keys])


def control_words(seeds: tuple[int, ...]) -> np.ndarray:
    words = np.arange(8 * len(seeds), dtype=np.uint32).reshape(-1, 8)
    for row, seed in zip(words, seeds, strict=True):
        row[c.DATA_KEY], row[c.TRAIN_KEY] = prng.split(prng.key_from_seed(seed))
    return words


@pytest.mark.parametrize(
    "shape", [Shape(2, 16, 16, 8, 1), Shape(1, 3, 3, 1, 2), Shape(17, 5, 7, 3, 1), Shape(33, 3, 4, 2, 1)], ids=str
)
def test_start_grids(device: GpuDevice, shape: Shape) -> None:
    control = control_words((23, 24))
    drawn = [random_circuit(np.random.default_rng(0), shape.channels)] * 2
    with rig(device, drawn, shape) as r:
        r.put("control", control)
        r.run(*r.work.seed)
        got = r.get_cells(r.work.state(0), shape.channels, shape.cells)
        np.testing.assert_array_equal(r.get("control", 8, dtype=np.uint32), control)
    assert_twins(got, lambda m, state: seed_grid(shape, control[m], state))


@pytest.mark.parametrize("fire_rate", [0.1, 0.6])
@pytest.mark.parametrize("shape", [Shape(2, 14, 14, 1, 50), Shape(1, 3, 3, 1, 1), Shape(3, 5, 7, 1, 6)], ids=str)
def test_fire_masks(device: GpuDevice, shape: Shape, fire_rate: float) -> None:
    control = control_words((23, 24))
    with rig(device, [random_circuit(np.random.default_rng(0), 1)] * 2, shape, fire_rate=fire_rate) as r:
        r.put("control", control)
        r.run(*r.work.fire)
        got = r.get("masks", shape.steps, shape.cells_per_grid)
    assert_twins(got, lambda m, masks: fire_mask(shape, fire_rate, control[m], masks))
    assert len(np.unique(got)) == 2
