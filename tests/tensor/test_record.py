"""Steps that are recorded: the same numbers, and only what changes crosses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from difflogic.devices.device import Device
from difflogic.errors import UsageError
from difflogic.gpu import buffer_pool
from difflogic.gpu.arrays import GpuArrays
from difflogic.gpu.buffer_pool import BufferPool
from difflogic.tensor import Recorded, Tensor, nn, optim, record

ROWS = 32


def learner(device: Device | str, wrap: Callable[..., Callable[..., Tensor]]) -> Callable[..., Tensor]:
    net = nn.MLP(4, [16, 2], device=device)
    adam = optim.Adam(net.parameters(), lr=1e-2, max_norm=0.5)

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = ((net(x).softmax() - y) ** 2).mean()
        loss.backward()
        adam.step()
        return loss

    recorded = wrap(step, device)

    def train(k: int) -> float:
        adam.lr = 1e-2 / (k + 1)
        x, y = batch(k)
        return recorded(x, y).item()

    return train


def batch(k: int, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    x = rng.standard_normal((rows, 4)).astype(np.float32)
    return x, np.stack([x[:, 0] > 0, x[:, 0] <= 0], axis=1).astype(np.float32)


def eagerly(step: Callable[..., Tensor], device: Device | str) -> Callable[..., Tensor]:
    return lambda *inputs: step(*(Tensor(each, device) for each in inputs))


def test_a_recorded_step_is_the_step_to_the_bit(gpu: Device) -> None:
    """Which in turn is that of the processor but for rounding; the learning rate may change between steps."""
    eager, recorded, host = learner(gpu, eagerly), learner(gpu, Recorded), learner("cpu", Recorded)
    losses = [(eager(k), recorded(k), host(k)) for k in range(6)]
    assert [each[0] for each in losses] == [each[1] for each in losses]
    np.testing.assert_allclose([each[0] for each in losses], [each[2] for each in losses], rtol=1e-4)
    assert losses[5][0] < losses[0][0]


def test_little_crosses(gpu: Device, arrays: GpuArrays) -> None:
    """The batch and the learning rate up and the loss down; nothing is made."""
    train, ledger = learner(gpu, Recorded), arrays.device.ledger
    train(0)
    uploaded, downloaded = ledger.uploaded.copy(), ledger.downloaded.copy()
    for k in range(3):
        train(k)
    assert ledger.uploaded - uploaded == {"arrays": 3 * 4 * (ROWS * 6 + 1)}
    assert ledger.downloaded - downloaded == {"arrays": 3 * 4}


def test_an_eager_loop_sends_its_batch_alone(gpu: Device, arrays: GpuArrays) -> None:
    train, ledger = learner(gpu, eagerly), arrays.device.ledger
    train(0)
    uploaded = ledger.uploaded.copy()
    train(1)
    assert ledger.uploaded - uploaded == {"arrays": 4 * (ROWS * 6 + 1)}


@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
def test_other_shapes_are_recorded_anew(device: str) -> None:
    double = Recorded(lambda x: (x + x, x.sum()), device)
    for values in ([1.0, 2.0], [[3.0]], [5.0, 6.0], Tensor([7.0, 8.0], device)):
        twice, total = double(values)
        expected = values.numpy() if isinstance(values, Tensor) else np.asarray(values)
        assert twice.numpy().tolist() == (2 * expected).tolist()
        assert total.item() == expected.sum()


def test_few_recordings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_RECORDINGS", 2)
    double = Recorded(lambda x: x + x)
    for size in (1, 2, 1, 3, 1, 2):
        assert double(np.ones(size)).numpy().tolist() == [2.0] * size
    assert [kinds[0][0] for kinds in double._recordings] == [(1,), (2,)]
    assert double(Tensor([1 / 3], dtype="float64")).numpy() == [2 / 3]


def test_work_between_replays_does_not_touch_a_recording(gpu: Device) -> None:
    """Its buffers are its own, and what it found on the way stays alive."""
    weights = [Tensor(np.arange(64.0), gpu)]
    step = Recorded(lambda x: ((x * weights[0] + 3).tanh() * Tensor(np.ones(64), gpu)).sum(), gpu)
    x = np.linspace(-1, 1, 64)
    expected = np.tanh(x * np.arange(64) + 3).sum()
    assert step(x).item() == pytest.approx(expected, rel=1e-5)
    weights.clear()
    for k in range(50):
        Tensor(np.full(64, np.nan), gpu) + k
    assert step(x).item() == pytest.approx(expected, rel=1e-5)


def test_nothing_is_read_while_recording(gpu: Device) -> None:
    with pytest.raises(UsageError, match="being recorded cannot read a tensor's numbers: return the tensor"):
        Recorded(lambda x: x.sum().item(), gpu)([1.0])
    assert (Tensor([1.0], gpu) + 1).item() == 2


def test_buffers_are_used_again_within_bounds(arrays: GpuArrays, monkeypatch: pytest.MonkeyPatch) -> None:
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
