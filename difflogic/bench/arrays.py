"""Benchmarks of array operations and networks' training steps on each device, and in PyTorch if it is installed.

Each case is verified before it is timed: arrays against NumPy in float64, logic gate networks against the reference.
"""

import importlib.util
import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from difflogic.bench.engines import Bench, OtherEngine
from difflogic.bench.machine import copy_bytes_per_s
from difflogic.bench.timed import Timed, WrongResultError
from difflogic.bench.work import FLOP_PER_EVALUATION
from difflogic.devices.device import Device
from difflogic.engine.api import EngineInfo
from difflogic.errors import LimitError
from difflogic.model.circuit import Circuit
from difflogic.system.processor import cores, processor_name
from difflogic.tensor import Tensor, nn, optim

What = Literal["matmul", "add", "sum", "network", "logic"]
Floats = npt.NDArray[np.floating]

UNITS: dict[What, str] = {
    "matmul": "product of two square matrices",
    "add": "sum of two arrays, entry by entry",
    "sum": "sum of an array",
    "network": "training step of three dense layers, Adam included",
    "logic": "training step of a logic gate network on 256 samples of 784 bits, Adam included",
}
OPERATIONS: dict[What, Callable[..., Any]] = {
    "matmul": lambda a, b: a @ b,
    "add": lambda a, b: a + b,
    "sum": lambda a, b: a.sum(),
}
"""Mapping from names of array operations to functions that apply them to tensors of any library."""
TOLERANCE = 1e-4
"""Tolerance of results relative to the largest entry, sufficient for float32 sums of thousands of terms."""
VERIFIED_ROWS = 16
BATCH = 256
"""Batch size of a network's training step."""
BITS, CLASSES = 784, 10
"""Number of inputs and number of classes of a logic gate network: 28x28 pixels and ten digits."""
Opened = tuple[Callable[[], Any], Callable[[], None], Callable[[Any], Floats]]
"""Functions that run one repetition, wait until it is done, and convert its result to NumPy."""
SOFTWARE_FLOP = 2e10
"""Maximum number of floating-point operations of a case on a software GPU; larger cases would take too long."""


@dataclass(frozen=True)
class ArrayCase:
    """Benchmark case: an array operation of one size, or a training step of a network of one width."""

    what: What
    size: int
    """Number of rows and columns of a square matrix, number of entries of a vector, or width of a network's layers."""
    layers: int = 0
    """Number of layers of a logic gate network; 0 for other cases."""
    quick = once = False

    @property
    def asked(self) -> bool:
        """True if the case runs only if selected by name or group, as all cases do except logic gate networks."""
        return self.group == "arrays"

    @property
    def group(self) -> str:
        return "feed-forward" if self.what == "logic" else "arrays"

    @property
    def name(self) -> str:
        return f"{self.group}/" + (f"{self.layers}x{self.size}" if self.what == "logic" else f"{self.what}-{self.size}")

    @property
    def turn_group(self) -> str:
        """Name of the group of cases that are timed in turn, which are all sizes of one operation."""
        return f"{self.group}/{self.what}"

    @property
    def unit(self) -> str:
        return UNITS[self.what]

    @property
    def flop(self) -> int:
        """Number of additions and multiplications per repetition."""
        if self.what == "network":
            # A layer needs three products: forward, and backward with respect to its weights and to its inputs.
            return 6 * BATCH * sum(a * b for a, b in zip(self.widths, self.widths[1:], strict=False))
        if self.what == "logic":
            return FLOP_PER_EVALUATION * BATCH * self.layers * self.size
        return 2 * self.size**3 if self.what == "matmul" else self.size

    @property
    def traffic(self) -> int | None:
        """Minimum number of bytes read and written per repetition; None for networks, whose arrays may be cached."""
        entries = {"matmul": 3 * self.size**2, "add": 3 * self.size, "sum": self.size}
        return 4 * entries[self.what] if self.what in entries else None

    @property
    def widths(self) -> list[int]:
        return [BITS, *[self.size] * self.layers] if self.what == "logic" else [4, self.size, self.size, 1]

    def operands(self) -> tuple[Floats, Floats]:
        """Return two operands (for a network, its inputs and targets), sampled with a fixed seed."""
        rng = np.random.default_rng(0)
        if self.what == "network":
            return _normal(rng, BATCH, 4), _normal(rng, BATCH, 1)
        if self.what == "logic":
            bits, labels = rng.integers(0, 2, (BATCH, BITS)), rng.integers(0, CLASSES, BATCH)
            return bits.astype(np.float32), np.eye(CLASSES)[labels]
        shape = (self.size, self.size) if self.what == "matmul" else (self.size,)
        return _normal(rng, *shape), _normal(rng, *shape)


CASES = (
    *(ArrayCase("matmul", size) for size in (128, 1024, 4096)),
    ArrayCase("add", 1_000_000),
    ArrayCase("sum", 10_000_000),
    *(ArrayCase("network", size) for size in (64, 1024)),
    *(ArrayCase("logic", size, layers) for layers, size in ((8, 1500), (4, 16000))),
)


@dataclass(kw_only=True)
class ArrayContender(Timed):
    """Case of an array operation or a network, opened on a device and verified."""

    case: ArrayCase
    step: Callable[[], Any]
    wait: Callable[[], None]

    def _repeat(self, count: int) -> None:
        for _ in range(count):
            self.step()
        self.wait()

    def close(self) -> None:
        self.step = lambda: None

    def figures(self) -> dict[str, Any]:
        """Return the row's rates, such as operations per second, computed from the median time of a repetition."""
        seconds, flop = statistics.median(self.seconds), self.case.flop
        figures = {"variant": {}, "flop": flop, "gflop_per_s": flop / seconds / 1e9, "peak_mb": None}
        if self.case.traffic is not None:
            rate = self.case.traffic / seconds
            figures |= {"traffic_gb_per_s": rate / 1e9, "share_of_copy_rate": rate / self.bench.copy_bytes_per_s}
        return figures


def open_array_contender(case: ArrayCase, bench: Bench) -> ArrayContender:
    """Open a case on a device and verify its result. Raises WrongResultError, or LimitError if it is too large."""
    info = bench.engine.info
    if info.engine == "gpu" and info.software and case.flop > SOFTWARE_FLOP:
        raise LimitError(f"{case.flop / 1e9:.0f} GFLOP take too long on a software adapter: use a hardware GPU")
    values = case.operands()
    if isinstance(bench.engine, OtherEngine):
        step, wait, read = _in_torch(case, bench.name.partition(":")[2], *values)
    else:
        step, wait, read = _in_tensors(case, Device(bench.engine.selector), *values)
    got, expected = read(step()), _expected(case, *values)
    worst = np.abs(got[:VERIFIED_ROWS] - expected).max() if got.ndim else abs(got - expected)
    if not worst <= TOLERANCE * np.abs(expected).max():
        raise WrongResultError(
            f"{case.name} has an error of {worst:.1e}, for values up to {np.abs(expected).max():.1e}"
        )
    return ArrayContender(bench=bench, case=case, step=step, wait=wait)


def _in_tensors(case: ArrayCase, device: Device, a: Floats, b: Floats) -> Opened:
    given = Tensor(a, device), Tensor(b, device)
    if case.what in OPERATIONS:
        operation = OPERATIONS[case.what]
        return lambda: operation(*given), device.synchronize, Tensor.numpy
    learn = _learner(case, device)
    return lambda: learn(*given), device.synchronize, Tensor.numpy


def _learner(case: ArrayCase, device: Device, dtype: npt.DTypeLike = np.float32) -> Callable[[Tensor, Tensor], Tensor]:
    net: nn.Logic | nn.MLP
    if case.what == "logic":
        net = nn.Logic(Circuit.feed_forward(case.widths, seed=0), device=device)
        count = nn.GroupSum(CLASSES, tau=(case.size / CLASSES) ** 0.5)
    else:
        net = nn.MLP(case.widths[0], case.widths[1:], device=device, dtype=dtype)
    adam = optim.Adam(net.parameters())

    def learn(x: Tensor, y: Tensor) -> Tensor:
        if case.what == "logic":
            loss = -(count(net(x)).softmax(1) * y).sum(1).log().mean()
        else:
            loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        adam.step()
        return loss

    return learn


def _expected(case: ArrayCase, a: Floats, b: Floats) -> Floats:
    """Return the correct result for operands a and b: the first rows of an array, or the first loss of a network."""
    if case.what == "logic":
        reference = Device("reference")
        return _learner(case, reference)(Tensor(a, reference), Tensor(b, reference)).numpy()
    wide = a.astype(np.float64), b.astype(np.float64)
    if case.what == "network":
        given = (Tensor(each, dtype="float64") for each in wide)
        return _learner(case, Device("cpu"), "float64")(*given).numpy()
    rows = wide[0] if case.what == "sum" else wide[0][:VERIFIED_ROWS]
    other = wide[1] if case.what == "matmul" else wide[1][:VERIFIED_ROWS]
    return np.asarray(OPERATIONS[case.what](rows, other))


def torch_benches() -> list[Bench]:
    """Return an entry for each device of PyTorch (CPU and CUDA); an empty list if PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    names = {"cpu": processor_name(), **({"cuda": torch.cuda.get_device_name()} if torch.cuda.is_available() else {})}
    benches = []
    for place, name in names.items():
        info = EngineInfo("torch", adapter=name, backend="PyTorch", driver=torch.__version__)
        benches.append(Bench(f"torch:{place}", OtherEngine(info), _torch_copy_rate(place)))
    return benches


def _torch_copy_rate(place: str) -> float:
    if place == "cpu":
        return copy_bytes_per_s(cores())
    import torch

    one, other = (torch.ones(1 << 28, dtype=torch.uint8, device=place) for _ in range(2))

    def copy() -> None:
        for _ in range(10):
            one.copy_(other)
        torch.cuda.synchronize()

    return 2 * (1 << 28) / (min(timeit.repeat(copy, number=1)) / 10)


def _in_torch(case: ArrayCase, place: str, a: Floats, b: Floats) -> Opened:
    import torch

    def read(result: Any) -> Floats:
        return np.asarray(result.detach().cpu().numpy())

    def wait() -> None:
        if place != "cpu":
            torch.cuda.synchronize()

    x, y = (torch.tensor(each, device=place) for each in (a, b))
    if case.what != "network":
        operation = OPERATIONS[case.what]
        return lambda: operation(x, y), wait, read
    layers: list[Any] = []
    for ours in nn.MLP(case.widths[0], case.widths[1:]).layers:
        layer = torch.nn.Linear(*ours.weights.shape)
        layer.weight.data, layer.bias.data = (torch.tensor(each.numpy()) for each in (ours.weights.T, ours.biases))
        layers += [layer, torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers[:-1]).to(place)
    adam = torch.optim.Adam(net.parameters())

    def learn() -> Any:
        adam.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        adam.step()
        return loss

    return learn, wait, read


def _normal(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.standard_normal(shape, dtype=np.float32)
