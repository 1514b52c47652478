"""Gate ids are truth tables, and four coefficients are the whole gate."""

import numpy as np
import pytest

from difflogic.core import gates
from difflogic.reference.kernels.coefficients import coefficients, softmax
from tests import naive, parity, tolerances

CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))


def test_initial_gates_pass_a_through() -> None:
    assert gates.GATE_COUNT == len(gates.NAMES) == len(gates.TRUTH) == len(gates.TABLE) == 16
    assert gates.NAMES[gates.PASS_THROUGH] == "A"


@pytest.mark.parametrize("gate", range(16))
def test_gate_id_is_its_truth_table(gate: int) -> None:
    assert "".join(map(str, gates.TRUTH[gate])) == f"{gate:04b}"


def test_gate_names_are_in_the_order_of_their_truth_tables() -> None:
    first_is_0 = ("FALSE", "AND", "A AND NOT B", "A", "NOT A AND B", "B", "XOR", "OR")
    first_is_1 = ("NOR", "XNOR", "NOT B", "A OR NOT B", "NOT A", "NOT A OR B", "NAND", "TRUE")
    assert first_is_0 + first_is_1 == gates.NAMES


@pytest.mark.parametrize("gate", range(16))
def test_coefficients_equal_truth_table_at_corners(gate: int) -> None:
    c0, ca, cb, cab = gates.TABLE[gate]
    assert [c0 + ca * a + cb * b + cab * a * b for a, b in CORNERS] == gates.TRUTH[gate].tolist()


def test_constants_cannot_be_written() -> None:
    for constant in (gates.TRUTH, gates.TABLE):
        with pytest.raises(ValueError, match="read-only"):
            constant[0, 0] = 1


def test_relaxed_gates_equal_the_authors() -> None:
    arrays = parity.load("primitives")
    a, b = arrays["gates/a"], arrays["gates/b"]
    ours = np.stack([np.ones_like(a), a, b, a * b], axis=1) @ gates.TABLE.T
    np.testing.assert_allclose(ours, arrays["gates/all16"], atol=tolerances.STATE_ATOL)
    theirs = np.stack([gate(a, b) for gate in naive.RELAXED], axis=1)
    np.testing.assert_allclose(theirs, arrays["gates/all16"], atol=tolerances.STATE_ATOL)


def test_soft_and_hard_gates_equal_the_authors() -> None:
    arrays = parity.load("primitives")
    logits, a, b = arrays["gates/logits"], arrays["gates/a"], arrays["gates/b"]
    soft = np.empty((len(logits), 4), dtype=np.float32)
    gate_ids = np.empty(len(logits), dtype=np.uint32)
    coefficients(logits, soft, gate_ids)
    inputs = np.stack([np.ones_like(a), a, b, a * b], axis=1)

    np.testing.assert_allclose(softmax(logits), arrays["gates/soft"], atol=tolerances.STATE_ATOL)
    np.testing.assert_allclose((inputs * soft).sum(1), arrays["gates/out_soft"], atol=tolerances.STATE_ATOL)
    np.testing.assert_array_equal(np.eye(16)[gate_ids], arrays["gates/hard"])
    outputs = (inputs * gates.TABLE[gate_ids]).sum(1)
    np.testing.assert_allclose(outputs, arrays["gates/out_hard"], atol=tolerances.STATE_ATOL)


def test_softmax_survives_large_logits() -> None:
    probs = softmax(np.array([[1000.0] + [0.0] * 15, [-1000.0] * 16], dtype=np.float32))
    np.testing.assert_array_equal(probs[0], np.eye(16)[0])
    np.testing.assert_array_equal(probs[1], np.full(16, 1 / 16))
