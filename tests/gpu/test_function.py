"""Functions on a GPU: the initial state's adjoint equals the reference's, and no bit depends on how work is divided."""

import numpy as np
import pytest

from difflogic.engine.shape import Shape
from difflogic.errors import LimitError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import HARDWARE, SOFTWARE
from difflogic.model.circuit import Circuit
from difflogic.reference.kernels.d_start import d_start
from tests import tolerances
from tests.gpu.rig import PAIRED, rig
from tests.random_circuits import random_circuit

SHAPES = [
    Shape(1, 3, 3, 1, steps=2),
    Shape(3, 5, 7, 2, steps=3, loss_channels=2, periodic=True, loss_steps=(1, 2, 3)),
    Shape(2, 4, 16, 2, steps=1, loss_channels=2),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_d_start(device: GpuDevice, shape: Shape) -> None:
    circuit = random_circuit(np.random.default_rng(0), shape.channels, periodic=shape.periodic)
    with rig(device, [circuit], shape, given=True) as r:
        d_patches = np.random.default_rng(1).random((1, 9 * shape.channels, shape.cells), dtype=np.float32)
        r.put_cells(r.work.d_patches(0), d_patches)
        r.run(r.work.pull_back[-1])
        (got,) = r.get_cells("d_start", shape.channels, shape.cells)
        expected = np.empty_like(got)
        d_start(shape, d_patches[0], expected)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerances.STATE_ATOL * 10)


@pytest.mark.exhaustive
def test_no_schedule_changes_a_bit(device: GpuDevice) -> None:
    circuit = Circuit.feed_forward([9, 20, 12], seed=0)
    circuit = circuit.with_logits(np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32))
    x = np.random.default_rng(1).random((70, 9)).astype(np.float32)
    first = None
    for launch in (SOFTWARE[0], HARDWARE[0], PAIRED):
        function = GpuEngine(device, launch).open_function(circuit, [70])
        y = function.forward(x)
        found = (y, *function.backward(y - 1))
        function.close()
        for ours, theirs in zip(found, first or found, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        first = found


def test_states_that_do_not_fit_are_refused(device: GpuDevice) -> None:
    engine = GpuEngine(device, SOFTWARE[0].with_memory(store_activations=False, checkpoint_every=2))
    circuit = random_circuit(np.random.default_rng(0))
    with engine.open_function(circuit, (1, 4, 4), 4) as function:
        function.forward(np.zeros((1, 4, 4, 2)))
    with pytest.raises(LimitError, match=r"The states of 4 steps do not fit into the memory of .* the last state"):
        engine.open_function(circuit, (1, 4, 4), 4, every_state=True)
