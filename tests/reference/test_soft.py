"""Soft rollouts against the definition, on circuits of every kind."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests import naive, tolerances
from tests.random_circuits import bits, circuits

seeds = st.integers(0, 2**32 - 1)


@given(circuits(), st.sampled_from([(3, 3), (5, 7)]), st.sampled_from([1, 17]), st.booleans(), seeds)
def test_a_soft_rollout_is_the_definition(
    circuit: Circuit, size: tuple[int, int], batch: int, masked: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.random((batch, *size, circuit.channels))
    masks = bits(rng, 2, *size, 1) if masked else None
    expected = naive.rollout(circuit, x, 2, naive.soft_gate, masks)
    exact = ReferenceEngine(np.float64).rollout(circuit, x, 2, masks=masks)
    np.testing.assert_allclose(exact, expected, rtol=tolerances.FLOAT64_RTOL, atol=tolerances.FLOAT64_RTOL)
    single = ReferenceEngine().rollout(circuit, x, 2, masks=masks)
    np.testing.assert_allclose(single, expected, rtol=tolerances.STATE_RTOL, atol=tolerances.STATE_ATOL)
