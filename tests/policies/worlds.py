"""Environments that tests can foresee, and some that cannot be learned. Importing this module registers them."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

STEPS = 12


class Signs(gymnasium.Env):
    """Say whether a number is positive: 1 for each right answer, `STEPS` answers an episode."""

    observation_space = Box(-1, 1, (1,), np.float32)
    action_space = Discrete(2, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = STEPS
        return self._look(), {}

    def _look(self):
        self.seen = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.seen

    def step(self, action):
        reward = float((action == 4) == (self.seen[0] >= 0))
        self.left -= 1
        return self._look(), reward, self.left == 0, False, {}


class Aim(Signs):
    """Come near a number between -2 and 2: the reward is minus the squared distance."""

    observation_space = Box(-2, 2, (1,), np.float32)
    action_space = Box(-2, 2, (1,), np.float32)

    def step(self, action):
        reward = -float((action[0] - 2 * self.seen[0]) ** 2)
        self.left -= 1
        return self._look(), reward, False, self.left == 0, {}


class Endless(Signs):
    """The same without an end."""

    def step(self, action):
        seen, reward, *_, info = super().step(action)
        return seen, reward, False, False, info


class Choose(Signs):
    """One of several actions, of which the last is right for positive numbers and the first for the others."""

    def __init__(self, actions):
        self.action_space = Discrete(actions)

    def step(self, action):
        return super().step(4 if action == self.action_space.n - 1 else 3 if action == 0 else None)


class Parts(Signs):
    """The same number, the last part of what is seen: as a sign, and as it is."""

    observation_space = Dict(
        a=Tuple([Discrete(3, start=-1), MultiBinary(2)]), b=MultiDiscrete([2, 4]), c=Box(-1, 1, (1, 1), np.float32)
    )

    def _look(self):
        sign = int(np.sign(super()._look()[0]))
        return {"a": (sign, np.array([1, 0], np.int8)), "b": np.array([0, 3]), "c": self.seen.reshape(1, 1)}


class Corridor(Signs):
    """At its beginning a sign is shown, and at its end the side to turn to; nothing between says which it was."""

    observation_space = Box(-1, 1, (2,), np.float32)
    LENGTH = 4

    def _look(self):
        if self.left == STEPS:
            super()._look()
        at_end = self.left == STEPS - self.LENGTH
        return np.array([np.sign(self.seen[0]) * (self.left == STEPS), at_end], np.float32)

    def step(self, action):
        at_end = self.left == STEPS - self.LENGTH
        seen, reward, *_, info = super().step(action)
        return seen, reward * at_end, at_end, False, info


class Broken(Signs):
    """Environment with the fault that `fault` names."""

    def __init__(self, fault):
        self.fault = fault
        if fault == "text to read":
            self.observation_space = Dict(said=Text(3), seen=Box(-1, 1, (1,), np.float32))
        if fault == "two actions at once":
            self.action_space = MultiDiscrete([2, 2])

    def reset(self, *, seed=None, options=None):
        # Entropy of the system's, where the seed should decide.
        seen, info = super().reset(seed=None if self.fault == "forgetful" else seed)
        return seen * (self.fault != "nothing to see"), info

    def step(self, action):
        seen, reward, over, cut, info = super().step(action)
        if self.fault == "ends at once":
            over = True
        if self.fault == "nothing to see":
            seen = np.zeros(1, np.float32)
        if self.left == STEPS - 3:
            if self.fault == "raises":
                raise RuntimeError("the wheel came off")
            if self.fault == "nan observation":
                seen = np.array([np.nan], np.float32)
            if self.fault == "nan reward":
                reward = float("nan")
        return seen, reward, over, cut, info


FAULTS = ("raises", "nan observation", "nan reward", "ends at once", "forgetful", "text to read",
          "two actions at once", "nothing to see")  # fmt: skip


def broken(fault):
    """The registered name of an environment with this fault."""
    return f"test/{fault.title().replace(' ', '')}-v0"


gymnasium.register("test/Signs-v0", Signs, reward_threshold=0.9 * STEPS, max_episode_steps=STEPS)
gymnasium.register("test/Aim-v0", Aim)
gymnasium.register("test/Endless-v0", Endless)
gymnasium.register("test/Parts-v0", Parts)
gymnasium.register("test/Corridor-v0", Corridor, reward_threshold=0.95)
for _actions in (3, 5, 6, 7, 9):
    gymnasium.register(f"test/Choose{_actions}-v0", Choose, kwargs={"actions": _actions})
for _fault in FAULTS:
    gymnasium.register(broken(_fault), Broken, kwargs={"fault": _fault})
