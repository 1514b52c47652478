"""Advantages, batches, and the ring of transitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.devices.device import Device
from difflogic.errors import LimitError
from difflogic.policies.buffers import FIRST_ROWS, ReplayBuffer, RolloutBuffer, minibatches


def rollout(seed, steps=7, copies=3, gamma=0.9, gae_lambda=0.8):
    rng = np.random.default_rng(seed)
    buffer = RolloutBuffer(steps, copies, gamma, gae_lambda)
    observations = rng.standard_normal((steps + 1, copies, 2)).astype(np.float32)
    rewards = rng.standard_normal((steps, copies)).astype(np.float32)
    ends = rng.random((steps, copies)) < 0.3
    for t in range(steps):
        buffer.add(observations[t], observations[t], np.arange(copies) + t, rewards[t], rewards[t], ends[t])
    samples = buffer.samples(observations[-1], lambda seen: seen, lambda seen: seen.sum(axis=1))
    return samples, observations.sum(axis=2), rewards, ends


@given(st.integers(0, 2**16), st.sampled_from([0.0, 0.9, 1.0]), st.sampled_from([0.0, 0.8, 1.0]))
def test_advantages_are_the_weighted_sum_of_all_later_errors(seed, gamma, gae_lambda):
    samples, values, rewards, ends = rollout(seed, gamma=gamma, gae_lambda=gae_lambda)
    steps, copies = rewards.shape
    wanted = np.zeros((steps, copies))
    for t, copy in itertools.product(range(steps), range(copies)):
        for later in range(t, steps):
            goes_on = not ends[later, copy]
            delta = rewards[later, copy] + gamma * goes_on * values[later + 1, copy] - values[later, copy]
            wanted[t, copy] += (gamma * gae_lambda) ** (later - t) * delta
            if not goes_on:
                break
    np.testing.assert_allclose(samples.advantages.reshape(steps, copies), wanted, atol=1e-4)
    np.testing.assert_allclose(samples.returns, samples.advantages + samples.values, atol=1e-5)


@pytest.mark.parametrize(("size", "batches"), [(7, 3), (21, 1), (100, 1), (5, 4)])
def test_batches_hold_each_sample_at_most_once(size, batches):
    parts = list(minibatches(21, size, np.random.default_rng(1)))
    assert [len(part) for part in parts] == [min(size, 21)] * batches
    places = np.concatenate(parts)
    assert len(set(places)) == len(places)
    assert set(places) <= set(range(21))


@given(st.integers(1, 9), st.lists(st.integers(1, 4), max_size=12))
def test_a_ring_holds_the_last_transitions_and_is_restored(size, counts):
    ring, other = ring_of(size), ring_of(size)
    number, kept = 0, []
    for count in counts:
        count = min(count, size)
        numbers = np.arange(number, number + count, dtype=np.float32)
        ring.add(pairs=np.stack([numbers, numbers], axis=1), rewards=numbers)
        kept = [*kept, *numbers][-size:]
        number += count
    state = ring.state(("pairs", "rewards"))
    other.restore(int(state.pop("next")), state)
    if kept:
        for each in (ring, other):
            drawn = {name: tensor.numpy() for name, tensor in each.sample(200, np.random.default_rng(0)).items()}
            assert set(drawn["rewards"].ravel()) <= set(kept)
            np.testing.assert_array_equal(drawn["pairs"][:, :1], drawn["rewards"])
        assert ring.filled == len(kept)
        assert set(ring.sample(2000, np.random.default_rng(0))["rewards"].numpy().ravel()) == set(kept)


def ring_of(size, device="cpu"):
    return ReplayBuffer(size, {"pairs": np.zeros((1, 2)), "rewards": np.zeros((1, 1))}, Device(device))


def test_a_ring_grows_on_its_device():
    """Beyond its first rows, and over its end; what is drawn is the same to the bit as on the processor."""
    rings = [ring_of(FIRST_ROWS + 100, device) for device in ("cpu", "gpu:0")]
    numbers = np.arange(3 * FIRST_ROWS, dtype=np.float32)
    for first in range(0, len(numbers), 999):
        part = numbers[first : first + 999]
        for ring in rings:
            ring.add(pairs=np.stack([part, -part], axis=1), rewards=part)
    one, other = (ring.sample(500, np.random.default_rng(0)) for ring in rings)
    for name in one:
        np.testing.assert_array_equal(one[name].numpy(), other[name].numpy())
    assert one["rewards"].numpy().min() >= len(numbers) - FIRST_ROWS - 100


def test_a_ring_that_does_not_fit_is_refused_before_it_is_made():
    with pytest.raises(LimitError, match=r"takes 1[0-9]{3,}\.. GB, but only .* free: use --set sac.buffer_size="):
        ring_of(10**11)
