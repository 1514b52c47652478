"""Copies of a Gymnasium environment that are stepped together and whose state can be saved.

Gymnasium's environments cannot be saved without pickle. But the seed and the actions determine an episode. So the state
of a copy consists of its episode's number, which determines the seed, and the actions in this episode:

    copy 0   episode 3   actions 1 0 0 1      a restored copy is reset with the seed of episode 3 of copy 0,
    copy 1   episode 5   actions 1            and steps 1 0 0 1 again
"""

import importlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.config.agent_presets import PRESETS as AGENTS
from difflogic.config.agent_presets import of_spaces
from difflogic.config.fields import hint
from difflogic.config.policy import PolicyConfig
from difflogic.config.presets import PRESETS
from difflogic.errors import CheckpointError, ConfigError, FaultyEnvironmentError, MissingPackagesError

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[Any]]

TRAINING, EVALUATION, RANDOM = range(3)
"""Numbers of the streams of episode seeds; different streams have different episodes."""
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
LONGEST = 10_000
"""Maximum number of steps per episode if the environment itself sets no limit."""
NAME = re.compile(r"-v\d+$")
"""Pattern of the version at the end of a registered environment's name."""
MOST_NUMBERS = 4096
"""Maximum number of values in an observation."""
MOST_VALUES = 1024
"""Maximum number of values of an observed integer that has a threshold between each value and the next."""


def library() -> Any:
    """Import and return gymnasium. Raises MissingPackagesError if it is not installed."""
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise MissingPackagesError.of("Training a policy", "rl", error.name) from error
    return gymnasium


@dataclass(frozen=True)
class Spaces:
    """Sizes and bounds of an agent's observations and actions, derived from Gymnasium's spaces."""

    observations: int
    """Number of values in an observation, including remembered bits."""
    actions: int
    """Number of discrete actions, or number of dimensions of a continuous action."""
    bounds: tuple[Floats, ...] = ()
    """Lower and upper bound of continuous actions, each float32 `[actions]`; empty if actions are discrete."""
    first: int = 0
    """Number of the first discrete action in the environment."""
    known: tuple[tuple[float, ...], ...] = ()
    """Thresholds between the possible values of each observed number; empty for a number with many values."""
    memory: int = 0
    """Number of remembered bits, which an agent outputs with an action and receives in the next observation."""

    @property
    def continuous(self) -> bool:
        return bool(self.bounds)

    @property
    def remembered_weight(self) -> int:
        """Factor of the remembered bits in an encoded action: a power of two not below the number of actions."""
        return 1 << (self.actions - 1).bit_length()

    def remembered(self, actions: npt.NDArray[Any]) -> Floats:
        """Return the remembered bits `[..., memory]` in encoded actions `[...]`."""
        bits = np.asarray(actions)[..., None] // self.remembered_weight >> np.arange(self.memory) & 1
        return bits.astype(np.float32)

    def row(self, observation: Any, action: Any) -> Floats:
        """Return one copy's observation with the remembered bits of an encoded `action`, float32 `[observations]`."""
        flat = np.asarray(observation, dtype=np.float32).reshape(-1)
        return np.concatenate([flat, self.remembered(action)]) if self.memory else flat


@dataclass(frozen=True, eq=False)
class Step:
    """Result of one step of every copy; at the end of an episode, `observations` are its final observations."""

    observations: Floats
    rewards: npt.NDArray[np.float64]
    terminated: Flags
    truncated: Flags
    """Mask of episodes ended by a time limit; learning estimates the value of their missing rest."""


class Environments:
    """Copies of one environment that are stepped together."""

    def __init__(
        self, identifier: str, count: int, seed: int, stream: int = TRAINING, reset: Mapping[str, Any] = NO_OPTIONS,
        memory: int = 0,
    ) -> None:  # fmt: skip
        """Make and reset `count` copies of the environment `identifier`, a registered name or `module:Name`.

        `seed` and `stream` determine all episodes; `reset` contains options for every reset; see `Spaces` for `memory`.
        Raises ConfigError if the environment is unknown or has unsupported spaces, or MissingPackagesError.
        """
        vector = library().vector
        self.identifier, self.count = identifier, count
        self._seed, self._stream, self._options = seed, stream, reset
        self._made = [make(identifier) for _ in range(count)]
        self.spaces = spaces(self._made[0], identifier, memory)
        self._remembered = np.zeros((count, memory), dtype=np.float32)
        # By default gymnasium resets a copy in the *next* step, which ignores the action and has the reward 0: a false
        # transition. Here `begin_anew` resets copies instead. `_checked` copies observations, so gymnasium need not.
        with self._guarded("cannot be vectorized"):
            makers = [lambda made=made: made for made in self._made]
            self._vector = vector.SyncVectorEnv(makers, autoreset_mode=vector.AutoresetMode.DISABLED, copy=False)
        self._actions: list[list[npt.NDArray[Any]]] = [[] for _ in range(count)]
        self._episodes = np.zeros(count, dtype=np.int64)
        self.returns = np.zeros(count)
        """Return so far in the current episode of each copy, float64 `[count]`."""
        self.observations: Floats = np.zeros((count, self.spaces.observations), dtype=np.float32)
        self._reset(np.ones(count, dtype=bool))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of steps so far in the current episode of each copy, int64 `[count]`."""
        return np.array([len(actions) for actions in self._actions])

    def step(self, actions: npt.NDArray[Any]) -> Step:
        """Step every copy with int64 actions `[count]` or float32 `[count, A]`. Raises FaultyEnvironmentError."""
        if self.spaces.memory:
            self._remembered = self.spaces.remembered(actions)
        with self._guarded("raised an error during an episode"):
            observations, rewards, terminated, truncated, _ = self._vector.step(from_action(self.spaces, actions))
        step = Step(self._checked(observations), np.array(rewards), np.array(terminated), np.array(truncated))
        if not np.isfinite(step.rewards).all():
            raise FaultyEnvironmentError(f"{self.identifier} returned a non-finite reward: {step.rewards.tolist()}.")
        self.returns += step.rewards
        self.observations = step.observations
        for history, action in zip(self._actions, actions, strict=True):
            history.append(action)
        return step

    def begin_anew(self, over: Flags) -> None:
        """Begin a new episode in each copy whose entry in `over`, bool `[count]`, is True."""
        if over.any():
            self._episodes[over] += 1
            self._reset(over)

    def _reset(self, which: Flags) -> None:
        seeds: list[int | None] = [None] * self.count
        for copy in np.flatnonzero(which).tolist():
            entropy = [self._seed, self._stream, copy, int(self._episodes[copy])]
            seeds[copy] = int(np.random.SeedSequence(entropy).generate_state(1)[0])
            self._actions[copy] = []
        with self._guarded("raised an error at the beginning of an episode"):
            observations, _ = self._vector.reset(seed=seeds, options={**self._options, "reset_mask": which})
        self._remembered[which] = 0
        self.observations[which] = self._checked(observations)[which]
        self.returns[which] = 0

    def state(self) -> Arrays:
        """Return `episodes` and `lengths`, int64 `[count]`, `observations`, and all copies' concatenated `actions`."""
        actions = [action for history in self._actions for action in history]
        kind = np.float32 if self.spaces.continuous else np.int64
        shape = (len(actions), self.spaces.actions) if self.spaces.continuous else (len(actions),)
        return {
            "episodes": self._episodes.copy(),
            "lengths": self.lengths,
            "actions": np.array(actions, dtype=kind).reshape(shape),
            "observations": self.observations.copy(),
        }

    def restore(self, state: Arrays) -> None:
        """Restore a `state` by replaying its actions. Raises CheckpointError if the resulting observations differ."""
        self._episodes = state["episodes"].astype(np.int64)
        self._reset(np.ones(self.count, dtype=bool))
        ends = np.cumsum(state["lengths"])
        for copy, (end, length) in enumerate(zip(ends, state["lengths"], strict=True)):
            # Replay one copy at a time, since episodes have different lengths.
            for action in state["actions"][end - length : end]:
                with self._guarded("raised an error during an episode"):
                    observation, reward, *_ = self._made[copy].step(from_action(self.spaces, action))
                self.observations[copy] = self.spaces.row(observation, action)
                self.returns[copy] += float(reward)
                self._actions[copy].append(action)
        if not np.array_equal(self.observations, state["observations"]):
            raise CheckpointError(
                f"The environment {self.identifier} is not deterministic: equal seeds and actions led to different "
                "observations, so the run cannot be resumed exactly. Start a new run."
            )

    def close(self) -> None:
        self._vector.close()

    def _checked(self, observations: npt.NDArray[Any]) -> Floats:
        flat = np.array(observations, dtype=np.float32).reshape(self.count, -1)
        if not np.isfinite(flat).all():
            copy, number = np.argwhere(~np.isfinite(flat))[0]
            raise FaultyEnvironmentError(
                f"The environment {self.identifier} returned an observation in which the value at index {number} is "
                f"{flat[copy, number]}, after {len(self._actions[copy])} steps of an episode: expected finite numbers."
            )
        return np.concatenate([flat, self._remembered], axis=1) if self.spaces.memory else flat

    @contextmanager
    def _guarded(self, problem: str) -> Iterator[None]:
        """Convert any error of the environment to a FaultyEnvironmentError whose message contains `problem`."""
        try:
            yield
        except Exception as error:
            raise FaultyEnvironmentError(
                f"The environment {self.identifier} {problem}: {type(error).__name__}: {error}"
            ) from error


def make(identifier: str) -> Any:
    """Make a registered environment, with a limit on steps. Raises ConfigError or MissingPackagesError."""
    gym = library()
    try:
        world = gym.make(_registered(identifier))
        return in_a_box(gym.wrappers.TimeLimit(world, LONGEST) if world.spec.max_episode_steps is None else world)
    except gym.error.UnregisteredEnv as error:
        raise _unknown(identifier, gym.registry) from error
    except gym.error.DependencyNotInstalled as error:
        raise MissingPackagesError(f"The environment {identifier} needs a missing package: {error}") from error
    except Exception as error:
        raise ConfigError(f"The environment {identifier} cannot be created: {type(error).__name__}: {error}") from error


def limit_notice(identifier: str) -> str | None:
    """Return a notice that episodes are limited to LONGEST steps, or None if the environment sets a limit."""
    spec = library().registry.get(_registered(identifier))
    if spec is None or spec.max_episode_steps is not None:
        return None
    return (
        f"The environment {identifier} does not limit its episodes, so they are truncated after {LONGEST} steps. "
        "Register it with max_episode_steps to set another limit."
    )


def threshold(identifier: str, others: Iterable[str] = ()) -> float:
    """Return the mean return at which Gymnasium considers an environment solved, or -inf if unspecified.

    Raises ConfigError for an unregistered name; the message suggests the nearest registered name or one of `others`.
    """
    gym = library()
    try:
        value = gym.spec(_registered(identifier)).reward_threshold
    except gym.error.Error as error:
        raise _unknown(identifier, [*others, *gym.registry]) from error
    return -math.inf if value is None else float(value)


def of_name(identifier: str, others: Iterable[str] = ()) -> PolicyConfig:
    """Return an environment's default configuration; see `threshold`. Raises ConfigError or MissingPackagesError."""
    solved_at, own = threshold(identifier, others), spaces_of(identifier)
    return of_spaces(identifier, solved_at, own.actions, own.continuous)


def of_preset(name: str | None, is_named: bool = False) -> PolicyConfig | None:
    """Return the default configuration if `name` is an environment instead of a preset, otherwise None.

    If `is_named`, every name except an agent preset is an environment. Raises ConfigError or MissingPackagesError.
    """
    if name is None or name in AGENTS or not (is_named or NAME.search(name)):
        return None
    return of_name(name, AGENTS)


def _registered(identifier: str) -> str:
    """Import the module in `module:Name-v0`, which registers the environment; return the name. Raises ConfigError."""
    module, _, name = identifier.rpartition(":")
    if not module:
        return name
    try:
        importlib.import_module(module)
    except Exception as error:
        where = " (searched in the folders of PYTHONPATH)" if isinstance(error, ModuleNotFoundError) else ""
        raise ConfigError(
            f"The module {module} of the environment {identifier} cannot be imported{where}: {type(error).__name__}: "
            f"{error}"
        ) from error
    return name


def _unknown(identifier: str, names: Iterable[str]) -> ConfigError:
    if identifier in PRESETS:
        return ConfigError(f"The preset {identifier} trains cellular automata: use `difflogic train {identifier}`.")
    meant = hint(identifier.rpartition(":")[2], names)
    return ConfigError(
        f"Unknown environment {identifier!r}{meant}: expected the name of a registered gymnasium environment, or "
        "MODULE:NAME."
    )


def spaces(environment: Any, identifier: str, memory: int = 0) -> Spaces:
    """Return the spaces of `environment` with `memory` remembered bits. Raises ConfigError for unsupported spaces."""
    box, discrete = library().spaces.Box, library().spaces.Discrete
    observations, actions = environment.observation_space, environment.action_space
    if not isinstance(observations, box) or not 0 < math.prod(observations.shape) <= MOST_NUMBERS:
        raise ConfigError(
            f"Unsupported observation space of {identifier}: expected 1 to {MOST_NUMBERS} numbers in a Box, Discrete, "
            f"MultiDiscrete or MultiBinary, or in a Tuple or Dict of these, got {observations}."
        )
    numbers, known = math.prod(observations.shape), getattr(environment, "known", ())
    if memory:
        known = (*(known or ((),) * numbers), *((0.5,),) * memory)
    if isinstance(actions, discrete):
        return Spaces(numbers + memory, int(actions.n), first=int(actions.start), known=known, memory=memory)
    if memory:
        raise ConfigError(f"An agent with memory needs discrete actions, but {identifier} expects {actions}.")
    if isinstance(actions, box) and len(actions.shape) == 1 and np.isfinite([actions.low, actions.high]).all():
        bounds = actions.low.astype(np.float32), actions.high.astype(np.float32)
        return Spaces(numbers, actions.shape[0], bounds, known=known)
    raise ConfigError(
        f"Unsupported action space of {identifier}: expected Discrete, or a one-dimensional Box with finite bounds, "
        f"got {actions}."
    )


def spaces_of(identifier: str, memory: int = 0) -> Spaces:
    """Make the environment `identifier`, return its spaces as `spaces` does, and close the environment."""
    with closing(make(identifier)) as environment:
        return spaces(environment, identifier, memory)


def in_a_box(environment: Any) -> Any:
    """Flatten observations to a Box: a Discrete becomes its number, and parts of a Tuple or Dict are concatenated.

    For example, a hand of Blackjack becomes three numbers. A number with 32 values gets 31 thresholds between them.
    """
    gym, space = library(), environment.observation_space
    ends = _ends(space)
    if isinstance(space, gym.spaces.Box) or ends is None:
        return environment
    box = gym.spaces.Box(*(np.array([end[k] for end in ends], dtype=np.float32) for k in (0, 1)))
    flattened = gym.wrappers.TransformObservation(environment, lambda observation: _in_a_row(space, observation), box)
    flattened.known = tuple(
        tuple(np.arange(low, high) + 0.5) if is_integer and high - low < MOST_VALUES else ()
        for low, high, is_integer in ends
    )
    return flattened


def _ends(space: Any) -> list[tuple[float, float, bool]] | None:
    """Return `(low, high, is_integer)` of each number in `space`, or None if any part of it is unsupported."""
    kinds = library().spaces
    if isinstance(space, kinds.Discrete):
        return [(int(space.start), int(space.start + space.n - 1), True)]
    if isinstance(space, kinds.MultiBinary):
        return [(0, 1, True)] * math.prod(space.shape)
    if isinstance(space, kinds.MultiDiscrete):
        return [(low, low + n - 1, True) for low, n in zip(space.start.flat, space.nvec.flat, strict=True)]
    if isinstance(space, kinds.Box):
        return [(low, high, False) for low, high in zip(space.low.flat, space.high.flat, strict=True)]
    if not isinstance(space, kinds.Tuple | kinds.Dict):
        return None
    bounds = [_ends(part) for _, part in _parts(space)]
    return None if None in bounds else [end for bound in bounds for end in bound or ()]


def _parts(space: Any) -> list[tuple[Any, Any]]:
    """Return the keys and parts of a Tuple or Dict space."""
    return list(space.items() if isinstance(space, library().spaces.Dict) else enumerate(space))


def _in_a_row(space: Any, observation: Any) -> Floats:
    if isinstance(space, library().spaces.Tuple | library().spaces.Dict):
        return np.concatenate([_in_a_row(part, observation[key]) for key, part in _parts(space)])
    return np.asarray(observation, dtype=np.float32).reshape(-1)


def from_action(spaces: Spaces, action: Any) -> Any:
    """Convert one or more encoded actions of an agent to actions of the environment."""
    if spaces.continuous:
        return action
    return (action % spaces.remembered_weight if spaces.memory else action) + spaces.first
