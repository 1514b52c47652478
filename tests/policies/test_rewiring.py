"""Replacement of candidate wires: gains against the loss, and classifiers that resume and load with new wires."""

from dataclasses import replace

import numpy as np
import pytest

import difflogic
from difflogic.devices.device import Device
from difflogic.engine.layered import layers
from difflogic.model.circuit import Circuit
from difflogic.policies import actor_file, classifier, rewiring
from tests.policies.test_classifier import rows

INPUTS, GATES, SAMPLES = 12, 20, 64


def hard(circuit: Circuit, x: np.ndarray) -> np.ndarray:
    return Device("cpu").open().open_function(circuit, [len(x)], hard=True).forward(x)


def problem(layers: list[int], candidates: int) -> tuple[Circuit, np.ndarray, np.ndarray]:
    """A circuit of random, nearly hard gates and random wire logits, bits, and the gradient of a linear loss."""
    generator = np.random.default_rng(3)
    circuit = Circuit.feed_forward([INPUTS, *layers], seed=1, candidates=candidates)
    gate_logits = 100.0 * np.eye(16, dtype=np.float32)[generator.integers(1, 15, circuit.gates)]
    wire_logits = 10 * generator.standard_normal(circuit.wire_logits.shape).astype(np.float32)
    circuit = replace(circuit.with_gate_logits(gate_logits), wire_logits=wire_logits)
    x = generator.integers(0, 2, (SAMPLES, INPUTS)).astype(np.float32)
    return circuit, x, generator.standard_normal((SAMPLES, layers[-1])).astype(np.float32)


def test_new_candidates_of_the_last_layer_decrease_a_linear_loss_most():
    circuit, x, d_y = problem([GATES], candidates=4)
    new = rewiring.rewired(circuit, Device("cpu").open(), x, lambda y, rows: d_y[rows], np.random.default_rng(0))
    chosen = circuit.chosen.update_wires[0]
    losses = (hard(circuit, x) * d_y).sum(axis=0)
    replaced = 0
    for gate in range(GATES):
        for wire in range(2):
            gains = []
            for source in range(INPUTS):
                wires = chosen.copy()
                wires[wire, gate] = source
                changed = (hard(replace(circuit.chosen, update_wires=(wires,)), x) * d_y).sum(axis=0)
                gains.append(losses[gate] - changed[gate])
            before, after = (c.update_wires[0][wire, gate] for c in (circuit, new))
            logits = circuit.wire_logits[gate, wire]
            kept = logits >= logits.max() - rewiring.GAP
            np.testing.assert_array_equal(after[kept], before[kept])
            added = set(after.tolist()) - set(before.tolist())
            others = sorted(set(range(INPUTS)) - set(before.tolist()), key=lambda source: -gains[source])
            assert added == {source for source in others[: (~kept).sum()] if gains[source] > 1e-4}
            replaced += len(added)
    assert replaced > GATES


def test_gains_of_an_inner_layer_follow_from_the_layers_above(monkeypatch):
    monkeypatch.setattr(rewiring, "BATCH", SAMPLES // 2)
    circuit, x, d_y = problem([GATES, GATES], candidates=4)
    circuit = replace(circuit, wire_logits=100 * circuit.wire_logits)
    first, last = layers(circuit)
    # Each wire of the last layer reads its own bit, since a gate may read a node twice.
    chosen = last.chosen.update_wires[0].reshape(-1)
    separate = replace(last.chosen, channels=len(chosen), update_wires=(np.arange(len(chosen)).reshape(2, -1),))
    bits = hard(first, x)[:, chosen]
    d_read = np.zeros((SAMPLES, GATES), np.float32)
    for wire, node in enumerate(chosen):
        zero, one = bits.copy(), bits.copy()
        zero[:, wire], one[:, wire] = 0, 1
        d_read[:, node] += ((hard(separate, one) - hard(separate, zero)) * d_y).sum(axis=1)
    both, inner = (
        rewiring.rewired(start, Device("cpu").open(), x, lambda y, rows, d=d: d[rows], np.random.default_rng(0))
        for start, d in ((circuit, d_y), (first, d_read))
    )
    np.testing.assert_array_equal(np.sort(both.update_wires[0]), np.sort(inner.update_wires[0]))
    assert (both.update_wires[0] != circuit.update_wires[0]).any()


@pytest.mark.parametrize("candidates", [2, 8])
def test_rewiring_keeps_the_hard_circuit_and_distinct_candidates(candidates):
    circuit, x, d_y = problem([70, 30], candidates)
    new = rewiring.rewired(circuit, Device("cpu").open(), x, lambda y, rows: d_y[rows], np.random.default_rng(0))
    np.testing.assert_array_equal(hard(new, x), hard(circuit, x))
    np.testing.assert_array_equal(new.gate_logits, circuit.gate_logits)
    for before, after in zip(circuit.update_wires, new.update_wires, strict=True):
        assert (before != after).any()
        assert (np.diff(np.sort(after, axis=2), axis=2) > 0).all()
    np.testing.assert_array_equal(new.wire_logits.argmax(axis=2), circuit.wire_logits.argmax(axis=2))


def test_classifier_with_replaced_candidates_resumes_and_loads(tmp_path, monkeypatch):
    monkeypatch.setattr(classifier, "REWIRING_UPDATES", 20)
    x, labels = rows()
    table = difflogic.LabelledTable.of(x, labels, ["width", "height", "noise"])
    fields = {"steps": 8000, "table": {"batch_size": 32, "rewiring": 1.0}}
    fields |= {"logic": {"widths": [60, 60], "candidates": 4}}
    whole = difflogic.fit(table=table, engine="cpu", set=fields, out=tmp_path / "whole")
    first = Circuit.feed_forward([whole.best.agent.actor.thermometer.bits, 60, 60], seed=whole.config.seed)
    new = whole.best.circuit
    assert (new.update_wires[1] != first.with_candidates(4, whole.config.seed).update_wires[1]).any()
    difflogic.fit(table=table, engine="cpu", set=fields | {"steps": 3000}, out=tmp_path / "part")
    again = difflogic.fit(resume=tmp_path / "part", steps=8000)
    for name, array in whole.best.agent.state().items():
        np.testing.assert_array_equal(again.best.agent.state()[name], array, err_msg=name)
    agent = actor_file.load(tmp_path / "whole", Device("cpu"))
    np.testing.assert_array_equal(agent.decide(x.astype(np.float32)), whole.best.agent.decide(x.astype(np.float32)))
    assert whole.score > 0.8
