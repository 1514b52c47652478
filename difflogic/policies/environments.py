"""Copies of a gymnasium environment, stepped side by side, whose state can be written down.

gymnasium's environments cannot be saved without pickle. But an episode is decided by its seed and its actions, so the
state of a copy is the number of its episode, from which the seed follows, and the actions since it began:

    copy 0   episode 3   actions 1 0 0 1      a restored copy is reset with the seed of episode 3 of copy 0,
    copy 1   episode 5   actions 1            and steps 1 0 0 1 again
"""

import importlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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
"""Streams of episode seeds: no two share an episode."""
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
LONGEST = 10_000
"""Steps of an episode at most, in an environment that sets no limit itself."""
NAME = re.compile(r"-v\d+$")
"""The end of a registered environment's name."""
MOST_NUMBERS = 4096
"""Numbers of an observation."""
MOST_VALUES = 1024
"""A whole number that can have more values has thresholds where a random policy goes, as others have."""


def library() -> Any:
    """gymnasium. Raises MissingPackagesError where it is not installed."""
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise MissingPackagesError.of("Training a policy", "rl", error.name) from error
    return gymnasium


@dataclass(frozen=True)
class Spaces:
    """The spaces of gymnasium say what an agent sees and does."""

    observations: int
    """Numbers of an observation, in the order of its parts."""
    actions: int
    """How many to choose from, or the dimensions of a continuous action."""
    bounds: tuple[Floats, ...] = ()
    """The least and the largest of continuous actions, float32 `[actions]` each; empty where they are discrete."""
    first: int = 0
    """The number of the first discrete action."""
    known: tuple[tuple[float, ...], ...] = ()
    """The thresholds between the values of each number of an observation that can have few; none of another."""
    memory: int = 0
    """How many of the last numbers are bits that the agent remembered: it gives them with its last action."""

    @property
    def continuous(self) -> bool:
        return bool(self.bounds)

    @property
    def remembered_weight(self) -> int:
        """Actions are numbers below it; in a number that is both, an action and what is remembered, times this."""
        return 1 << (self.actions - 1).bit_length()

    def remembered(self, given: npt.NDArray[Any]) -> Floats:
        """The bits `[..., memory]` that stand in such numbers `[...]`."""
        bits = np.asarray(given)[..., None] // self.remembered_weight >> np.arange(self.memory) & 1
        return bits.astype(np.float32)

    def row(self, seen: Any, given: Any) -> Floats:
        """An observation `[observations]` of what a single environment shows after such an action."""
        flat = np.asarray(seen, dtype=np.float32).reshape(-1)
        return np.concatenate([flat, self.remembered(given)]) if self.memory else flat


@dataclass(frozen=True, eq=False)
class Step:
    """A step holds what one step of every copy gave. `observations` are those before a new episode begins."""

    observations: Floats
    rewards: npt.NDArray[np.float64]
    terminated: Flags
    truncated: Flags
    """Cut off by a time limit: what would have come still has a value."""


class Environments:
    """`count` copies of one environment; each begins a new episode where its last one ended."""

    def __init__(
        self, identifier: str, count: int, seed: int, stream: int = TRAINING, reset: Mapping[str, Any] = NO_OPTIONS,
        memory: int = 0,
    ) -> None:  # fmt: skip
        """`reset`: the options of every reset. `memory`: bits that come with an action, and are shown in the next step.

        Raises ConfigError for an environment that is unknown or has other spaces, MissingPackagesError.
        """
        vector = library().vector
        self.identifier, self.count = identifier, count
        self._seed, self._stream, self._options = seed, stream, reset
        self._made = [make(identifier) for _ in range(count)]
        self.spaces = spaces(self._made[0], identifier, memory)
        self._remembered = np.zeros((count, memory), dtype=np.float32)
        # By default gymnasium resets a copy in the *next* step, which ignores the action and has the reward 0: a false
        # transition. Here `begin_anew` resets at once. Nothing is copied there, since `_checked` copies it.
        with self._guarded("cannot be stepped side by side"):
            self._vector = vector.SyncVectorEnv(
                [_giving(each) for each in self._made], autoreset_mode=vector.AutoresetMode.DISABLED, copy=False
            )
        self._actions: list[list[npt.NDArray[Any]]] = [[] for _ in range(count)]
        self._episodes = np.zeros(count, dtype=np.int64)
        self.returns = np.zeros(count)
        """Of the episodes under way."""
        self.observations: Floats = np.zeros((count, self.spaces.observations), dtype=np.float32)
        self._reset(np.ones(count, dtype=bool))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Steps of the episodes under way, int64 `[count]`."""
        return np.array([len(actions) for actions in self._actions])

    def step(self, actions: npt.NDArray[Any]) -> Step:
        """One step of every copy by actions `[count]`, or float32 `[count, actions]`. Raises FaultyEnvironmentError."""
        if self.spaces.memory:
            self._remembered = self.spaces.remembered(actions)
        with self._guarded("raised in the middle of an episode"):
            seen, rewards, terminated, truncated, _ = self._vector.step(from_action(self.spaces, actions))
        step = Step(self._checked(seen), np.array(rewards), np.array(terminated), np.array(truncated))
        if not np.isfinite(step.rewards).all():
            raise FaultyEnvironmentError(f"The environment {self.identifier} gave the reward {step.rewards.tolist()}.")
        self.returns += step.rewards
        self.observations = step.observations
        for kept, action in zip(self._actions, actions, strict=True):
            kept.append(action)
        return step

    def begin_anew(self, over: Flags) -> None:
        """A new episode of each copy where `over`, bool `[count]`, says so."""
        if over.any():
            self._episodes[over] += 1
            self._reset(over)

    def _reset(self, which: Flags) -> None:
        seeds = [self._episode_seed(copy, int(number)) if each else None
                 for copy, (number, each) in enumerate(zip(self._episodes, which, strict=True))]  # fmt: skip
        with self._guarded("raised when an episode began"):
            seen, _ = self._vector.reset(seed=seeds, options={**self._options, "reset_mask": which})
        self._remembered[which] = 0
        self.observations[which] = self._checked(seen)[which]
        self.returns[which] = 0
        for copy in np.flatnonzero(which):
            self._actions[copy] = []

    def _episode_seed(self, copy: int, episode: int) -> int:
        return int(np.random.SeedSequence([self._seed, self._stream, copy, episode]).generate_state(1)[0])

    def state(self) -> Arrays:
        """Return what `restore` takes: `episodes` and `lengths`, int64 `[count]`, and `actions` of all, in a row."""
        actions = [action for kept in self._actions for action in kept]
        kind = np.float32 if self.spaces.continuous else np.int64
        shape = (len(actions), self.spaces.actions) if self.spaces.continuous else (len(actions),)
        return {
            "episodes": self._episodes.copy(),
            "lengths": self.lengths,
            "actions": np.array(actions, dtype=kind).reshape(shape),
            "observations": self.observations.copy(),
        }

    def restore(self, state: Arrays) -> None:
        """Go on where `state` was taken. Raises CheckpointError where the same actions no longer lead there."""
        self._episodes = state["episodes"].astype(np.int64)
        self._reset(np.ones(self.count, dtype=bool))
        ends = np.cumsum(state["lengths"])
        for copy, (end, length) in enumerate(zip(ends, state["lengths"], strict=True)):
            # A copy alone, since those beside it have episodes of other lengths.
            for action in state["actions"][end - length : end]:
                with self._guarded("raised in the middle of an episode"):
                    seen, reward, *_ = self._made[copy].step(from_action(self.spaces, action))
                self.observations[copy] = self.spaces.row(seen, action)
                self.returns[copy] += float(reward)
                self._actions[copy].append(action)
        if not np.array_equal(self.observations, state["observations"]):
            raise CheckpointError(
                f"The environment {self.identifier} does not repeat itself: the same seeds and actions led elsewhere "
                "than before, so the run cannot go on bit for bit: start a new run."
            )

    def require_lasting(self, ends: int, steps: int) -> None:
        """Raises FaultyEnvironmentError where so many steps ended as many episodes."""
        if ends == steps:
            raise FaultyEnvironmentError(
                f"Every one of {steps} episodes of {self.identifier} ended after its first step: an agent has nothing "
                "to learn from."
            )

    def close(self) -> None:
        self._vector.close()

    def _checked(self, seen: npt.NDArray[Any]) -> Floats:
        flat = np.array(seen, dtype=np.float32).reshape(self.count, -1)
        if not np.isfinite(flat).all():
            copy, number = np.argwhere(~np.isfinite(flat))[0]
            raise FaultyEnvironmentError(
                f"The environment {self.identifier} gave an observation whose number {number} is {flat[copy, number]}, "
                f"after {len(self._actions[copy])} steps of an episode: an agent can only learn from finite numbers."
            )
        return np.concatenate([flat, self._remembered], axis=1) if self.spaces.memory else flat

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """Return what an environment raises, as one sentence."""
        try:
            yield
        except Exception as error:
            raise FaultyEnvironmentError(
                f"The environment {self.identifier} {what}: {type(error).__name__}: {error}"
            ) from error


def make(identifier: str) -> Any:
    """Make one registered environment, whose episodes all end. Raises ConfigError, MissingPackagesError."""
    gym = library()
    try:
        made = gym.make(_registered(identifier))
        return in_a_box(gym.wrappers.TimeLimit(made, LONGEST) if made.spec.max_episode_steps is None else made)
    except gym.error.UnregisteredEnv as error:
        raise _unknown(identifier, gym.registry) from error
    except gym.error.DependencyNotInstalled as error:
        raise MissingPackagesError(f"The environment {identifier} needs more than is installed: {error}") from error
    except Exception as error:
        raise ConfigError(f"The environment {identifier} cannot be made: {type(error).__name__}: {error}") from error


def limit_notice(identifier: str) -> str | None:
    """Return a sentence about the longest episode of an environment that sets none itself; None for any other."""
    spec = library().registry.get(_registered(identifier))
    if spec is None or spec.max_episode_steps is not None:
        return None
    return (
        f"The environment {identifier} sets no longest episode: one that does not end by itself is cut off after "
        f"{LONGEST} steps. Register it with max_episode_steps to choose another limit."
    )


def threshold(identifier: str, others: Iterable[str] = ()) -> float:
    """The mean return from which on gymnasium calls an environment solved; -inf where it does not say.

    Raises ConfigError for one that is not registered, with the nearest of all names and of the `others`.
    """
    gym = library()
    try:
        known = gym.spec(_registered(identifier)).reward_threshold
    except gym.error.Error as error:
        raise _unknown(identifier, [*others, *gym.registry]) from error
    return -math.inf if known is None else float(known)


def of_name(identifier: str, others: Iterable[str] = ()) -> PolicyConfig:
    """The configuration for an environment of which no more is known than its name. Raises as `threshold`, `spaces`."""
    least = threshold(identifier, others)
    with closing(make(identifier)) as world:
        found = spaces(world, identifier)
    return of_spaces(identifier, least, found.actions, found.continuous)


def of_preset(name: str | None, is_named: bool = False) -> PolicyConfig | None:
    """Return the configuration for an environment that is given in place of a preset, or None for any other name.

    `is_named`: whether every name that is no preset of agents is an environment's. Raises what `of_name` raises.
    """
    if name is None or name in AGENTS or not (is_named or NAME.search(name)):
        return None
    return of_name(name, AGENTS)


def _registered(identifier: str) -> str:
    """The name alone; of `module:Name-v0` the module, which registers it, is imported. Raises ConfigError."""
    module, _, name = identifier.rpartition(":")
    if not module:
        return name
    try:
        importlib.import_module(module)
    except Exception as error:
        where = " (it is looked for in the folders of PYTHONPATH)" if isinstance(error, ModuleNotFoundError) else ""
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
        f"There is no environment {identifier!r}{meant}: expected the name of one that gymnasium has "
        "registered, or MODULE:NAME."
    )


def spaces(environment: Any, identifier: str, memory: int = 0) -> Spaces:
    """The spaces of an environment, for an agent that remembers so many bits.

    Raises ConfigError where an agent cannot have them.
    """
    box, discrete = library().spaces.Box, library().spaces.Discrete
    seen, done = environment.observation_space, environment.action_space
    if not isinstance(seen, box) or not 0 < math.prod(seen.shape) <= MOST_NUMBERS:
        raise ConfigError(
            f"{identifier} shows {seen}, but a policy reads 1 to {MOST_NUMBERS} numbers in a Box, Discrete, "
            "MultiDiscrete or MultiBinary, or some of them in a Tuple or Dict: take another environment."
        )
    numbers, known = math.prod(seen.shape), getattr(environment, "known", ())
    if memory:
        known = (*(known or ((),) * numbers), *((0.5,),) * memory)
    if isinstance(done, discrete):
        return Spaces(numbers + memory, int(done.n), first=int(done.start), known=known, memory=memory)
    if memory:
        raise ConfigError(f"An agent that remembers takes discrete actions, but {identifier} takes {done}.")
    if isinstance(done, box) and len(done.shape) == 1 and np.isfinite([done.low, done.high]).all():
        return Spaces(numbers, done.shape[0], (done.low.astype(np.float32), done.high.astype(np.float32)), known=known)
    raise ConfigError(
        f"{identifier} takes actions in {done}, but a policy gives a Discrete action, or a Box of one axis with bounds."
    )


def in_a_box(environment: Any) -> Any:
    """The environment, its observations in one Box: a Discrete is its number, a Tuple or Dict one part behind another.

    So a hand of Blackjack is three numbers, and what can have 32 values takes 31 thresholds, between them.
    """
    gym, space = library(), environment.observation_space
    ends = _ends(space)
    if isinstance(space, gym.spaces.Box) or ends is None:
        return environment
    box = gym.spaces.Box(*(np.array([end[k] for end in ends], dtype=np.float32) for k in (0, 1)))
    made = gym.wrappers.TransformObservation(environment, lambda seen: _in_a_row(space, seen), box)
    made.known = tuple(
        tuple(np.arange(low, high) + 0.5) if whole and high - low < MOST_VALUES else () for low, high, whole in ends
    )
    return made


def _ends(space: Any) -> list[tuple[float, float, bool]] | None:
    """The least and the largest of each number, and whether it is a whole one; None where there are others in it."""
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
    parts = [_ends(each) for _, each in _parts(space)]
    return None if None in parts else [end for part in parts for end in part or ()]


def _parts(space: Any) -> list[tuple[Any, Any]]:
    """The parts of a Tuple or Dict, each with its key."""
    return list(space.items() if isinstance(space, library().spaces.Dict) else enumerate(space))


def _in_a_row(space: Any, seen: Any) -> Floats:
    if isinstance(space, library().spaces.Tuple | library().spaces.Dict):
        return np.concatenate([_in_a_row(each, seen[key]) for key, each in _parts(space)])
    return np.asarray(seen, dtype=np.float32).reshape(-1)


def from_action(spaces: Spaces, action: Any) -> Any:
    """Return what environments take for an action of an agent's, or for many."""
    if spaces.continuous:
        return action
    return (action % spaces.remembered_weight if spaces.memory else action) + spaces.first


def _giving(environment: Any) -> Callable[[], Any]:
    return lambda: environment
