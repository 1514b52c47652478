"""Actors, advantages, batches, and the ring of transitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.devices.device import Device
from difflogic.errors import ConfigError, LimitError
from difflogic.policies.actors import LogicActor, Sightings
from difflogic.policies.buffers import FIRST_ROWS, ReplayBuffer, RolloutBuffer, minibatches
from difflogic.policies.distributions import distribution
from difflogic.policies.environments import Spaces
from difflogic.policies.evaluate import baselines, evaluate_policy, random_policy
from difflogic.tensor import Tensor
from tests.policies import worlds
from tests.policies.agents import config

CPU = Device("cpu")
BOUNDS = np.array([-2, -1], np.float32), np.array([2, 3], np.float32)
THREE, TWO = Spaces(4, 3), Spaces(4, 2, BOUNDS)
SEEN = Sightings(np.array([0, 1], np.float32), np.array([1, 4], np.float32))


@given(st.integers(1, 12), st.floats(0.1, 10), st.integers(0, 2**16))
def test_thermometer_bits_rise_with_the_observation(bits, spread, seed):
    actor = LogicActor(config(logic={"bits": bits, "spread": spread}), Spaces(2, 2), SEEN, CPU)
    thresholds = np.array(actor.thermometer.thresholds)
    assert thresholds.shape == (2, bits)
    assert (np.diff(thresholds, axis=1) > 0).all()
    np.testing.assert_allclose(thresholds.mean(axis=1), SEEN.mean, atol=1e-4 * spread)
    observations = (10 * np.random.default_rng(seed).standard_normal((20, 2))).astype(np.float32)
    codes = actor.features(observations).reshape(20, 2, bits)
    np.testing.assert_array_equal(codes.sum(axis=2), (observations[:, :, None] >= thresholds).sum(axis=2))
    assert (np.diff(codes, axis=2) <= 0).all(), "a bit is 1 only where all below it are"


def test_thresholds_of_ones_own_are_taken_as_they_are():
    rows = ((-1.0, 0.25), (0.0, 3.0))
    actor = LogicActor(config(logic={"bits": 2, "thresholds": rows}), Spaces(2, 2), SEEN, CPU)
    assert actor.thermometer.thresholds == rows
    with pytest.raises(ConfigError, match="thresholds must have 2 rows, one for each number in an observation, got 1"):
        LogicActor(config(logic={"bits": 2, "thresholds": rows[:1]}), Spaces(2, 2), SEEN, CPU)
    fewer = LogicActor(config(logic={"bits": 2, "thresholds": ((0.0,), (0.0, 3.0))}), Spaces(2, 2), SEEN, CPU)
    assert fewer.thermometer.code([[1.0, 1.0]]).ravel().tolist() == [1, 1, 0]
    for row in ([0.0, 1.0, 2.0], [0.0, 0.0], [1.0, 0.0], [0.0, float("nan")]):
        with pytest.raises(ConfigError, match=r"rows of at most .*bits = 2 finite numbers in strictly ascending order"):
            config(logic={"bits": 2, "thresholds": [row]})


def test_groups_must_share_the_last_layer_out():
    with pytest.raises(ConfigError, match=r"logic\.widths: expected a multiple of 3, .* got 8"):
        LogicActor(config(), THREE, SEEN, CPU)


@given(st.integers(0, 2**16))
@pytest.mark.parametrize("spaces", [THREE, TWO], ids=["discrete", "continuous"])
def test_what_is_drawn_has_the_probability_that_learning_sees(spaces, seed):
    rng = np.random.default_rng(seed)
    drawn = distribution(spaces, CPU)
    preferences = (3 * rng.standard_normal((50, spaces.actions))).astype(np.float32)
    actions, log_probs = drawn.sample(preferences, rng)
    seen = drawn.log_probs(Tensor(preferences), Tensor(drawn.coded(actions)))
    np.testing.assert_allclose(seen.numpy(), log_probs, atol=1e-4)


def test_entropies_are_the_books():
    entropy = distribution(THREE, CPU).entropy(Tensor(np.zeros((5, 3))))
    assert entropy.item() == pytest.approx(np.log(3), rel=1e-6)
    gaussian = distribution(TWO, CPU)
    entropy = gaussian.entropy(Tensor(np.zeros((5, 2))))
    assert entropy.item() == pytest.approx(2 * (0.5 * np.log(2 * np.pi * np.e) - 0.5), rel=1e-6)


def test_actions_are_drawn_as_often_as_they_are_probable_and_lie_within_their_bounds():
    rng = np.random.default_rng(0)
    discrete = distribution(THREE, CPU)
    actions, _ = discrete.sample(np.tile(np.log([[0.2, 0.3, 0.5]]), (20000, 1)).astype(np.float32), rng)
    np.testing.assert_allclose(np.bincount(actions) / 20000, [0.2, 0.3, 0.5], atol=0.02)
    assert discrete.best(np.array([[1, 1, 0], [0, 1, 1]])).tolist() == [0, 1], "the first of equals"
    continuous = distribution(TWO, CPU)
    actions, _ = continuous.sample(np.zeros((500, 2), np.float32), rng)
    given_ = continuous.given(5 * actions)
    assert (given_ >= BOUNDS[0]).all()
    assert (given_ <= BOUNDS[1]).all()
    np.testing.assert_allclose(continuous.given(np.array([[-1, 1], [0, 0]])), [[-2, 3], [0, 1]])


def test_agents_without_a_mind_play_every_episode_to_its_end():
    score = evaluate_policy(random_policy(Spaces(1, 2), 0), "test/Signs-v0", 7, seed=4)
    assert score.lengths == (worlds.STEPS,) * 7
    assert all(0 <= each <= worlds.STEPS for each in score.returns)
    assert score.reached(-1) == 7
    found = baselines("test/Signs-v0", Spaces(1, 2), 200, seed=4)
    assert next(iter(found)) == "random"
    assert [*found][1] in ("always 0", "always 1")
    assert found["random"] == pytest.approx(worlds.STEPS / 2, rel=0.15)


@given(st.integers(0, 2**16))
def test_no_two_actions_are_equally_probable_and_the_most_probable_is_the_judged_agents(seed):
    actor = LogicActor(config(logic={"widths": [9, 9]}), Spaces(2, 3), SEEN, CPU)
    actor.began(1.0)
    observations = (4 * np.random.default_rng(seed).standard_normal((50, 2))).astype(np.float32)
    features = Tensor(actor.features(observations))
    counts = actor.layer(features).numpy().reshape(50, 3, 3).sum(axis=2)
    preferences = actor(features).numpy()
    assert (preferences.argmax(axis=1) == counts.argmax(axis=1)).all(), "the first of equals"
    assert (np.diff(np.sort(preferences, axis=1), axis=1) > 1).all()


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
