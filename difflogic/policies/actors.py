"""Actors of logic gates and dense ones lead from observations to preferences or means, and to actions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from difflogic.config.policy import AgentConfig, LogicConfig, PolicyConfig
from difflogic.config.train import InitialConfig
from difflogic.core.gates import PASS_THROUGH
from difflogic.devices.device import Device
from difflogic.errors import ConfigError, FaultyEnvironmentError
from difflogic.model.circuit import Circuit
from difflogic.model.decision import Gates, decision
from difflogic.model.thermometer import Integers, Thermometer
from difflogic.policies.environments import RANDOM, Environments, Flags, Floats, Spaces
from difflogic.tensor import Tensor, nn

TINY = 1e-20
"""Added to a probability before its logarithm: one that underflows to 0 would make the entropy 0 * -inf, a NaN."""

LATCH_LOGIT = 6.0
"""Of passing a latch on: with fifteen zeros beside it 0.96 of a gradient get through a step, with 3 only 0.57."""


@dataclass(frozen=True, eq=False)
class Sightings:
    """Mean and spread of each number of the observations that a random policy saw, float32 `[D]`.

    They are found once, before the first update, and kept with the run: thresholds and the scale of dense networks
    never move after it.
    """

    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, config: AgentConfig, played: Callable[[], None] = lambda: None) -> Sightings:
        """Measure the scales in `random_steps` steps, each of which is reported to `played`.

        Raises FaultyEnvironmentError where episodes end at once, or nothing changes.
        """
        environments = Environments(config.environment.id, 1, config.seed, RANDOM, config.environment.reset)
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([config.seed, RANDOM])))
        seen, ends = [environments.observations[0].copy()], 0
        for _ in range(config.gates.random_steps):
            step = environments.step(random_actions(environments.spaces, 1, generator))
            over = step.terminated | step.truncated
            seen.append(step.observations[0].copy())
            ends += int(over[0])
            environments.begin_anew(over)
            played()
        environments.close()
        environments.require_lasting(ends, config.gates.random_steps)
        every = np.array(seen, dtype=np.float64)
        spread = every.std(axis=0)
        if not spread.any():
            raise FaultyEnvironmentError(
                f"Every observation of {config.environment.id} was the same in {len(seen) - 1} random steps, so that "
                "no threshold would tell one from another: take more of them, --set logic.random_steps=STEPS, or "
                "another environment."
            )
        # A number that never changed has no scale of its own; 1 is as good as any if it moves later, and for a bit.
        mean, spread = np.pad(every.mean(axis=0), (0, config.gates.memory)), np.pad(spread, (0, config.gates.memory))
        return cls(mean.astype(np.float32), np.where(spread > 0, spread, 1).astype(np.float32))

    def scaled(self, observations: Floats) -> Floats:
        """Return observations in units of what a random policy sees, large ones as logarithms: sign(x) log(1 + |x|).

        What was learned leads far beyond what a random policy ever saw: there tanh would tell nothing apart.
        """
        scaled = (observations - self.mean) / self.spread
        bounded: Floats = np.copysign(np.log1p(np.abs(scaled)), scaled)
        return bounded


def random_actions(spaces: Spaces, count: int, generator: np.random.Generator) -> npt.NDArray[Any]:
    """Uniform actions of `count` copies, int64 `[count]` or float32 `[count, A]`."""
    if not spaces.continuous:
        return generator.integers(0, spaces.actions, count)
    low, high = spaces.bounds
    return generator.uniform(low, high, (count, spaces.actions)).astype(np.float32)


def from_unit(spaces: Spaces, actions: Floats) -> Floats:
    """Continuous actions in the environment's units, from -1 to 1 at its bounds."""
    low, high = spaces.bounds
    return np.asarray(low + (actions + 1) / 2 * (high - low), dtype=np.float32)


class Actor(Protocol):
    """A network from observations to one number per action: a preference, or of continuous ones a mean in [-1, 1]."""

    def features(self, observations: npt.NDArray[Any]) -> Floats:
        """Return what the network reads, float32 `[N, F]`, of observations `[N, D]`."""

    def __call__(self, features: Tensor) -> Tensor:
        """`[N, F]` to `[N, A]`."""

    def decided(self, features: Tensor) -> Tensor:
        """Return the same for the discrete agent, which is the one that is evaluated."""

    def began(self, progress: float) -> None:
        """Hear that an iteration begins, and which share of the training lies before it."""

    def updated(self) -> None:
        """Hear that the parameters have changed."""

    def adopted(self) -> None:
        """Hear that the parameters are another agent's, with which a training begins."""

    def parameters(self) -> list[Tensor]:
        """Return what is learned."""

    def followers(self) -> list[Tensor]:
        """Return what is kept beside the parameters."""
        return []


def group_size(config: PolicyConfig, spaces: Spaces) -> int:
    """Gates of the last layer that each action has. Raises ConfigError where they cannot be shared out."""
    last, outputs = config.logic.widths[-1], spaces.actions
    if last % outputs:
        raise ConfigError(
            f"The last layer's {last} gates are shared out among {outputs} actions: expected a multiple of {outputs} "
            "at the end of logic.widths."
        )
    return last // outputs


def _thermometer(gates: LogicConfig, spaces: Spaces, seen: Sightings) -> Thermometer:
    """The thresholds that the configuration gives, else all that tell something apart, or those around what was seen.

    Raises ConfigError.
    """
    given, numbers = gates.thresholds, seen.mean.size
    if not given:
        around = Thermometer.around(seen.mean, seen.spread, gates.bits, gates.spread).thresholds
        return Thermometer(tuple(known or found for known, found in zip(spaces.known or around, around, strict=True)))
    if len(given) != (seen_numbers := numbers - spaces.memory):
        raise ConfigError(
            f"{gates.path}thresholds has {len(given)} rows, but an observation of this environment has {seen_numbers} "
            "numbers: give one row for each."
        )
    return Thermometer((*given, *spaces.known[seen_numbers:]) if spaces.memory else given)


def _with_latches(circuit: Circuit, count: int) -> Circuit:
    """The circuit, in which the last so many bits begin as latches: they pass on what they were in the step before.

    A bit that is to be kept for long is seldom found where none is kept for two steps. The other bits begin as what
    they are wired to, an input of the step before: most tasks ask for both.
    """
    before, wires, logits = circuit.channels, [*map(np.copy, circuit.update_wires)], [*map(np.copy, circuit.update)]
    for layer, start in zip(wires, logits, strict=True):
        kept = min(count, before, len(start))
        layer[0, len(start) - kept :] = np.arange(before - kept, before)
        start[len(start) - kept :, PASS_THROUGH] = LATCH_LOGIT
        before = len(start)
    return replace(circuit, update=tuple(logits), update_wires=tuple(wires))


class LogicActor:
    """Thermometer bits, layers of gates, and the bits of each action's group, counted.

    The last layer is shared out among the actions in equal groups; a preference is the number of ones in a group of k,
    divided by the temperature and sqrt(k).
    """

    def __init__(self, config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device) -> None:
        gates = config.gates
        self.thermometer = _thermometer(gates, spaces, seen)
        self._actions, self._continuous, self.memory = spaces.actions, spaces.continuous, spaces.memory
        circuit, steps, self._votes = self._begun(config, spaces, InitialConfig(logit=gates.start_logit), device)
        self.layer = nn.Logic(circuit, steps, hard=gates.forward == "hard", device=device)
        # Late in training a gate whose two best logits are nearly equal flips between two functions at every update.
        # The agent that is evaluated takes the function whose logit has the largest mean over many updates.
        self._averaging = gates.averaging
        self._mean = nn.Logic(circuit, steps, hard=True, device=device)
        self._updates = Tensor([0.0], device)
        self._temperatures = gates.temperature, gates.final_temperature
        self._temperature = gates.temperature
        # Where counts are equal, the evaluated agent always takes the first action. An agent that drew among equals
        # while it learned came to depend on that chance, and did worse when it was evaluated. So earlier actions lead
        # here too. They lead by less than one bit, so that the order changes in ties alone: counts of 3 and 3 become 3
        # and 2.5, counts of 3 and 4 become 3 and 3.5.
        self._leaning = Tensor(-np.arange(spaces.actions) / spaces.actions, device)

    def _begun(
        self, config: PolicyConfig, spaces: Spaces, initial: InitialConfig, device: Device
    ) -> tuple[Circuit, int, int]:
        """The circuit to begin with, its steps, and an action's votes. Raises ConfigError where it does not fit."""
        size = group_size(config, spaces)
        *hidden, last = config.logic.widths
        # Behind the groups stand the gates that are remembered, which vote for nothing.
        members = np.pad(np.repeat(np.eye(spaces.actions), size, axis=0), ((0, spaces.memory), (0, 0)))
        votes = Tensor(members, device)
        self._head: Callable[[Tensor], Tensor] = lambda bits: bits @ votes
        widths = [self.thermometer.bits, *hidden, last + spaces.memory]
        circuit = _with_latches(Circuit.feed_forward(widths, config.seed, initial), -(-spaces.memory // 2))
        return circuit.with_candidates(config.logic.candidates, config.seed), 1, size

    @property
    def circuit(self) -> Circuit:
        """The gates that the agent is evaluated with and ends as."""
        return self._mean.circuit

    def decision(self) -> Gates:
        """The gates from the thermometer's bits to the action's number, of the agent as it is evaluated."""
        circuit = self.circuit.chosen
        hard = [logits.argmax(axis=1) for logits in circuit.update]
        layers = list(zip(circuit.update_wires, hard, strict=True))
        return decision(self.thermometer.bits, layers, self._actions, self.memory)

    def began(self, progress: float) -> None:
        first, last = self._temperatures
        self._temperature = first * (last / first) ** progress

    def updated(self) -> None:
        """Follow the logits after an update."""
        # A moving mean over a constant share of the updates so far. With averaging = 1 it is the mean of all logits,
        # with 0 the last logits alone. With the usual 0.06 the window after 1000 updates is 60, and the last 59 updates
        # have 63 % of the weight. So early logits are soon forgotten, and a late one alone changes little.
        window = self._averaging * float(self._updates.numpy()[0])
        kept = window / (window + 1)
        self._updates.assign(self._updates.numpy() + 1)
        mean, now = self._mean.logits, self.layer.logits
        mean.assign(mean.stop_gradient() * kept + now.stop_gradient() * (1 - kept))

    def adopted(self) -> None:
        self._updates.assign(0 * self._updates.numpy())

    def features(self, observations: npt.NDArray[Any]) -> Floats:
        return self.thermometer.code(observations).T.astype(np.float32)

    def __call__(self, features: Tensor) -> Tensor:
        return self._voted(self.layer(features))

    def decided(self, features: Tensor) -> Tensor:
        return self._voted(self._mean(features))

    def stepped(self, features: Tensor, evaluated: bool) -> tuple[Tensor, Integers]:
        """The preferences of a decision, and the number of what is remembered, int64 `[N]`, the first bit lowest."""
        bits = (self._mean if evaluated else self.layer)(features)
        kept = bits.numpy()[:, bits.shape[1] - self.memory :].astype(np.int64)
        return self._voted(bits), (kept << np.arange(self.memory)).sum(axis=1)

    def unrolled(self, features: Tensor, goes_on: Flags) -> Tensor:
        """The preferences `[T * B, A]` of T steps in a row, features `[T * B, F]`; gradients go back through them all.

        Each begins with what the one before remembered where `goes_on`, bool `[T, B]`, holds of that, else with zeros.
        """
        steps = features.reshape(*goes_on.shape, -1)
        bits = self.layer.unrolled(steps, self.memory, goes_on)
        return self._voted(bits.reshape(features.shape[0], -1))

    def _voted(self, bits: Tensor) -> Tensor:
        counts = self._head(bits)
        # A mean is -1 where no bit votes for the action, 1 where all do. A sum of k fair bits spreads by sqrt(k) / 2:
        # divided by sqrt(k), preferences spread alike whatever the width, so that wide layers begin as undecided as
        # narrow ones.
        if self._continuous:
            return counts / (self._votes / 2) - 1.0
        return (counts + self._leaning) / (self._temperature * math.sqrt(self._votes))

    def parameters(self) -> list[Tensor]:
        return self.layer.parameters()

    def followers(self) -> list[Tensor]:
        return [self._mean.logits, self._updates]


class DenseActor(Actor):
    """Dense layers with tanh between them, on scaled observations."""

    def __init__(self, config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device) -> None:
        self._seen = seen
        self._network = nn.MLP(seen.mean.size, [*config.mlp.widths, spaces.actions], seed=config.seed, device=device)
        # A policy that begins undecided explores: the last weights begin a hundredth as large.
        last = self._network.layers[-1].weights
        last.assign(0.01 * last.numpy())

    def features(self, observations: npt.NDArray[Any]) -> Floats:
        return self._seen.scaled(observations)

    def __call__(self, features: Tensor) -> Tensor:
        return self._network(features)

    decided = __call__

    def parameters(self) -> list[Tensor]:
        return self._network.parameters()


class Categorical:
    """One of A actions, each with the probability that the softmax of the preferences gives it."""

    def __init__(self, spaces: Spaces) -> None:
        self._choices = np.eye(spaces.actions, dtype=np.float32)

    def parameters(self) -> list[Tensor]:
        return []

    def sample(self, preferences: Floats, generator: np.random.Generator) -> tuple[npt.NDArray[Any], Floats]:
        """Actions int64 `[N]` and the logarithm of their probabilities float32 `[N]`."""
        shifted = np.exp(preferences - preferences.max(axis=1, keepdims=True))
        probabilities = shifted / shifted.sum(axis=1, keepdims=True)
        # The first action whose cumulative probability passes a uniform number. The sum of float32 probabilities often
        # ends at 0.9999999, and a number above it passes none: then argmax would say 0, whose probability may be 0.
        passed = probabilities.cumsum(axis=1) > generator.random((len(preferences), 1))
        actions = np.where(passed.any(axis=1), passed.argmax(axis=1), preferences.argmax(axis=1))
        return actions, np.log(probabilities[np.arange(len(actions)), actions] + np.float32(TINY))

    def best(self, preferences: Floats) -> npt.NDArray[Any]:
        """The most probable, of equals the first."""
        return np.asarray(preferences.argmax(axis=1))

    def coded(self, actions: npt.NDArray[Any]) -> Floats:
        """Return what `log_probs` takes of actions, float32 `[N, A]`."""
        # One-hot rows, since picking an entry by its number has no gradient here, and a product has one.
        return np.asarray(self._choices[actions])

    def log_probs(self, preferences: Tensor, taken: Tensor) -> Tensor:
        """Return the logarithms of the probabilities of actions that were taken, `[N]`."""
        return ((preferences.softmax(1) * taken).sum(1) + TINY).log()

    def entropy(self, preferences: Tensor) -> Tensor:
        """The mean, `[]`."""
        probabilities = preferences.softmax(1)
        return -(probabilities * (probabilities + TINY).log()).sum(1).mean()

    def given(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what the environment takes."""
        return actions


class Gaussian:
    """Continuous actions in units of half their range: normal around their means, each with a learned spread."""

    def __init__(self, spaces: Spaces, device: Device) -> None:
        self._spaces = spaces
        self._log_spread = Tensor(np.full(spaces.actions, -0.5), device, requires_grad=True)

    def parameters(self) -> list[Tensor]:
        return [self._log_spread]

    def sample(self, preferences: Floats, generator: np.random.Generator) -> tuple[npt.NDArray[Any], Floats]:
        """Actions float32 `[N, A]`, not clipped, and the logarithm of their densities `[N]`."""
        # Only the environment sees actions clipped, in `given`. Learning gets them as drawn, for the densities are of
        # these values: with others the ratio of PPO would not begin at 1.
        logarithm = self._log_spread.numpy()
        noise = generator.standard_normal(preferences.shape, dtype=np.float32)
        density = -(0.5 * noise**2 + logarithm + 0.5 * math.log(2 * math.pi)).sum(axis=1)
        return preferences + noise * np.exp(logarithm), density.astype(np.float32)

    def best(self, preferences: Floats) -> npt.NDArray[Any]:
        return preferences

    def coded(self, actions: npt.NDArray[Any]) -> Floats:
        return actions

    def log_probs(self, preferences: Tensor, taken: Tensor) -> Tensor:
        """Return the logarithms of the probabilities of actions that were taken, `[N]`."""
        noise = (taken - preferences) / self._log_spread.exp()
        return -(0.5 * noise**2.0 + self._log_spread + 0.5 * math.log(2 * math.pi)).sum(1)

    def entropy(self, _: Tensor) -> Tensor:
        """Return the entropy, `[]`, which is the same whatever is preferred."""
        return (self._log_spread + 0.5 * (math.log(2 * math.pi) + 1)).sum()

    def given(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Within the bounds that the environment knows."""
        return from_unit(self._spaces, np.clip(actions, -1, 1))


Distribution = Categorical | Gaussian


def distribution(spaces: Spaces, device: Device) -> Distribution:
    """Return how actions are drawn from what an actor gives."""
    return Gaussian(spaces, device) if spaces.continuous else Categorical(spaces)
