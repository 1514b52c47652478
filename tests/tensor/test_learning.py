"""Test layers and the optimiser: their results, and that networks learn."""

from collections.abc import Callable

import numpy as np
import pytest

from difflogic.devices.device import Device
from difflogic.errors import DeviceMismatchError, UsageError
from difflogic.gpu import buffer_pool
from difflogic.gpu.arrays import GpuArrays
from difflogic.gpu.buffer_pool import BufferPool
from difflogic.model.circuit import Circuit
from difflogic.tensor import Tensor, nn, optim, to_device


@pytest.mark.parametrize("max_norm", [None, 0.5, 1e9])
def test_adam(max_norm: float | None) -> None:
    """Compare with the formulas of the paper in float64, for two parameters with a common gradient norm."""
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(3), rng.standard_normal((2, 2))]
    parameters = [Tensor(each, requires_grad=True, dtype="float64") for each in values]
    adam = optim.Adam(parameters, lr=0.1, beta1=0.8, beta2=0.9, epsilon=1e-3, max_norm=max_norm)
    mu, nu = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    for t in range(1, 6):
        adam.lr = lr = 0.1 / t
        sum(((each - 1) ** 4).sum() for each in parameters).backward()
        gradients = [4 * (v - 1) ** 3 for v in values]
        norm = np.sqrt(sum((g * g).sum() for g in gradients))
        for k, g in enumerate(gradients):
            clipped = g * min(1, (max_norm or np.inf) / norm)
            mu[k] = 0.8 * mu[k] + 0.2 * clipped
            nu[k] = 0.9 * nu[k] + 0.1 * clipped**2
            values[k] = values[k] - lr * (mu[k] / (1 - 0.8**t)) / (np.sqrt(nu[k] / (1 - 0.9**t)) + 1e-3)
        adam.step()
        assert [each.grad for each in parameters] == [None, None]
        for parameter, value in zip(parameters, values, strict=True):
            np.testing.assert_allclose(parameter.numpy(), value, rtol=1e-12)


def test_adam_continues_from_its_state() -> None:
    def steps(parameter: Tensor, adam: optim.Adam, count: int) -> None:
        for _ in range(count):
            (parameter * parameter * parameter).sum().backward()
            adam.step()

    whole, first = (Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    steps(whole, optim.Adam([whole]), 5)
    adam = optim.Adam([first])
    steps(first, adam, 3)
    second = Tensor(first.numpy(), requires_grad=True)
    resumed = optim.Adam([second])
    for each, saved in zip(resumed.state, adam.state, strict=True):
        each.assign(saved.numpy())
    steps(second, resumed, 2)
    assert second.numpy().tobytes() == whole.numpy().tobytes()


def test_a_parameter_without_a_gradient_stays() -> None:
    used, unused = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    adam = optim.Adam([used, unused], lr=0.5, max_norm=1.0)
    (used * 1).sum().backward()
    adam.step()
    assert (used.item(), unused.item()) == (0.5, 1)
    adam.step()
    assert (used.item(), unused.item()) == (0.5, 1)
    with pytest.raises(UsageError, match="at least one parameter"):
        optim.Adam([])
    with pytest.raises(DeviceMismatchError, match=r"Adam expects operands on the same device, but parameters\[0\] is"):
        optim.Adam([used, Tensor([1.0], "reference", requires_grad=True)])


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
def test_network_learns_a_nonlinear_problem(activation: nn.Activation) -> None:
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    y = Tensor([[0], [1], [1], [0]])
    net = nn.MLP(2, [16, 1], activation, seed=1)
    adam = optim.Adam(net.parameters(), lr=0.05)
    for _ in range(300):
        loss = ((net(Tensor(x)) - y) ** 2).mean()
        loss.backward()
        adam.step()
    assert loss.item() < 0.01


def test_groups_are_summed() -> None:
    x = Tensor(np.arange(12.0).reshape(2, 6))
    assert nn.GroupSum(2, tau=2.0)(x).numpy().tolist() == [[1.5, 6], [10.5, 15]]


def learner(device: Device | str) -> Callable[[int], float]:
    """Trains a step on the k-th batch of 32 rows, at another learning rate each time."""
    net = nn.MLP(4, [16, 2], device=device)
    adam = optim.Adam(net.parameters(), lr=1e-2, max_norm=0.5)

    def train(k: int) -> float:
        adam.lr = 1e-2 / (k + 1)
        x = np.random.default_rng(k).standard_normal((32, 4))
        right = np.stack([x[:, 0] > 0, x[:, 0] <= 0], axis=1)
        loss = ((net(Tensor(x, device)).softmax() - Tensor(right, device)) ** 2).mean()
        loss.backward()
        adam.step()
        return loss.item()

    return train


def test_gpu_learns_as_the_processor_and_receives_only_batches(gpu: Device, arrays: GpuArrays) -> None:
    """And the learning rate; the loss is read."""
    there, here = learner(gpu), learner("cpu")
    assert there(0) == pytest.approx(here(0), rel=1e-4)
    before = arrays.device.uploaded.copy(), arrays.device.downloaded.copy()
    losses = [there(k) for k in range(1, 6)]
    assert losses == pytest.approx([here(k) for k in range(1, 6)], rel=1e-4)
    assert losses[-1] < losses[0]
    assert arrays.device.uploaded - before[0] == {"arrays": 5 * 4 * (32 * 6 + 1)}
    assert arrays.device.downloaded - before[1] == {"arrays": 5 * 4}


def test_buffers_are_reused_within_a_limit(arrays: GpuArrays, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = BufferPool(arrays.device)
    leases = [pool.take(size) for size in (1, 256, 257, 1000)]
    buffers = [lease.buffer for lease in leases]
    assert [buffer.size for buffer in buffers] == [256, 256, 512, 1024]
    del leases
    assert pool.take(300).buffer is buffers[2]
    monkeypatch.setattr(buffer_pool, "MOST_FREE_BYTES", 0)
    lease = pool.take(1024)
    assert lease.buffer is buffers[3]
    del lease
    assert pool.take(1024).buffer is not buffers[3]


def test_layers_move_with_their_parameters(gpu: Device) -> None:
    bits = np.random.default_rng(0).integers(0, 2, (4, 6))
    actor, critic = nn.Logic(Circuit.feed_forward([6, 8, 4], seed=0), hard=True), nn.MLP(6, [3, 1])
    here = {"layers": [actor, critic], "votes": nn.GroupSum(2, tau=2.0), "x": (Tensor(bits),)}
    there = to_device(here, gpu)
    for each in (here, there):
        actor, critic = each["layers"]
        (x,) = each["x"]
        loss = ((each["votes"](actor(x)) - critic(x)) ** 2).mean()
        each["loss"] = loss.item()
    loss.backward()
    assert there["loss"] == pytest.approx(here["loss"], rel=1e-5)
    optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.1).step()
    assert [each.device for each in (*actor.parameters(), *critic.parameters(), x)] == [gpu] * 6
    for old, new in zip(here["layers"][1].parameters(), critic.parameters(), strict=True):
        assert (old.numpy() != new.numpy()).any()
        assert old.device == Device("cpu")
    with pytest.raises(UsageError, match=r"to_device requires tensors or layers, .* got array"):
        to_device([np.zeros(2)], gpu)
