"""Test logic circuits as layers against the same circuit in tensor operations."""

from collections.abc import Callable

import numpy as np
import pytest

from difflogic.autodiff import TABLE
from difflogic.devices.device import Device
from difflogic.errors import DeviceMismatchError, ShapeError
from difflogic.gpu.arrays import GpuArrays
from difflogic.model.circuit import Circuit
from difflogic.tensor import Tensor, nn, optim
from tests.random_circuits import random_circuit

ENGINES = ("cpu", "reference", "gpu:0")


def noisy(seed: int = 0) -> Circuit:
    circuit = Circuit.feed_forward([5, 8, 6, 4], seed)
    return circuit.with_logits(np.random.default_rng(seed).standard_normal((circuit.gates, 16)).astype(np.float32))


def by_operations(circuit: Circuit, layers: list[Tensor], x: Tensor) -> Tensor:
    values = x.T
    for logits, wires in zip(layers, circuit.update_wires, strict=True):
        chosen = np.eye(values.shape[0])[wires.reshape(2, -1).astype(int)]
        a, b = (Tensor(each, dtype="float64") @ values for each in chosen)
        coefficients = logits.softmax() @ Tensor(TABLE, dtype="float64")
        c0, ca, cb, cab = (coefficients @ Tensor(np.eye(4)[:, [k]], dtype="float64") for k in range(4))
        values = c0 + ca * a + (cb + cab * a) * b
    return values.T


@pytest.mark.parametrize("engine", ENGINES)
def test_two_batches_in_one_loss(engine: str) -> None:
    """Batches of the same size and of different sizes, so that no backward pass uses the buffers of another."""
    circuit, rng = noisy(), np.random.default_rng(1)
    batches = [rng.random((rows, 5)) for rows in (3, 3, 2)]
    layer = nn.Logic(circuit, device=engine)
    inputs = [Tensor(each, engine, requires_grad=True) for each in batches]
    loss = sum(((k + 1) * layer(each) ** 2).sum() for k, each in enumerate(inputs))
    loss.backward()
    layers = [Tensor(each, requires_grad=True, dtype="float64") for each in circuit.update]
    wide = [Tensor(each, requires_grad=True, dtype="float64") for each in batches]
    expected = sum(((k + 1) * by_operations(circuit, layers, each) ** 2).sum() for k, each in enumerate(wide))
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    flat = np.concatenate([each.grad.numpy() for each in layers])
    found = [layer.logits, *inputs]
    rights = [flat, *(each.grad.numpy() for each in wide)]
    for tensor, gradient in zip(found, rights, strict=True):
        share = 1e-4 * np.abs(gradient).max()
        np.testing.assert_allclose(tensor.grad.numpy(), gradient, rtol=0, atol=share)


@pytest.mark.parametrize("engine", ENGINES)
def test_hard_gates_learn_by_soft_gradients(engine: str) -> None:
    """Which of two bits is set where, through votes, from bits alone."""
    x = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
    right = np.stack([x[:, 0] ^ x[:, 1], 1 - (x[:, 0] ^ x[:, 1])], axis=1)
    layer, votes = nn.Logic(Circuit.feed_forward([3, 24, 12], seed=3), hard=True, device=engine), nn.GroupSum(2, tau=2)
    adam = optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(60):
        scores = votes(layer(Tensor(x, engine)))
        (-((scores.softmax() + 1e-6).log() * right).sum(1)).mean().backward()
        adam.step()
    bits = layer(Tensor(x, engine)).numpy()
    assert set(bits.flat) <= {0, 1}
    assert (bits.reshape(8, 2, 6).sum(2).argmax(1) == right.argmax(1)).all()
    assert layer.circuit.flat_logits().tobytes() == layer.logits.numpy().tobytes()


def test_other_shapes_and_devices_are_refused() -> None:
    layer = nn.Logic(noisy())
    with pytest.raises(ShapeError, match=r"This circuit requires x of shape \(B, 5\), got \(5,\)"):
        layer(Tensor(np.zeros(5)))
    with pytest.raises(DeviceMismatchError, match="Logic expects operands on the same device"):
        layer(Tensor(np.zeros((1, 5)), "reference"))


@pytest.mark.parametrize("engine", ENGINES)
def test_empty_batch_has_empty_result(engine: str) -> None:
    layer, x = nn.Logic(noisy(), device=engine), Tensor(np.zeros((0, 5)), engine, requires_grad=True)
    y = layer(x)
    for _ in range(2):
        y.sum().backward()
        assert (y.shape, x.grad.shape) == ((0, 4), (0, 5))
        assert not layer.logits.grad.numpy().any()
        layer.logits.grad.assign(np.ones(layer.logits.shape))
        layer.logits.grad = None


def grids(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(0, 2, (rows, 5, 4, 3)).astype(np.float32)


@pytest.mark.parametrize("hard", [False, True])
def test_automaton_is_a_layer(gpu: Device, hard: bool) -> None:
    """Its steps on a GPU are those of the processor, whatever does not fill a chunk."""
    circuit = random_circuit(np.random.default_rng(0), 3, periodic=True)

    def learner(device: Device | str) -> Callable[[Tensor], tuple[Tensor, ...]]:
        layer = nn.Logic(circuit, 2, hard=hard, device=device)

        def step(x: Tensor) -> tuple[Tensor, ...]:
            y = layer(x)
            ((y - 0.25) ** 2).sum().backward()
            gradient, layer.logits.grad = layer.logits.grad, None
            layer.logits.assign(layer.logits - gradient * 0.1)
            return y, gradient

        return step

    there, host = learner(gpu), learner("cpu")
    for rows in (2, 3, 2):
        found = [each(Tensor(grids(rows), device)) for each, device in ((there, gpu), (host, "cpu"))]
        for ours, theirs in zip(*found, strict=True):
            share = 1e-4 * np.abs(theirs.numpy()).max()
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=share)


def test_step_with_gates_sends_only_its_batch(gpu: Device, arrays: GpuArrays) -> None:
    layer, votes = nn.Logic(noisy(), hard=True, device=gpu), nn.GroupSum(2)
    adam = optim.Adam(layer.parameters(), lr=0.1)

    def step(x: Tensor, right: Tensor) -> Tensor:
        loss = (-(votes(layer(x)).softmax() + 1e-6).log() * right).sum(1).mean()
        loss.backward()
        adam.step()
        return loss

    rng, losses = np.random.default_rng(0), []
    for k in range(30):
        if k == 1:
            uploaded, downloaded = arrays.device.uploaded.copy(), arrays.device.downloaded.copy()
        x = rng.integers(0, 2, (24, 5))
        given = x, np.stack([x[:, 0], 1 - x[:, 0]], axis=1)
        losses.append(step(*(Tensor(each, gpu) for each in given)).item())
    assert arrays.device.uploaded - uploaded == {"arrays": 29 * 4 * 24 * 7}
    assert arrays.device.downloaded - downloaded == {"arrays": 29 * 4}
    assert losses[-1] < 0.5 * losses[0]
