"""Soft rollouts against the definition, on circuits of every kind."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Shape
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.kernels.fire_mask import fire_mask
from difflogic.reference.kernels.seed_grid import seed_grid
from tests import naive, tolerances
from tests.random_circuits import bits, circuits, random_circuit

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


def test_a_cell_that_does_not_fire_keeps_its_state() -> None:
    rng = np.random.default_rng(1)
    circuit = random_circuit(rng)
    x = rng.random((2, 3, 4, 2)).astype(np.float32)
    masks = np.zeros((2, 3, 4, 1), dtype=np.float32)
    masks[1, 2, 3] = 1
    states = ReferenceEngine().rollout(circuit, x, 2, masks=masks)
    np.testing.assert_array_equal(states[1], x)
    changed = (states[2] != x).any(axis=(0, 3))
    assert np.argwhere(changed).tolist() == [[2, 3]]


@given(seeds, st.sampled_from([(1, 3, 3, 1), (17, 5, 7, 3), (2, 16, 16, 8)]))
def test_start_grids_are_the_data_chains_bits(seed: int, grid: tuple[int, int, int, int]) -> None:
    control = np.zeros(c.WORDS, dtype=np.uint32)
    control[c.DATA_KEY] = prng.key_from_seed(seed)
    batch, height, width, channels = grid
    state = np.full((channels, batch * height * width), np.nan, dtype=np.float32)
    seed_grid(Shape(batch, height, width, channels, steps=1), control, state)
    expected = prng.randint_power_of_two(prng.split(prng.key_from_seed(seed))[1], grid, 2)
    np.testing.assert_array_equal(state.T.reshape(grid), expected)


def test_fire_masks_are_fresh_each_step_and_fire_at_their_rate() -> None:
    shape = Shape(1, 50, 50, 1, steps=4)
    masks = np.full((4, 2500), np.nan, dtype=np.float32)
    fire_mask(shape, 0.6, np.arange(8, dtype=np.uint32), masks)
    assert set(np.unique(masks)) == {0, 1}
    assert all((one != two).any() for one, two in itertools.pairwise(masks))
    assert abs(masks.mean() - 0.6) < 0.02  # four standard deviations
