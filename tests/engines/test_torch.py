"""A circuit as a layer of PyTorch: the engine's own gradients, however its buffers were used in between."""

from typing import Any

import numpy as np
import pytest

from difflogic import Circuit, FunctionNetlist, export, open_engine, simplify
from difflogic.circuits.synthesis import tools
from difflogic.config.train import InitialConfig
from tests.random_circuits import bits, random_circuit

torch: Any = pytest.importorskip("torch")
from difflogic.torch import CircuitModule  # noqa: E402

CASES = {
    "feed-forward": (Circuit.feed_forward([5, 8, 3], seed=0), (6,), 1),
    "an automaton": (random_circuit(np.random.default_rng(1)), (2, 4, 5), 3),
}


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_layer_is_the_engines_function(case: str, hard: bool) -> None:
    circuit, grid, steps = CASES[case]
    circuit = circuit.with_logits(np.random.default_rng(0).standard_normal((circuit.gates, 16)).astype(np.float32))
    x = bits(np.random.default_rng(2), *grid, circuit.channels)
    layer = CircuitModule(circuit, steps, hard, device="reference")
    given = torch.tensor(x, requires_grad=True)
    y = layer(given)
    (y**2).sum().backward()
    function = open_engine("reference").open_function(circuit, grid, steps, hard)
    expected = function.forward(x)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    gradients, d_x = function.backward(2 * expected)
    np.testing.assert_array_equal(layer.logits.grad.numpy(), gradients)
    np.testing.assert_array_equal(given.grad.numpy(), d_x)


def test_a_trained_layer_leaves_as_gates_and_is_equal_on_every_sample() -> None:
    """After three updates on all 32 samples of five bits, its netlist, and that in C, decides as it does."""
    layer = CircuitModule(Circuit.feed_forward([5, 12, 6], 0, InitialConfig(logit=1.0, noise=1.0)), hard=True)
    every = torch.tensor(np.arange(32)[:, None] >> np.arange(5) & 1, dtype=torch.float32)
    labels, optimiser = every.sum(1).long() % 3, torch.optim.Adam(layer.parameters(), lr=0.5)
    for _ in range(3):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(layer(every).reshape(32, 3, 2).sum(-1), labels).backward()
        optimiser.step()
    decided = layer(every).reshape(32, 3, 2).sum(-1).argmax(-1).numpy()
    classifier = FunctionNetlist.from_circuit(layer.circuit, classes=3)
    np.testing.assert_array_equal(classifier(every.numpy()), decided)
    smaller = simplify(classifier)
    assert smaller.ok
    np.testing.assert_array_equal(smaller.netlist(every.numpy()), decided)
    if not tools.missing("gcc"):
        assert "all 32 patterns" in export(smaller.netlist, ["c"]).verify("c")[0]


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_outputs_are_contiguous(device: str) -> None:
    layer = CircuitModule(Circuit.feed_forward([5, 6], seed=0), device=device)
    assert layer(torch.zeros(3, 5)).view(-1).shape == (18,)


def test_one_layer_may_stand_twice_in_a_network() -> None:
    """The second pass uses the first one's buffers."""
    layer = CircuitModule(random_circuit(np.random.default_rng(1)), device="reference")
    x = torch.rand(1, 3, 3, 2, generator=torch.Generator().manual_seed(0))
    layer(layer(x)).sum().backward()
    at_once = CircuitModule(layer.circuit, steps=2, device="reference")
    at_once(x).sum().backward()
    np.testing.assert_allclose(layer.logits.grad.numpy(), at_once.logits.grad.numpy(), atol=1e-5)


def test_an_optimiser_trains_it_and_the_hard_circuit_is_right() -> None:
    """Learn the exclusive or of two bits, which no initial gate computes."""
    torch.manual_seed(0)
    layer = CircuitModule(Circuit.feed_forward([2, 8, 1], seed=0), device="cpu")
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    target = (x.sum(-1, keepdim=True) == 1).float()
    with torch.no_grad():
        layer.logits.copy_(torch.randn_like(layer.logits))
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        ((layer(x) - target) ** 2).sum().backward()
        optimiser.step()
    layer.hard = True
    np.testing.assert_array_equal(layer(x).detach().numpy(), target.numpy())
    assert list(layer.state_dict()) == ["logits"]


@pytest.mark.parametrize("dtype", ["int64", "bool", "float64", "bfloat16"])
def test_shares_are_not_cut_off(dtype: str) -> None:
    """Bits may come as whole numbers, which have no gradient."""
    circuit, bits = CASES["feed-forward"][0], torch.tensor([[0, 1, 1, 0, 1]])
    circuit = circuit.with_logits(np.random.default_rng(0).standard_normal((circuit.gates, 16)).astype(np.float32))
    layer, x = CircuitModule(circuit, device="reference"), bits.to(getattr(torch, dtype))
    expected, y = layer(bits.float()), layer(x)
    assert y.dtype == (x.dtype if x.is_floating_point() else torch.float32)
    torch.testing.assert_close(y.float(), expected, atol=1e-2, rtol=0)
    assert not torch.equal(y.float(), y.float().round())
    y.sum().backward()
    assert layer.logits.grad.abs().max() > 0


@pytest.mark.parametrize("every_state", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_batch_of_none(case: str, every_state: bool) -> None:
    circuit, grid, steps = CASES[case]
    layer = CircuitModule(circuit, steps, every_state=every_state, device="reference")
    one, none = (torch.zeros(count, *grid[1:], circuit.channels, requires_grad=True) for count in (1, 0))
    empty, y = layer(none), layer(one)
    expected = list(y.shape)
    expected[-len(one.shape)] = 0
    assert list(empty.shape) == expected
    empty.sum().backward()
    assert none.grad.shape == none.shape
    assert not layer.logits.grad.any()
