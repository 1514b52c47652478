"""Test the gradients of all operations by finite differences in float64, and the backward pass."""

from collections.abc import Callable

import numpy as np
import pytest

from difflogic.errors import UsageError
from difflogic.tensor import Tensor, gathered, optim
from tests import tolerances

Function = Callable[..., Tensor]

OPERATIONS: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "add": (lambda a, b: a + b, [(2, 3), (2, 3)]),
    "add repeated": (lambda a, b: a + b, [(2, 3), (3,)]),
    "add both repeated": (lambda a, b: a + b, [(2, 1, 3), (4, 1)]),
    "add to itself": (lambda a: a + a * a, [(3,)]),
    "subtract": (lambda a, b: a - b, [(3,), (2, 1)]),
    "subtract from a number": (lambda a: 2 - a, [(3,)]),
    "multiply": (lambda a, b: a * b, [(2, 3), (1, 3)]),
    "multiply by an array": (lambda a: np.arange(3.0) * a, [(2, 3)]),
    "divide": (lambda a, b: a / b, [(2, 3), (2, 1)]),
    "divide a number": (lambda a: 2 / a, [(2, 3)]),
    "power": (lambda a, b: a**b, [(2, 3), (3,)]),
    "square": (lambda a: a**2, [(2, 3)]),
    "exponential of 2": (lambda a: 2**a, [(2, 3)]),
    "negate": (lambda a: -a, [(2, 3)]),
    "exp": (Tensor.exp, [(2, 3)]),
    "log": (Tensor.log, [(2, 3)]),
    "sqrt": (Tensor.sqrt, [(2, 3)]),
    "tanh": (Tensor.tanh, [(2, 3)]),
    "sigmoid": (lambda a: (a - 1).sigmoid(), [(2, 3)]),
    "relu": (lambda a: (a - 1).relu(), [(4, 5)]),
    "matmul": (lambda a, b: a @ b, [(2, 3), (3, 4)]),
    "matmul of one": (lambda a, b: a @ b, [(1, 1), (1, 1)]),
    "matmul of nothing": (lambda a, b: a @ b, [(2, 0), (0, 3)]),
    "transpose": (lambda a: a.T, [(2, 3)]),
    "transpose by axes": (lambda a: a.transpose(1, -1, 0), [(2, 3, 4)]),
    "sum": (Tensor.sum, [(2, 3)]),
    "sum of one": (Tensor.sum, [()]),
    "sum over the first": (lambda a: a.sum(0), [(2, 3, 4)]),
    "sum over the middle": (lambda a: a.sum(1, keepdims=True), [(2, 3, 4)]),
    "sum over two": (lambda a: a.sum((0, -1)), [(2, 3, 4)]),
    "mean": (Tensor.mean, [(2, 3)]),
    "mean over the last": (lambda a: a.mean(-1, keepdims=True), [(2, 3)]),
    "reshape": (lambda a: a.reshape(3, -1), [(2, 3)]),
    "softmax": (Tensor.softmax, [(2, 3)]),
    "softmax over the first": (lambda a: a.softmax(0), [(2, 3)]),
    "softmax over the middle": (lambda a: a.softmax(1), [(2, 3, 4)]),
}


def operands(shapes: list[tuple[int, ...]], seed: int = 0) -> list[np.ndarray]:
    """Between 0.5 and 1.5: where roots and logarithms are, and relu's corner at 1 is crossed."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, shape) for shape in shapes]


def tensors(values: list[np.ndarray]) -> list[Tensor]:
    return [Tensor(each, requires_grad=True, dtype="float64") for each in values]


@pytest.mark.parametrize("name", OPERATIONS)
def test_finite_differences(name: str) -> None:
    function, shapes = OPERATIONS[name]
    values, directions = operands(shapes), operands(shapes, seed=1)
    given = tensors(values)
    result = function(*given)
    adjoint = operands([result.shape], seed=2)[0]
    result.backward(adjoint)
    after, before = (
        function(*tensors([v + sign * d for v, d in zip(values, directions, strict=True)])).numpy() * adjoint
        for sign in (tolerances.DIFFERENCE_STEP, -tolerances.DIFFERENCE_STEP)
    )
    expected = (after - before).sum() / (2 * tolerances.DIFFERENCE_STEP)
    got = sum((each.grad.numpy() * d).sum() for each, d in zip(given, directions, strict=True))
    atol = tolerances.difference_atol(after, before) / tolerances.DIFFERENCE_STEP
    assert got == pytest.approx(expected, rel=tolerances.DIFFERENCE_RTOL, abs=atol)
    assert [each.grad.shape for each in given] == shapes


def test_gradients_add_up_over_paths_and_calls() -> None:
    x = Tensor([3.0], requires_grad=True)
    y = x * 2
    (y * y + y * x).sum().backward()  # 6 x^2
    assert x.grad.numpy() == [36]
    (x * 5).sum().backward()
    assert x.grad.numpy() == [41]


def test_stop_gradient_stops_gradients() -> None:
    x, y = Tensor([2.0], requires_grad=True), Tensor([5.0])
    (x.stop_gradient() * x * y).sum().backward()
    assert x.grad.numpy() == [10]
    assert y.grad is None
    with pytest.raises(UsageError, match="requires a tensor that depends on one with requires_grad=True"):
        (x.stop_gradient() * y).sum().backward()


def test_a_long_chain() -> None:
    """Longer than Python's stack, there and back."""
    x = y = Tensor([1.0], requires_grad=True)
    for _ in range(20_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.numpy() == [1]
    del y


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda x: x + Tensor(np.zeros((4, 3))), r"add requires shapes that broadcast, got \(2, 3\) and \(4, 3\): "),
        (lambda x: x @ Tensor(np.zeros((2, 3))), r"matmul requires shapes .* got \(2, 3\) and \(2, 3\)"),
        (lambda x: x @ Tensor(np.zeros(3)), r"matmul requires shapes .* got \(2, 3\) and \(3,\)"),
        (lambda x: x.backward(), r"a tensor of one number, got the shape \(2, 3\): sum the"),
        (lambda x: x.backward(np.zeros(3)), r"an adjoint of the shape \(2, 3\), got \(3,\)"),
        (lambda x: x.sum(2), r"sum: the axis 2 is out of range for a tensor with 2 dim"),
        (lambda x: x.softmax(-3), r"softmax: the axis -3 is out of range"),
        (lambda x: x.sum((0, -2)), r"sum requires different axes, got \(0, -2\)"),
        (lambda x: x.transpose(0), r"transpose requires each of the 2 axes of \(2, 3\) once, got \(0,\)"),
        (lambda x: x.reshape(4, -1), r"reshape of \(2, 3\) requires sizes .* 6 numbers, got \(4, -1\)"),
        (lambda x: x.reshape(-1, -1), r"reshape of \(2, 3\) requires sizes"),
        (lambda x: x.assign([1.0, 2.0]), r"assign requires values of the shape \(2, 3\), got \(2,\)"),
        (lambda x: Tensor(np.ones((0, 3))).reshape(0, -1), r"reshape of \(0, 3\) requires sizes .* got \(0, -1\)"),
        (lambda x: x.reshape((1,) * 8 + (6,)), "reshape requires at most 8 axes, got 9"),
        (lambda x: x + np.ones((1,) * 9), "add requires at most 8 axes, got 9"),
        (lambda x: x.reshape(2.0, 3), r"reshape requires integers, got \(2.0, 3\)"),
        (lambda x: x.sum(1.5), "sum requires integers, got 1.5"),
        (
            lambda x: x.assign_rows(0, [1.0] * 3),
            r"assign_rows requires an array of rows of shape \(3,\), got the shape \(3,\)",
        ),
        (bool, r"of one number, got the shape \(2, 3\)"),
        (Tensor.item, r"of one number, got the shape \(2, 3\)"),
        (lambda x: gathered([], [0]), "one or more tensors"),
        (lambda x: gathered([x.sum()], [0]), "each with at least one axis"),
        (lambda x: gathered([x], [0.5]), "the indices of rows as a list of integers"),
        (lambda x: x + "one", "add requires numbers, or rows of them of equal length, got str"),
        (lambda x: Tensor(None), "Tensor requires numbers, .* got NoneType"),
        (lambda x: Tensor([[1.0], [1.0, 2.0]]), "Tensor requires numbers, .* equal length, got list"),
        (lambda x: Tensor([1], dtype="int32"), "int32 is not supported on cpu: tensors must be float32"),
    ],
)
def test_invalid_arguments_are_refused(mistake: Function, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        mistake(Tensor(np.zeros((2, 3)), requires_grad=True))


def test_what_numpy_allows_is_allowed() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3))
    assert x.reshape((3, 2)).T.shape == x.transpose((1, 0)).reshape([2, 3]).shape == (2, 3)
    assert (np.ones((4, 2)) @ x).numpy().tolist() == [[3, 5, 7]] * 4
    assert x.sum(np.int64(0)).numpy().tolist() == [3, 5, 7]
    for row in ([0.0, 4.0, 5.0], Tensor([0.0, 4.0, 5.0])):
        assert (x == row).tolist() == [[True, False, False], [False, True, True]]
    assert (x != x).any() == False  # noqa: E712
    assert not Tensor([0.0])
    assert bool(Tensor(0.5))
    assert float(Tensor([0.5])) == 0.5


@pytest.mark.parametrize("op", ["exp", "log", "sqrt", "tanh", "sigmoid", "relu", "__neg__", "__mul__", "__pow__"])
def test_a_single_number_is_a_tensor_like_any(op: str) -> None:
    x = Tensor(0.3, requires_grad=True)
    y = getattr(x, op)(*[x] * op.startswith(("__mul", "__pow")))
    adam = optim.Adam([x], max_norm=1e-9)
    y.backward()
    adam.step()
    assert x.item() != pytest.approx(0.3, abs=1e-6)
    y.assign(2.0)
    assert y.item() == 2


def test_tensor_copies_its_values() -> None:
    given = np.ones(3, dtype=np.float32)
    x = Tensor(given, requires_grad=True)
    given[0] = 7
    x.numpy()[1] = 7
    assert x.numpy().tolist() == [1, 1, 1]
    x.assign(given)
    product = (x * given).sum()
    given[:] = 0
    product.backward()
    assert x.numpy().tolist() == x.grad.numpy().tolist() == [7, 1, 1]
