"""Soft rollouts against the definition; hard ones bit for bit, 32 samples per word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core.bits import pack_grids, pack_targets
from difflogic.engine.shape import Shape
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.kernels.hard_loss import hard_loss
from difflogic.reference.kernels.pack import pack as pack_states
from tests import naive, tolerances
from tests.random_circuits import bits, circuits, random_circuit

BATCHES = (1, 17, 32, 33)
seeds = st.integers(0, 2**32 - 1)


@given(circuits(), st.sampled_from(BATCHES), st.booleans(), seeds)
def test_a_hard_rollout_is_the_truth_tables(circuit: Circuit, batch: int, masked: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = bits(rng, batch, 3, 5, circuit.channels)
    masks = bits(rng, 2, 3, 5, 1) if masked else None
    states = ReferenceEngine().rollout(circuit, x, 2, "hard", masks)
    assert states.dtype == np.float32
    np.testing.assert_array_equal(states, naive.rollout(circuit, x, 2, naive.hard_gate, masks))


def test_ties_take_the_lowest_gate() -> None:
    rng = np.random.default_rng(1)
    circuit = random_circuit(rng)
    tied = circuit.with_logits(np.round(circuit.flat_logits() / 2))
    top = tied.flat_logits().max(axis=1, keepdims=True)
    assert ((tied.flat_logits() == top).sum(axis=1) > 1).sum() > 10
    x = bits(rng, 3, 5, 7, 2)
    states = ReferenceEngine().rollout(tied, x, 3, "hard")
    np.testing.assert_array_equal(states, naive.rollout(tied, x, 3, naive.hard_gate))


def test_a_soft_rollout_of_decided_gates_is_the_hard_one() -> None:
    rng = np.random.default_rng(3)
    circuit = random_circuit(rng)
    circuit = circuit.with_logits(200 * np.eye(16)[rng.integers(16, size=circuit.gates)])  # exp(-200) is 0 in float32
    x = bits(rng, 2, 5, 7, 2)
    soft, hard = (ReferenceEngine().rollout(circuit, x, 3, mode) for mode in ("soft", "hard"))
    np.testing.assert_array_equal(soft, hard)


@given(st.sampled_from(BATCHES), st.sampled_from([(3, 3, 1), (5, 7, 3)]), seeds)
def test_a_soft_batch_becomes_words(batch: int, grid: tuple[int, int, int], seed: int) -> None:
    """Packing soft states, cells last, gives the same words as packing grids."""
    shape = Shape(batch, *grid, steps=1)
    grids = bits(np.random.default_rng(seed), batch, *grid)
    words, targets = (np.full_like(each, 7) for each in (pack_grids(grids), pack_targets(grids[None])))
    counts = np.ones((1, 2), dtype=np.uint32)
    flat = grids.reshape(-1, grid[2]).T
    pack_states(shape, flat, 1 - flat[None], words, targets, counts)
    np.testing.assert_array_equal(words, pack_grids(grids))
    np.testing.assert_array_equal(targets, pack_targets(1 - grids[None]))
    assert not counts.any()


@pytest.mark.parametrize("loss_channels", [1, 2])
@given(st.sampled_from(BATCHES), seeds)
def test_wrong_values_and_wrong_samples_are_counted(loss_channels: int, batch: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = bits(rng, 3, 4, loss_channels)
    grids = bits(rng, batch, 3, 4, 3)
    grids[..., :loss_channels] = target
    flips = rng.random((batch, 3, 4, loss_channels)) < 0.05
    grids[..., :loss_channels][flips] = 1 - grids[..., :loss_channels][flips]
    words = pack_grids(grids) | ~pack_grids(np.ones_like(grids))  # what lies beyond the batch must not count
    shape = Shape(-(-batch // 32), 3, 4, 3, steps=1, loss_channels=loss_channels)
    hard_targets = pack_targets(np.broadcast_to(target, (1, batch, *target.shape)))
    counts = np.zeros((shape.batch, 2), dtype=np.uint32)
    counts[:, 0] = 5  # of a state that was evaluated before
    hard_loss(shape, 0, words, hard_targets, counts)
    assert counts[:, 0].tolist() == [5 + flips[first : first + 32].sum() for first in range(0, batch, 32)]
    wrong = flips.any(axis=(1, 2, 3))
    bits_of_wrong = [sum(1 << i for i in np.flatnonzero(wrong[first : first + 32])) for first in range(0, batch, 32)]
    assert counts[:, 1].tolist() == bits_of_wrong


@given(circuits(), st.sampled_from([(3, 3), (5, 7)]), st.sampled_from([1, 17]), st.booleans(), seeds)
def test_a_soft_rollout_is_the_definition(circuit, size, batch, masked, seed) -> None:
    rng = np.random.default_rng(seed)
    x = rng.random((batch, *size, circuit.channels))
    masks = bits(rng, 2, *size, 1) if masked else None
    expected = naive.rollout(circuit, x, 2, naive.soft_gate, masks)
    exact = ReferenceEngine(np.float64).rollout(circuit, x, 2, masks=masks)
    np.testing.assert_allclose(exact, expected, rtol=tolerances.FLOAT64_RTOL, atol=tolerances.FLOAT64_RTOL)
    single = ReferenceEngine().rollout(circuit, x, 2, masks=masks)
    np.testing.assert_allclose(single, expected, rtol=tolerances.STATE_RTOL, atol=tolerances.STATE_ATOL)
