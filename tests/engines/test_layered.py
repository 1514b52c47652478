"""A hard circuit with a function per layer: the bits of the whole circuit, and the gradients of a chain of layers."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.devices.device import Device
from difflogic.engine.layered import LayeredFunction
from difflogic.errors import UsageError
from difflogic.model.circuit import Circuit
from difflogic.policies.rewiring import rewired
from difflogic.tensor import Tensor, nn
from tests.closeness import assert_gradients_close
from tests.policies.test_rewiring import problem

SAMPLES = 37


@pytest.mark.parametrize("candidates", [1, 2, 8])
def test_layered_function_has_the_bits_of_the_circuit_and_the_gradients_of_its_layers(any_engine, candidates):
    generator = np.random.default_rng(candidates)
    circuit = Circuit.feed_forward([11, 18, 7], seed=2, candidates=candidates)
    logits = (2 * generator.standard_normal(circuit.flat_logits().shape)).astype(np.float32)
    x = generator.integers(0, 2, (SAMPLES, 11)).astype(np.float32)
    d_y = generator.standard_normal((SAMPLES, 7)).astype(np.float32)
    function = LayeredFunction(any_engine, circuit, [SAMPLES])
    function.update(logits)
    whole = any_engine.open_function(circuit.with_logits(logits), [SAMPLES], hard=True)
    np.testing.assert_array_equal(function.forward(x), whole.forward(x))
    gradients, d_x = function.backward(d_y)

    full, parts, layers = circuit.with_logits(logits), [], []
    for number, gates in enumerate((slice(0, 18), slice(18, 25))):
        arrays = {"perceive": [], "update": [full.update[number]]}
        if candidates > 1:
            arrays["wires"] = [full.wire_logits[gates]]
        wires = {"perceive": [], "update": [full.update_wires[number]]}
        parts.append(Circuit.from_arrays(arrays, wires, (11, 18)[number]))
        layers.append(nn.Logic(parts[-1], hard=True))
    begin = Tensor(x, layers[0].logits.device, requires_grad=True)
    (layers[1](layers[0](begin)) * Tensor(d_y, begin.device)).sum().backward()
    of_layers = [part.unflatten(layer.logits.grad.numpy()) for part, layer in zip(parts, layers, strict=True)]
    expected = {"update": [part["update"][0] for part in of_layers], "x": [begin.grad.numpy()]}
    if candidates > 1:
        expected["wires"] = [np.concatenate([part["wires"][0] for part in of_layers])]
    assert_gradients_close(full.unflatten(gradients) | {"x": [d_x]}, expected)
    assert np.abs(whole.backward(d_y)[0] - gradients).max() > 1e-3


def test_every_engine_replaces_the_same_candidates(any_engine):
    circuit, x, d_y = problem([20, 16], candidates=4)
    circuit = replace(circuit, wire_logits=100 * circuit.wire_logits)
    wires, expected = (
        rewired(circuit, engine, x, lambda y, rows: d_y[rows], np.random.default_rng(0)).update_wires
        for engine in (any_engine, Device("reference").open())
    )
    for layer, reference in zip(wires, expected, strict=True):
        np.testing.assert_array_equal(np.sort(layer), np.sort(reference))


def test_layers_of_soft_circuits_and_automata_are_refused():
    config = presets.get("game-of-life")
    automaton = Circuit.initial(config.model, config.seed, config.initial)
    for circuit, hard in ((Circuit.feed_forward([4, 4], seed=1), False), (automaton, True)):
        with pytest.raises(UsageError, match="requires hard=True and a feed-forward circuit"):
            nn.Logic(circuit, hard=hard, by_layer=True)
