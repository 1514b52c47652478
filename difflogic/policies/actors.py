"""Actors of logic gates or dense layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from difflogic.config.policy import AgentConfig, ClassifierConfig, LogicConfig, PolicyConfig
from difflogic.config.train import InitialConfig
from difflogic.core.gates import PASS_THROUGH
from difflogic.devices.device import Device
from difflogic.errors import ConfigError, FaultyEnvironmentError
from difflogic.model.circuit import Circuit
from difflogic.model.decision import Gates, decision
from difflogic.model.thermometer import Integers, Thermometer
from difflogic.policies.environments import RANDOM, Environments, Flags, Floats, Spaces
from difflogic.policies.rewiring import rewired
from difflogic.tensor import Tensor, nn

LATCH_LOGIT = 6.0
"""Initial logit of a latch's pass-through function, which passes 0.96 of a gradient; with a logit of 3, only 0.57."""


@dataclass(frozen=True, eq=False)
class Sightings:
    """Mean and standard deviation (spread) of each observed number under a random policy, float32 `[D]`.

    They are measured once, before the first update, and saved with the run, so that thresholds and the scale of dense
    networks never change.
    """

    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, config: AgentConfig, played: Callable[[], None] = lambda: None) -> Sightings:
        """Measure mean and spread during the configured `random_steps`, calling `played` after each random step.

        Raises FaultyEnvironmentError if every episode ends after one step, or if observations never change.
        """
        environments = Environments(config.environment.id, 1, config.seed, RANDOM, config.environment.reset)
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([config.seed, RANDOM])))
        rows, ends = [environments.observations[0].copy()], 0
        for _ in range(config.gates.random_steps):
            step = environments.step(random_actions(environments.spaces, 1, generator))
            over = step.terminated | step.truncated
            rows.append(step.observations[0].copy())
            ends += int(over[0])
            environments.begin_anew(over)
            played()
        environments.close()
        if ends == config.gates.random_steps:
            raise FaultyEnvironmentError(
                f"All {ends} episodes of {config.environment.id} ended after the first step, so there is nothing to "
                "learn: use an environment with longer episodes."
            )
        observations = np.array(rows, dtype=np.float64)
        spread = observations.std(axis=0)
        if not spread.any():
            raise FaultyEnvironmentError(
                f"All observations of {config.environment.id} in {len(rows) - 1} random steps were equal, so they have "
                "no thresholds: increase the number of steps with --set logic.random_steps=STEPS, or use another "
                "environment."
            )
        # A number that never changed, or a remembered bit, has a spread of 0, which is replaced by 1.
        mean, spread = (np.pad(values, (0, config.gates.memory)) for values in (observations.mean(axis=0), spread))
        return cls(mean.astype(np.float32), np.where(spread > 0, spread, 1).astype(np.float32))

    def scaled(self, observations: Floats) -> Floats:
        """Standardize observations by `mean` and `spread`, and compress each value x to sign(x) log(1 + |x|).

        A trained policy observes values far outside the range of a random policy, where tanh would saturate.
        """
        scaled = (observations - self.mean) / self.spread
        bounded: Floats = np.copysign(np.log1p(np.abs(scaled)), scaled)
        return bounded


def random_actions(spaces: Spaces, count: int, generator: np.random.Generator) -> npt.NDArray[Any]:
    """Sample uniform actions for `count` copies: int64 `[count]` if discrete, float32 `[count, A]` if continuous."""
    if not spaces.continuous:
        return generator.integers(0, spaces.actions, count)
    low, high = spaces.bounds
    return generator.uniform(low, high, (count, spaces.actions)).astype(np.float32)


class Actor(Protocol):
    """Network that maps observations to preferences for discrete actions or means of continuous actions in [-1, 1]."""

    def features(self, observations: npt.NDArray[Any]) -> Floats:
        """Encode observations `[N, D]` as inputs of the network, float32 `[N, F]`."""

    def __call__(self, features: Tensor) -> Tensor:
        """Return the preferences or means `[N, A]` for features `[N, F]`."""

    def decided(self, features: Tensor) -> Tensor:
        """Return the preferences or means `[N, A]` for an evaluation; an actor of gates uses its hard circuit."""

    def began(self, progress: float) -> None:
        """Begin an iteration; `progress` is the completed share of training, from 0 to 1."""

    def updated(self) -> None:
        """Update dependent values, such as moving means, after a gradient step."""

    def adopted(self) -> None:
        """Reset the update counter after parameters were copied from another agent."""

    def restored(self) -> None:
        """Update dependent values after all tensors were assigned."""

    def parameters(self) -> list[Tensor]:
        """Return the trainable parameters."""

    def followers(self) -> list[Tensor]:
        """Return additional tensors to save, such as moving means of parameters."""
        return []


def group_size(config: PolicyConfig, spaces: Spaces) -> int:
    """Return the number of last-layer gates per action. Raises ConfigError if the gates cannot be split equally."""
    last, outputs = config.logic.widths[-1], spaces.actions
    if last % outputs:
        raise ConfigError(
            f"logic.widths: expected a multiple of {outputs}, the number of actions, as the width of the last layer, "
            f"got {last}."
        )
    return last // outputs


def _thermometer(gates: LogicConfig, spaces: Spaces, scales: Sightings) -> Thermometer:
    """Return the configured thresholds; by default, those between a number's known values, or around its mean.

    Raises ConfigError unless the configuration has one row of thresholds per observed number.
    """
    thresholds, size = gates.thresholds, scales.mean.size
    if not thresholds:
        around = Thermometer.around(scales.mean, scales.spread, gates.bits, gates.spread).thresholds
        return Thermometer(tuple(known or other for known, other in zip(spaces.known or around, around, strict=True)))
    if len(thresholds) != (shown := size - spaces.memory):
        raise ConfigError(
            f"{gates.path}thresholds must have {shown} rows, one for each number in an observation, got "
            f"{len(thresholds)}."
        )
    return Thermometer((*thresholds, *spaces.known[shown:]) if spaces.memory else thresholds)


def _with_latches(circuit: Circuit, count: int) -> Circuit:
    """Return the circuit with its last `count` outputs initialized as latches, which keep their value between steps.

    Training seldom finds a circuit that preserves a bit, so some remembered bits begin as latches. The others begin as
    copies of an input of the previous step, since most tasks need both kinds.
    """
    before, wires, logits = circuit.channels, [*map(np.copy, circuit.update_wires)], [*map(np.copy, circuit.update)]
    for layer, start in zip(wires, logits, strict=True):
        latches = min(count, before, len(start))
        layer[0, len(start) - latches :] = np.arange(before - latches, before)
        start[len(start) - latches :, PASS_THROUGH] = LATCH_LOGIT
        before = len(start)
    return replace(circuit, update=tuple(logits), update_wires=tuple(wires))


class LogicActor:
    """Actor with thermometer bits as inputs and layers of gates; the preference for an action is a number of ones.

    The last layer consists of equal groups of k gates, one group per action. A preference is the number of ones in a
    group, divided by the temperature and by sqrt(k).
    """

    def __init__(self, config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device) -> None:
        gates = config.gates
        self.thermometer = _thermometer(gates, spaces, seen)
        self._actions, self._continuous, self.memory = spaces.actions, spaces.continuous, spaces.memory
        circuit, steps, self._votes = self._begun(config, spaces, device)
        # With several candidates, the soft inputs of gates are far from 0 and 1. Gradients at the hard bits are better.
        is_rewired = isinstance(config, ClassifierConfig) and config.policy == "logic" and circuit.candidates > 1
        is_hard = gates.forward == "hard"
        self.layer = nn.Logic(circuit, steps, hard=is_hard, device=device, by_layer=is_hard and is_rewired)
        # Late in training a gate with two nearly equal best logits flips between two functions at every update. So an
        # evaluation uses the function with the largest mean logit over many updates.
        self._averaging = gates.averaging
        self._mean = nn.Logic(circuit, steps, hard=True, device=device)
        # Training may replace wires, so they are part of the saved state; float32 represents their indices exactly.
        self.wires = [Tensor(wires, device) for wires in circuit.update_wires] if is_rewired else []
        self._updates = Tensor([0.0], device)
        self._temperatures = gates.temperature, gates.final_temperature
        self._temperature = gates.temperature
        # If counts are equal, an evaluation takes the first action. Agents that sampled among equal counts in training
        # came to depend on the sampling, and did worse in evaluations. So training prefers earlier actions too, by less
        # than one bit, which changes the order only in ties: counts of 3 and 3 become 3 and 2.5, counts of 3 and 4
        # become 3 and 3.5.
        self._leaning = Tensor(-np.arange(spaces.actions) / spaces.actions, device)

    def _begun(self, config: PolicyConfig, spaces: Spaces, device: Device) -> tuple[Circuit, int, int]:
        """Return the initial circuit, steps per decision, and votes per action. Raises ConfigError, as `group_size`."""
        size = group_size(config, spaces)
        *hidden, last = config.logic.widths
        # The gates after the groups compute the remembered bits, which do not vote.
        members = np.pad(np.repeat(np.eye(spaces.actions), size, axis=0), ((0, spaces.memory), (0, 0)))
        votes = Tensor(members, device)
        self._head: Callable[[Tensor], Tensor] = lambda bits: bits @ votes
        initial = InitialConfig(logit=config.gates.start_logit)
        widths = [self.thermometer.bits, *hidden, last + spaces.memory]
        circuit = _with_latches(Circuit.feed_forward(widths, config.seed, initial), -(-spaces.memory // 2))
        return circuit.with_candidates(config.logic.candidates, config.seed), 1, size

    @property
    def circuit(self) -> Circuit:
        """Circuit used in evaluations, and the result of a run."""
        return self._mean.circuit

    def decision(self) -> Gates:
        """Return the hard gates that compute the chosen action's number from the thermometer bits."""
        circuit = self.circuit.chosen
        hard = [logits.argmax(axis=1) for logits in circuit.update]
        layers = list(zip(circuit.update_wires, hard, strict=True))
        return decision(self.thermometer.bits, layers, self._actions, self.memory)

    def began(self, progress: float) -> None:
        first, last = self._temperatures
        self._temperature = first * (last / first) ** progress

    def updated(self) -> None:
        """Update the moving mean of the logits."""
        # The window of the moving mean is a constant share of the updates so far. With averaging = 1 it is the mean of
        # all logits, with 0 only the last logits. With the usual 0.06 the window after 1000 updates is 60, and the last
        # 59 updates have 63 % of the weight. So early logits are soon forgotten, and one late update changes little.
        window = self._averaging * float(self._updates.numpy()[0])
        weight = window / (window + 1)
        self._updates.assign(self._updates.numpy() + 1)
        mean, now = self._mean.logits, self.layer.logits
        mean.assign(mean.stop_gradient() * weight + now.stop_gradient() * (1 - weight))

    def adopted(self) -> None:
        self._updates.assign(0 * self._updates.numpy())

    def rewire(self, features: Floats, loss: Callable[[Tensor, slice], Tensor], generator: np.random.Generator) -> None:
        """Replace improbable candidates (see `rewired`) by gradients of `loss(preferences, rows)` for `features`."""

        def gradient(bits: npt.NDArray[Any], rows: slice) -> npt.NDArray[Any]:
            y = Tensor(bits, self._updates.device, requires_grad=True)
            loss(self._voted(y), rows).backward()
            return cast("Tensor", y.grad).numpy()

        circuit = rewired(self.layer.circuit, self._updates.device.open(), features, gradient, generator)
        for tensor, wires in zip(self.wires, circuit.update_wires, strict=True):
            tensor.assign(wires)
        self.layer.logits.assign(circuit.flat_logits())
        # A mean over different candidates has no meaning, and gates depend on their candidates.
        self._mean.logits.assign(circuit.flat_logits())
        self.restored()

    def restored(self) -> None:
        if self.wires:
            wires = tuple(tensor.numpy().astype(np.int64) for tensor in self.wires)
            for layer in (self.layer, self._mean):
                layer.rewire(replace(layer.circuit, update_wires=wires))

    def features(self, observations: npt.NDArray[Any]) -> Floats:
        return self.thermometer.code(observations).T.astype(np.float32)

    def __call__(self, features: Tensor) -> Tensor:
        return self._voted(self.layer(features))

    def decided(self, features: Tensor) -> Tensor:
        return self._voted(self._mean(features))

    def stepped(self, features: Tensor, evaluated: bool) -> tuple[Tensor, Integers]:
        """Return preferences `[N, A]` and remembered bits as integers `[N]`; `evaluated` selects the hard circuit."""
        bits = (self._mean if evaluated else self.layer)(features)
        remembered = bits.numpy()[:, bits.shape[1] - self.memory :].astype(np.int64)
        return self._voted(bits), (remembered << np.arange(self.memory)).sum(axis=1)

    def unrolled(self, features: Tensor, goes_on: Flags) -> Tensor:
        """Return preferences `[T * B, A]` for T steps of B copies, `features [T * B, F]`; gradients flow through time.

        If an entry of `goes_on`, bool `[T, B]`, is True, the next step receives the remembered bits, otherwise zeros.
        """
        steps = features.reshape(*goes_on.shape, -1)
        bits = self.layer.unrolled(steps, self.memory, goes_on)
        return self._voted(bits.reshape(features.shape[0], -1))

    def _voted(self, bits: Tensor) -> Tensor:
        counts = self._head(bits)
        # A mean is -1 if no bit votes for the action, 1 if all bits do. A sum of k fair bits has the standard deviation
        # sqrt(k) / 2. Divided by sqrt(k), it is the same for any width, so wide layers explore as much as narrow ones.
        if self._continuous:
            return counts / (self._votes / 2) - 1.0
        return (counts + self._leaning) / (self._temperature * math.sqrt(self._votes))

    def parameters(self) -> list[Tensor]:
        return self.layer.parameters()

    def followers(self) -> list[Tensor]:
        return [self._mean.logits, self._updates, *self.wires]


class DenseActor(Actor):
    """Actor of dense layers with tanh between them, whose inputs are scaled observations."""

    def __init__(self, config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device) -> None:
        self._seen = seen
        self._network = nn.MLP(seen.mean.size, [*config.mlp.widths, spaces.actions], seed=config.seed, device=device)
        # With small last weights all actions are about equally probable, so that the policy explores.
        last = self._network.layers[-1].weights
        last.assign(0.01 * last.numpy())

    def features(self, observations: npt.NDArray[Any]) -> Floats:
        return self._seen.scaled(observations)

    def __call__(self, features: Tensor) -> Tensor:
        return self._network(features)

    decided = __call__

    def parameters(self) -> list[Tensor]:
        return self._network.parameters()
