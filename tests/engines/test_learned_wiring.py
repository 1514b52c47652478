"""Learned wiring: engines against the reference, training with all that touches wires, and exact continuation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.config.train import InitialConfig
from difflogic.core import wiring
from difflogic.cpu.engine import CpuEngine
from difflogic.engine.api import Engine
from difflogic.engine.job import Job
from difflogic.gpu.engine import GpuEngine
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from difflogic.model.statistics import decided, undecided_gates
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.closeness import STATES, assert_gradients_close
from tests.engines.test_random_circuits import assert_engines_agree, drawn, work
from tests.jobs import assert_same, make_job, start, train
from tests.random_circuits import bits, circuits

REFERENCE = ReferenceEngine()
LEARNED = wiring.CANDIDATES[1:]


@pytest.fixture(scope="module", params=["cpu", pytest.param("gpu", marks=pytest.mark.exhaustive)])
def engine(request: pytest.FixtureRequest) -> Engine:
    return CpuEngine(threads=3) if request.param == "cpu" else GpuEngine(request.getfixturevalue("device"))


# circuit, grid [B, H, W], steps, loss channels, masked
CASES: dict[str, tuple[Circuit, tuple[int, int, int], int, int, bool]] = {
    "2, masked": (drawn(1, channels=3, hidden=(90, 7), candidates=2), (2, 5, 7), 3, 2, True),
    "4, periodic": (drawn(2, channels=2, kernels=3, periodic=True, candidates=4), (3, 3, 11), 3, 2, False),
    "8, own wiring": (drawn(3, channels=1, per_kernel=True, trees=True, candidates=8), (17, 4, 3), 2, 1, False),
    "16, a line": (drawn(4, neighbourhood="line", periodic=True, candidates=16), (33, 1, 5), 3, 1, True),
}


@pytest.mark.parametrize("name", CASES)
def test_learned_wiring_agrees_with_reference(engine: Engine, name: str) -> None:
    circuit, grid, steps, loss_channels, masked = CASES[name]
    assert_engines_agree(engine, circuit, work(circuit, grid, steps, loss_channels, masked, seed=11))


@settings(max_examples=60)
@given(circuits(LEARNED), st.integers(1, 3), st.integers(3, 6), st.booleans(), st.integers(0, 2**32 - 1))
@pytest.mark.exhaustive
def test_any_learned_wiring_agrees_with_reference(engine, circuit, batch, side, masked, seed) -> None:
    assert_engines_agree(engine, circuit, work(circuit, (batch, side, 5), 2, circuit.channels, masked, seed))


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("candidates", [2, 8])
def test_function_agrees_with_reference(engine: Engine, candidates: int, hard: bool) -> None:
    circuit = Circuit.feed_forward([70, 150, 9], 1, InitialConfig(logit=1.0, noise=2.0), candidates)
    rng = np.random.default_rng(0)
    noise = np.where(np.abs(circuit.wire_logits) > 100, 0, rng.standard_normal(circuit.wire_logits.shape))
    circuit = circuit.with_logits(np.concatenate([circuit.gate_logits, wiring.rows(circuit.wire_logits + noise)]))
    x, d_y = bits(rng, 37, 70), rng.standard_normal((37, 9))
    ours, theirs = (each.open_function(circuit, [37], hard=hard) for each in (engine, REFERENCE))
    y, expected = ours.forward(x), theirs.forward(x)
    np.testing.assert_allclose(y, expected, **({"rtol": 0, "atol": 0} if hard else STATES))
    (gradients, d_x), (expected_gradients, expected_d_x) = (each.backward(d_y) for each in (ours, theirs))
    assert_gradients_close(circuit.unflatten(gradients), circuit.unflatten(expected_gradients))
    np.testing.assert_allclose(d_x, expected_d_x, rtol=0, atol=tolerances.GRADIENT_SHARE * np.abs(expected_d_x).max())
    if hard:
        np.testing.assert_array_equal(y, engine.open_function(circuit.chosen, [37], hard=True).forward(x))


OPTIONS: dict[str, dict[str, Any]] = {
    "hardening": {"hardening": {"share": 1.0, "begin": 1, "end": 5}, "clip_by": "norm", "clip": 0.01},
    "stuck gates, input-wise": {"task": {"stuck_gates": 0.2}, "model": {"input_wise": True}},
}


def learned(candidates: int = 4, **options: Any) -> Job:
    options["model"] = options.get("model", {}) | {"candidates": candidates}
    return make_job(lr=0.1, epsilon=1e-3, **options)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("candidates", [2, 4])
def test_training_agrees_with_reference_and_continues_exactly(engine: Engine, name: str, candidates: int) -> None:
    job = learned(candidates, **OPTIONS[name])
    begin, gates = start(job), job.circuit.gates
    state, rows, evaluation = train(engine, job, begin, 6)
    expected, expected_rows, expected_evaluation = train(REFERENCE, job, begin, 6)
    np.testing.assert_allclose(state.logits, expected.logits, rtol=1e-6, atol=3e-3)
    assert [row.soft_loss for row in rows] == pytest.approx([row.soft_loss for row in expected_rows], rel=1e-4)
    assert evaluation == expected_evaluation
    assert np.abs(state.logits - begin.logits)[gates:].max() > 0.1
    half, first, _ = train(engine, job, begin, 3)
    rest, second, last = train(engine, job, half, 3)
    assert_same((state, rows, evaluation), (rest, [*first, *second], last))


def test_hard_circuit_is_that_of_chosen_wires(engine: Engine) -> None:
    job = learned(8)
    state, _, evaluation = train(engine, job, start(job, noise=2.0), 3)
    circuit = job.circuit.with_logits(state.logits)
    wires = zip(circuit.chosen.update_wires, circuit.update_wires, strict=True)
    assert any((one != two[..., 0]).any() for one, two in wires)
    states = CellNetlist.from_circuit(circuit).rollout(job.probes, job.config.task.steps)
    assert (states[-1][..., :1] != job.targets(job.probes)).sum() == evaluation.hard_loss
    for each in (circuit, decided(circuit)):
        hard = engine.rollout(each, job.probes.astype(np.float32), job.config.task.steps, "hard")
        np.testing.assert_array_equal(hard, states)
    assert undecided_gates(circuit.gate_logits, circuit.wire_logits) > 0
    assert undecided_gates(decided(circuit).gate_logits, decided(circuit).wire_logits) == 0


@pytest.mark.parametrize("candidates", LEARNED)
def test_candidates_are_distinct_and_even_and_begin_with_the_fixed_wiring(candidates: int) -> None:
    fixed = Circuit.feed_forward([300, 130, 5, 3], seed=7)
    circuit = Circuit.feed_forward([300, 130, 5, 3], seed=7, candidates=candidates)
    np.testing.assert_array_equal(circuit.flat_logits()[: circuit.gates], fixed.flat_logits())
    for n_in, drawn_wires, wires in zip((300, 130, 5), circuit.update_wires, fixed.update_wires, strict=True):
        np.testing.assert_array_equal(drawn_wires[..., 0], wires)
        if n_in > 5:
            assert not wiring.repeated(drawn_wires).any()
            reads = np.bincount(drawn_wires.ravel(), minlength=n_in)
            assert np.ptp(reads) <= candidates + 2
    # The last three gates have five inputs to read: of 8 candidates three repeat one, and are never chosen.
    is_repeated = wiring.repeated(drawn_wires).swapaxes(0, 1)
    assert is_repeated.sum() == 6 * max(0, candidates - 5)
    assert (circuit.wire_logits[-3:][is_repeated] < -1e5).all()
    assert flat_layout(circuit).candidates == candidates
