"""A circuit as a function that JAX differentiates, within compiled code too."""

from typing import Any

import numpy as np
import pytest

from difflogic import Circuit, open_engine
from tests.random_circuits import bits

jax: Any = pytest.importorskip("jax")
from difflogic.errors import DataError, UsageError  # noqa: E402
from difflogic.jax import circuit_function  # noqa: E402


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_jax_gets_the_engines_gradients(compiled: bool, hard: bool) -> None:
    circuit = Circuit.feed_forward([5, 8, 3], seed=0)
    circuit = circuit.with_logits(np.random.default_rng(0).standard_normal((11, 16)).astype(np.float32))
    x = bits(np.random.default_rng(2), 6, 5)
    layer = circuit_function(circuit, [6], hard=hard, device="reference")
    loss = jax.value_and_grad(lambda logits, x: (layer(logits, x) ** 2).sum(), argnums=(0, 1))
    value, (gradients, d_x) = (jax.jit(loss) if compiled else loss)(circuit.flat_logits(), x)
    function = open_engine("reference").open_function(circuit, [6], hard=hard)
    y = function.forward(x)
    assert float(value) == pytest.approx(float((y**2).sum()))
    expected, expected_d_x = function.backward(2 * y)
    np.testing.assert_array_equal(np.asarray(gradients), expected)
    np.testing.assert_array_equal(np.asarray(d_x), expected_d_x)


def test_gradients_of_many_inputs_are_those_of_each() -> None:
    circuit = Circuit.feed_forward([5, 8, 3], seed=0)
    layer, logits = circuit_function(circuit, [6], device="reference"), circuit.flat_logits()
    many = np.stack([bits(np.random.default_rng(seed), 6, 5) for seed in range(3)])
    gradient = jax.grad(lambda logits, x: (layer(logits, x) ** 2).sum(), argnums=(0, 1))
    each = [gradient(logits, x) for x in many]
    for mapped in (jax.vmap(gradient, (None, 0)), jax.jit(jax.vmap(gradient, (None, 0)))):
        for k, found in enumerate(mapped(logits, many)):
            np.testing.assert_array_equal(np.asarray(found), np.stack([one[k] for one in each]))


def test_what_it_cannot_do_is_told() -> None:
    circuit, x = Circuit.feed_forward([5, 8, 3], seed=0), np.ones((6, 5), np.float32)
    layer, logits = circuit_function(circuit, [6], device="reference"), circuit.flat_logits()

    def loss(logits: Any) -> Any:
        return (layer(logits, x) ** 2).sum()

    def along(function: Any) -> Any:
        return lambda logits: jax.jvp(function, (logits,), (logits,))[1]

    def twice(function: Any) -> Any:
        return jax.grad(lambda logits: jax.grad(function)(logits).sum())

    for derivative in (jax.jacfwd, jax.hessian, twice, along):
        # Compiled before it is differentiated, after it, and not at all.
        for asked in (derivative(loss), jax.jit(derivative(loss)), derivative(jax.jit(loss))):
            sentence = r"Circuits have only first-order reverse-mode derivatives: use jax\.grad"
            with pytest.raises(UsageError, match=sentence):
                asked(logits)
    for function in (layer, jax.jit(layer)):
        with pytest.raises(DataError, match=r"x must have shape \[6, 5\], got \[5, 5\]"):
            function(logits, x[:5])
        with pytest.raises(DataError, match=r"logits must have shape \[11, 16\], got \[3, 16\]"):
            function(logits[:3], x)
