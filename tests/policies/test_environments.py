"""Copies side by side: what they take and show, how they are written down, and what is refused."""

import sys

import numpy as np
import pytest

from difflogic.devices.device import Device
from difflogic.errors import CheckpointError, ConfigError, FaultyEnvironmentError, MissingPackagesError
from difflogic.policies.actors import LogicActor, Sightings, random_actions
from difflogic.policies.environments import EVALUATION, TRAINING, Environments, threshold
from tests.policies import worlds
from tests.policies.agents import config

NAMES = ("CartPole-v1", "Pendulum-v1", "test/Signs-v0", "test/Aim-v0", "test/Parts-v0")


def play(environments, steps, seed=0):
    generator = np.random.default_rng(seed)
    seen = []
    for _ in range(steps):
        step = environments.step(random_actions(environments.spaces, environments.count, generator))
        over = step.terminated | step.truncated
        environments.begin_anew(over)
        seen.append((step.observations.copy(), step.rewards, over, environments.observations.copy()))
    return [np.stack(column) for column in zip(*seen, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_each_copy_has_episodes_of_its_own_which_its_seed_repeats(name):
    first, again = Environments(name, 3, seed=5), Environments(name, 3, seed=5)
    begun = first.observations.copy()
    assert len(np.unique(begun, axis=0)) == 3
    for one, other in zip(play(first, 40), play(again, 40), strict=True):
        np.testing.assert_array_equal(one, other)
    for other in (Environments(name, 3, seed=6), Environments(name, 3, seed=5, stream=EVALUATION)):
        assert not np.isin(other.observations, begun).all()
    # A copy is what it is, however many are beside it.
    np.testing.assert_array_equal(Environments(name, 1, seed=5).observations, begun[:1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("before", [0, 7, 30])
def test_what_was_written_down_goes_on_as_if_it_had_never_stopped(name, before):
    whole = Environments(name, 3, seed=5)
    play(whole, before)
    state, returns = whole.state(), whole.returns.copy()
    later = Environments(name, 3, seed=5)
    play(later, 11)  # wherever it was
    later.restore(state)
    np.testing.assert_array_equal(later.observations, state["observations"])
    np.testing.assert_allclose(later.returns, returns, rtol=1e-12)
    np.testing.assert_array_equal(later.lengths, whole.lengths)
    for one, other in zip(play(whole, 25, seed=1), play(later, 25, seed=1), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_training_may_begin_its_episodes_elsewhere():
    options = {"low": 0.1, "high": 0.2}
    training = Environments("CartPole-v1", 3, seed=5, reset=options)
    assert ((training.observations >= 0.1) & (training.observations <= 0.2)).all()
    training.begin_anew(np.array([True, False, True]))
    assert ((training.observations >= 0.1) & (training.observations <= 0.2)).all(), "and so the episodes after"
    later = Environments("CartPole-v1", 3, seed=5, reset=options)
    later.restore(training.state())
    np.testing.assert_array_equal(later.observations, training.observations)
    with pytest.raises(FaultyEnvironmentError, match="raised an error at the beginning of an episode"):
        Environments("CartPole-v1", 1, seed=5, reset={"low": "far"})


def test_what_is_shown_in_parts_is_one_row_and_few_values_have_every_threshold():
    seen = Environments("test/Parts-v0", 2, seed=5)
    np.testing.assert_array_equal(seen.observations[:, 0], np.sign(seen.observations[:, 5]))
    np.testing.assert_array_equal(seen.observations[:, 1:5], [[1, 0, 0, 3]] * 2)
    assert seen.spaces.known == ((-0.5, 0.5), (0.5,), (0.5,), (0.5,), (0.5, 1.5, 2.5), ())
    actor = LogicActor(config(), seen.spaces, Sightings(*np.ones((2, 6), np.float32)), Device("cpu"))
    assert [*map(len, actor.thermometer.thresholds)] == [2, 1, 1, 1, 3, 5]
    for name, counts in (("FrozenLake-v1", [15]), ("Blackjack-v1", [31, 10, 1])):
        assert [len(row) for row in Environments(name, 1, seed=0).spaces.known] == counts


def test_an_environment_that_does_not_repeat_itself_is_told_on():
    forgetful = Environments(worlds.broken("forgetful"), 2, seed=5)
    play(forgetful, 5)
    state = forgetful.state()
    with pytest.raises(CheckpointError, match="is not deterministic"):
        Environments(worlds.broken("forgetful"), 2, seed=5).restore(state)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raises", "raised an error during an episode: RuntimeError: the wheel came off"),
        ("nan observation", "observation in which the value at index 0 is nan, after 2 steps"),
        ("nan reward", r"returned a non-finite reward: \[.*nan"),
        ("ends at once", "All 40 episodes .* ended after the first step"),
        ("nothing to see", "All observations of .* in 40 random steps were equal"),
    ],
)
def test_what_nobody_can_learn_from_is_one_sentence(fault, words):
    with pytest.raises(FaultyEnvironmentError, match=words):
        Sightings.of(config(environment={"id": worlds.broken(fault)}, logic={"random_steps": 40}))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CartPol-v1", r"Unknown environment 'CartPol-v1' \(did you mean CartPole-v1\?\)"),
        ("no_such_module:Maze-v0", "no_such_module"),
        (worlds.broken("text to read"), r"expected 1 to 4096 numbers in a Box, .* got Dict\("),
        (worlds.broken("two actions at once"), r"Unsupported action space of .* got MultiDiscrete"),
    ],
)
def test_what_no_agent_can_have_is_refused(name, words):
    with pytest.raises(ConfigError, match=words):
        Environments(name, 1, seed=0, stream=TRAINING)


def test_an_environment_of_ones_own_is_found_in_its_module():
    assert threshold("tests.policies.worlds:test/Signs-v0") == 0.9 * worlds.STEPS
    assert Environments("tests.policies.worlds:test/Signs-v0", 1, seed=0).spaces.actions == 2
    with pytest.raises(ConfigError, match=r"The module no_such_module .* cannot be imported \(searched in"):
        threshold("no_such_module:Maze-v0")
    with pytest.raises(ConfigError, match="did you mean test/Signs-v0"):
        threshold("tests.policies.worlds:test/Sings-v0")


def test_without_gymnasium_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    for ask in (lambda: threshold("CartPole-v1"), lambda: Environments("CartPole-v1", 1, seed=0)):
        with pytest.raises(MissingPackagesError, match=r"\[rl\]"):
            ask()


def test_thresholds_are_gymnasiums():
    assert threshold("CartPole-v1") == 475
    assert threshold("test/Aim-v0") == -np.inf
    with pytest.raises(ConfigError, match="did you mean cartpole"):
        threshold("cartpol", ["cartpole"])
