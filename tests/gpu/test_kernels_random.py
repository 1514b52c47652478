"""Random numbers: the same bits as NumPy's, for start grids and fire masks."""

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Shape
from difflogic.gpu.device import GpuDevice
from difflogic.reference.kernels.fire_mask import fire_mask
from difflogic.reference.kernels.seed_grid import seed_grid
from tests.gpu.rig import assert_matches_reference, rig
from tests.random_circuits import random_circuit


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
    assert_matches_reference(got, lambda m, state: seed_grid(shape, control[m], state))


@pytest.mark.parametrize("fire_rate", [0.1, 0.6])
@pytest.mark.parametrize("shape", [Shape(2, 14, 14, 1, 50), Shape(1, 3, 3, 1, 1), Shape(3, 5, 7, 1, 6)], ids=str)
def test_fire_masks(device: GpuDevice, shape: Shape, fire_rate: float) -> None:
    control = control_words((23, 24))
    with rig(device, [random_circuit(np.random.default_rng(0), 1)] * 2, shape, fire_rate=fire_rate) as r:
        r.put("control", control)
        r.run(r.work.dispatch("fire_mask"))
        got = r.get("masks", shape.steps, shape.cells_per_grid)
    assert_matches_reference(got, lambda m, masks: fire_mask(shape, fire_rate, control[m], masks))
    assert len(np.unique(got)) == 2
