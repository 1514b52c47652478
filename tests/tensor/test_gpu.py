"""Test all operations on a GPU against float64 on the processor, forward and backward."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from difflogic.devices.device import Device
from difflogic.errors import DeviceMismatchError, LimitError, ShapeError, UsageError
from difflogic.gpu import arrays as gpu_arrays
from difflogic.gpu.arrays import GpuArrays
from difflogic.gpu.probes import AnyShader
from difflogic.tensor import Tensor, gathered
from difflogic.tensor.kernels.binary import binary
from tests.gpu import conftest as kernels
from tests.sampled import sampled
from tests.tensor.test_gradients import OPERATIONS, operands

FORWARD, GRADIENT = 1e-5, 1e-4
"""Shares of the largest entry: float32 sums of hundreds of terms, and twice as many on the way back."""

SIZES = (0, 1, 3, 256, 257)
UNARY = ("exp", "log", "sqrt", "tanh", "sigmoid", "relu")


@pytest.fixture(autouse=True)
def poisoned_workgroup_memory(poison: AnyShader) -> None:
    poison.run([0], (kernels.POISONED_GROUPS, 1))


def check(function: Callable[..., Tensor], values: Sequence[np.ndarray], device: Device) -> None:
    """The result and every operand's gradient, for a random adjoint."""
    values = [each.astype(np.float32) for each in values]
    found = []
    for place, dtype in ((device, "float32"), ("cpu", "float64")):
        given = [Tensor(each, place, requires_grad=True, dtype=dtype) for each in values]
        result = function(*given)
        adjoint = operands([result.shape], seed=2)[0].astype(np.float32)
        result.backward(Tensor(adjoint, place, dtype=dtype))
        found.append([each.numpy() for each in (result, *(each.grad for each in given))])
    for k, (got, expected) in enumerate(zip(*found, strict=True)):
        assert got.dtype == np.float32
        assert got.shape == expected.shape
        share = GRADIENT if k else FORWARD
        np.testing.assert_allclose(got, expected, rtol=0, atol=share * np.abs(expected).max(initial=0))


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str, gpu: Device) -> None:
    function, shapes = OPERATIONS[name]
    check(function, operands(shapes), gpu)


@pytest.mark.parametrize("size", sampled(SIZES, SIZES[:2]))
def test_sizes(size: int, gpu: Device) -> None:
    for shape in ((size,), (size, 3), (3, size)):
        (x,) = operands([shape])
        for op in (*UNARY, "softmax", "sum", "__neg__", "transpose"):
            check(getattr(Tensor, op), [x], gpu)
    row, column, whole = operands([(size,), (size, 1), (size, size)])
    for op in ("__add__", "__sub__", "__mul__", "__truediv__", "__pow__"):
        check(getattr(Tensor, op), [row, column], gpu)
        check(getattr(Tensor, op), [whole, row], gpu)
        check(getattr(Tensor, op), [column, whole], gpu)
    check(Tensor.__matmul__, [column.T, whole], gpu)


@pytest.mark.parametrize("op", [*UNARY, "softmax", "sum", "mean"])
def test_a_million_and_one(op: str, gpu: Device) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, 1_000_001)
    check(getattr(Tensor, op), [x], gpu)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, (0, 1), (0, 2), (1, 3), (0, 1, 3), (0, 1, 2, 3), ()])
@pytest.mark.parametrize("shape", [(3, 5, 2, 70), (65, 1, 129, 2), (2, 4100, 1, 9)])
def test_every_axis(axis: int | tuple[int, ...], shape: tuple[int, ...], gpu: Device) -> None:
    (x,) = operands([shape])
    check(lambda a: a.sum(axis), [x], gpu)
    if isinstance(axis, int):
        check(lambda a: a.softmax(axis), [x], gpu)


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(1, 1, 1), (1, 300, 1), (63, 64, 65), (130, 17, 3), (4, 1, 200), (1024, 512, 1024)]
)
def test_matmul(rows: int, inner: int, columns: int, is_wide: bool, gpu: Device, monkeypatch) -> None:
    monkeypatch.setattr(gpu_arrays, "MANY_TILES", {True: 1 if is_wide else 1 << 32})
    rng = np.random.default_rng(0)
    check(Tensor.__matmul__, [rng.standard_normal((rows, inner)), rng.standard_normal((inner, columns))], gpu)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((3, 4, 5), (1, 2, 0)), ((3, 4, 5), (0, 2, 1)), ((1, 70, 3), (2, 0, 1)), ((2, 1, 2, 3), (3, 1, 0, 2))],
)
def test_axes_in_another_order(shape: tuple[int, ...], axes: tuple[int, ...], gpu: Device) -> None:
    check(lambda a: a.transpose(*axes), operands([shape]), gpu)


@pytest.mark.parametrize("seed", range(8))
def test_any_shapes_that_broadcast(seed: int, gpu: Device) -> None:
    """In fours where they fit, along joined axes and along axes that are repeated."""
    rng = np.random.default_rng(seed)
    whole = rng.choice([1, 2, 3, 4, 8, 12], size=rng.integers(1, 5))
    one, other = (tuple(np.where(rng.random(whole.size) < 0.3, 1, whole)[rng.integers(0, whole.size) :]) for _ in "ab")
    check(lambda a, b: a / b, operands([one, other]), gpu)
    order = rng.permutation(whole.size).tolist()
    check(lambda a: a.transpose(*order).mean(0), operands([tuple(whole)]), gpu)


@pytest.mark.parametrize("shapes", [[(3, 4)] * 2, [(3, 1), (2, 1, 5)], [(4,), (3, 1)], [(), (2, 2)]])
def test_first_operand_is_copied_and_broadcast(shapes: list[tuple[int, ...]], arrays: GpuArrays) -> None:
    a, b = (each.astype(np.float32) for each in operands(shapes))
    expected = binary("first", a, b)
    assert not np.shares_memory(expected, a)
    np.testing.assert_array_equal(arrays.get(arrays.binary("first", arrays.put(a), arrays.put(b))), expected)


@pytest.mark.parametrize(("shape", "count"), [((1,), 3), ((7, 3), 300), ((300, 2, 3), 5), ((4, 2), 0), ((4, 0), 2)])
def test_rows_by_their_numbers(shape: tuple[int, ...], count: int, gpu: Device) -> None:
    x, y = operands([shape, (shape[0], 5)])
    places = np.random.default_rng(0).integers(0, shape[0], count)
    found = gathered([Tensor(x, gpu), Tensor(y, gpu)], places)
    for given, got in zip((x, y), found, strict=True):
        np.testing.assert_array_equal(got.numpy(), given.astype(np.float32)[places])
    written = Tensor(x, gpu)
    written.assign_rows(shape[0] - 1, 2 * x[:1])
    np.testing.assert_array_equal(written.numpy(), np.concatenate([x[:-1], 2 * x[:1]]).astype(np.float32))
    for wrong in (-1, shape[0]):
        with pytest.raises(ShapeError, match="gathered requires rows from 0 to"):
            gathered([Tensor(x, gpu)], np.array([wrong]))
        with pytest.raises(ShapeError, match="are out of range for"):
            written.assign_rows(wrong, x[:1])


def test_large_numbers_make_no_nan(gpu: Device) -> None:
    """If the true value is finite, so is the result; otherwise it is infinity."""
    values = np.array([-1e4, -100, -89, -1e-3, 0, 1e-30, 1e-3, 88, 100, 1e4], np.float32)
    for device in (gpu, Device("cpu")):
        x = Tensor(values, device, requires_grad=True)
        for op in ("sigmoid", "tanh", "softmax", "relu"):
            y = getattr(x, op)()
            y.sum().backward()
            wide = getattr(Tensor(values, dtype="float64"), op)()
            np.testing.assert_allclose(y.numpy(), wide.numpy(), rtol=1e-5, atol=1e-37)
            assert np.isfinite(x.grad.numpy()).all(), op
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(x.exp().numpy(), np.exp(values), rtol=1e-5, atol=1e-37)


SPECIAL = np.array([np.nan, np.inf, 3e38, 4, 3, 2, 1.5, 1, 0.5, 1e-38, 1e-40, 1e-45, 0], np.float32)
"""And their negatives: no number, infinity, what overflows, whole ones, denormals, zeros of both signs."""


@pytest.mark.parametrize("op", [*UNARY, "__neg__", "__add__", "__sub__", "__mul__", "__truediv__", "__pow__"])
def test_infinities_and_extreme_numbers(op: str, gpu: Device) -> None:
    """Each with each, forward and back, are what they are on the processor."""
    values = np.concatenate([SPECIAL, -SPECIAL])
    operands = [values] if op in (*UNARY, "__neg__") else [each.ravel() for each in np.meshgrid(values, values)]
    found = []
    for device in ("cpu", gpu):
        given = [Tensor(each, device, requires_grad=True) for each in operands]
        with np.errstate(all="ignore"):
            result = getattr(given[0], op)(*given[1:])
            result.backward(np.ones(len(operands[0])))
        found.append([each.numpy() for each in (result, *(each.grad for each in given))])
    for here, there in zip(*found, strict=True):
        # A result below the least normal number may be 0 on a GPU; so may a product with it.
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-36)


def test_sums_have_a_fixed_order(gpu: Device) -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((70, 300, 40)), gpu)
    for axis in (None, 0, 1, 2):
        assert x.sum(axis).numpy().tobytes() == x.sum(axis).numpy().tobytes()


def test_copies_between_devices_are_exact(gpu: Device) -> None:
    values = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    x = Tensor(values, requires_grad=True)
    there = x.to(gpu)
    assert (there.device, x.to("cpu")) == (gpu, x)
    assert there.to("cpu").numpy().tobytes() == values.tobytes()
    (there * there).sum().to("cpu").backward()
    assert x.grad.device == Device("cpu")
    np.testing.assert_allclose(x.grad.numpy(), 2 * values, rtol=1e-6)


def test_two_devices_in_one_operation(gpu: Device) -> None:
    here, there = Tensor([1.0]), Tensor([1.0], gpu)
    for op in (lambda: there + here, lambda: there @ here, lambda: there.assign(here)):
        with pytest.raises(
            DeviceMismatchError, match=r"a is on gpu:0 \(\w+\) and b on cpu: move one, such as b\.to\(a\.device\)"
        ):
            op()
    with pytest.raises(DeviceMismatchError, match=r"operands on the same device, but tensors\[0\] is on gpu:0"):
        gathered([there, here], [0])
    with pytest.raises(UsageError, match=r"float64 is not supported on gpu:0 \(\w+\): tensors must be float32"):
        Tensor([1.0], dtype="float64").to(gpu)
    with pytest.raises(ShapeError, match="broadcast"):
        there + np.zeros((2, 3)) + np.zeros((4, 2, 2))


def test_too_much_memory_is_refused(gpu: Device, arrays: GpuArrays) -> None:
    number = Tensor(1.0, gpu)
    many = arrays.device.limits["max-storage-buffer-binding-size"] // 4 + 1
    sentence = r"An array of \d+ MB is too large for this device, which binds at most \d+ MB"
    with pytest.raises(LimitError, match=sentence):
        arrays.expand((many,), number.data)
