"""Soft actor-critic (SAC): an actor with an entropy bonus, two critics, and target critics that follow slowly.

Source: Haarnoja et al., *Soft actor-critic algorithms and applications* (2018); names follow Stable-Baselines3.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.config.policy import AgentConfig
from difflogic.devices.device import Device
from difflogic.policies.actors import Sightings
from difflogic.policies.buffers import ReplayBuffer
from difflogic.policies.distributions import from_unit
from difflogic.policies.environments import Arrays, Environments, Floats, Spaces
from difflogic.policies.learner import Learner, require_continuous
from difflogic.policies.ppo import Stepped
from difflogic.runs.checksummed import part_of
from difflogic.tensor import Tensor, nn, optim

ITERATION = 1000
"""Minimum number of environment steps per iteration."""
SAVED = ("observations", "actions", "rewards", "following", "terminated")
"""Columns of the replay buffer that are saved in a checkpoint."""
REACH = 3.0
"""Bound on a gate actor's means before tanh; tanh(3) is 0.995, close to the bound on actions, 1."""
LEAST_LOG_SPREAD, LOG_SPREAD_RANGE = -5.0, 7.0
"""Minimum and range of the logarithm of a spread; spreads are between exp(-5) = 0.007 and exp(2) = 7.4."""


class QNetwork:
    """Critic that estimates the value of an action after an observation."""

    def __init__(self, observations: int, actions: int, widths: tuple[int, ...], seed: int, device: Device) -> None:
        # The first layer has two matrices, whose results are added. This is the same function as one matrix for the
        # concatenated observation and action, but needs no concatenation of tensors.
        self._seen = nn.Dense(observations, widths[0], seed=seed, device=device)
        self._done = nn.Dense(actions, widths[0], seed=seed + 1, device=device)
        self._rest = nn.MLP(widths[0], [*widths[1:], 1], "relu", seed=seed + 2, device=device)

    def __call__(self, observations: Tensor, actions: Tensor) -> Tensor:
        """Return the values `[N]` of observations `[N, D]` and actions `[N, A]`."""
        return self._rest((self._seen(observations) + self._done(actions)).relu()).reshape(-1)

    def parameters(self) -> list[Tensor]:
        return [*self._seen.parameters(), *self._done.parameters(), *self._rest.parameters()]


class SAC(Learner):
    """SAC learner, with an actor, two critics and their targets, a temperature and a replay buffer."""

    config: AgentConfig

    def __init__(self, config: AgentConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int) -> None:
        """Make networks and buffer. Raises ConfigError for discrete actions, LimitError (memory) or DeviceError."""
        require_continuous(config, spaces)
        super().__init__(config, spaces, seen, device, wiring)
        sac, seed, widths = config.sac, config.seed, config.critic.widths
        # Only training needs the spread of actions, so a dense network computes it, even for an actor of gates.
        self._spread = nn.MLP(spaces.observations, [*widths, spaces.actions], "relu", seed=seed + 10, device=device)
        # Two critics with the seeds +20 and +30, then two targets with the same seeds: each target begins equal to its
        # critic.
        observed, acted = spaces.observations, spaces.actions
        pairs = [QNetwork(observed, acted, widths, seed + offset, device) for offset in (20, 30, 20, 30)]
        self._critics, self._targets = pairs[:2], pairs[2:]
        columns = {"observations": observed, "following": observed, "actions": acted}
        nothing = {name: np.zeros((1, columns.get(name, 1)), dtype=np.float32) for name in SAVED}
        self._buffer = ReplayBuffer(sac.buffer_size, self._columns(**nothing), device)
        automatic = sac.ent_coef == "auto"
        begin = 0.0 if automatic else math.log(max(float(sac.ent_coef), 1e-12))
        self._log_temperature = Tensor([begin], device, requires_grad=automatic)
        self._target_entropy = sac.target_entropy or -float(spaces.actions)
        rate = config.gates.learning_rate if config.policy != "mlp" else sac.learning_rate
        self._actor_optimizer = optim.Adam(self.actor.parameters(), rate)
        self._spread_optimizer = optim.Adam(self._spread.parameters(), sac.learning_rate)
        parameters = [each for critic in self._critics for each in critic.parameters()]
        self._critic_optimizer = optim.Adam(parameters, sac.learning_rate)
        self._temperature_optimizer = optim.Adam([self._log_temperature], sac.learning_rate) if automatic else None
        self._steps = self._updates = 0

    @property
    def iteration_steps(self) -> int:
        count = self.config.environment.n_envs
        return -(-ITERATION // count) * count

    def decide(self, observations: Floats) -> npt.NDArray[Any]:
        """Return the best actions for `observations`, without sampling, within the environment's bounds."""
        mean = self._reaching(self.actor.decided(self._tensor(self.actor.features(observations))))
        return from_unit(self.spaces, mean.tanh().numpy())

    def iterate(
        self, environments: Environments, iteration: int, progress: float, stepped: Stepped
    ) -> dict[str, float]:
        """Step all environment copies, learn at the configured interval, and return metrics, as in `PPO.iterate`."""
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.config.seed, 2, iteration])))
        self.actor.began(progress)
        metrics: dict[str, float] = {"updates": 0}
        for _ in range(self.iteration_steps // environments.count):
            self._step(environments, generator, stepped)
            self._steps += 1
            learns = self._steps * environments.count > self.config.sac.learning_starts
            if learns and self._steps % self.config.sac.train_freq == 0:
                updates = metrics["updates"] + self.config.sac.gradient_steps
                for _ in range(self.config.sac.gradient_steps):
                    metrics = self._update(self._buffer.sample(self.config.sac.batch_size, generator), generator)
                metrics["updates"] = updates
        return metrics

    def _step(self, environments: Environments, generator: np.random.Generator, stepped: Stepped) -> None:
        observations = environments.observations.copy()
        if self._steps * environments.count < self.config.sac.learning_starts:
            actions = generator.uniform(-1, 1, (environments.count, self.spaces.actions)).astype(np.float32)
        else:
            features, scaled = map(self._tensor, self._read(observations))
            actions = self._sample(features, scaled, generator)[0].numpy()
        step = environments.step(from_unit(self.spaces, actions))
        rest: Arrays = {"actions": actions, "rewards": step.rewards, "terminated": step.terminated}
        self._buffer.add(**self._columns(observations=observations, following=step.observations, **rest))
        over = step.terminated | step.truncated
        stepped(environments, over)
        environments.begin_anew(over)

    def _read(self, observations: Floats) -> tuple[Floats, Floats]:
        """Return the inputs of the actor and of all other networks for `observations`."""
        return self.actor.features(observations), self.seen.scaled(observations)

    def _columns(self, **transitions: npt.NDArray[Any]) -> Arrays:
        """Return the columns for the replay buffer: `transitions` and the networks' inputs, which are cached."""
        features, scaled = self._read(transitions["observations"])
        after_features, after = self._read(transitions["following"])
        return transitions | {"features": features, "scaled": scaled, "after_features": after_features, "after": after}

    def _update(self, batch: dict[str, Tensor], generator: np.random.Generator) -> dict[str, float]:
        """Take a gradient step of critics, actor and temperature, update the targets, and return metrics."""
        sac, temperature = self.config.sac, self._log_temperature.stop_gradient().exp()
        following, log_probs_after = self._sample(batch["after_features"], batch["after"], generator)
        worth = self._least(self._targets, batch["after"], following.stop_gradient()) - temperature * log_probs_after
        goes_on = (1.0 - batch["terminated"].reshape(-1)) * sac.gamma
        target = (batch["rewards"].reshape(-1) + goes_on * worth).stop_gradient()

        observations, taken = batch["scaled"], batch["actions"]
        errors = [((critic(observations, taken) - target) ** 2.0).mean() for critic in self._critics]
        value_loss = 0.5 * (errors[0] + errors[1])
        value_loss.backward()
        self._critic_optimizer.step()

        actions, log_probs = self._sample(batch["features"], observations, generator)
        loss = (temperature * log_probs - self._least(self._critics, observations, actions)).mean()
        loss.backward()
        self._actor_optimizer.step()
        self.actor.updated()
        self._spread_optimizer.step()
        # The actor's loss has left gradients in the critics, which learn only from their own loss.
        self._critic_optimizer.zero_grad()

        entropy = -float(log_probs.numpy().mean())
        if self._temperature_optimizer is not None:
            # If the entropy exceeds the target, the gradient is positive: the temperature falls, then the entropy.
            (self._log_temperature * (entropy - self._target_entropy)).sum().backward()
            self._temperature_optimizer.step()
        self._updates += 1
        if self._updates % sac.target_update_interval == 0:
            self._follow()
        return {
            "policy_loss": loss.item(),
            "value_loss": value_loss.item(),
            "entropy": entropy,
            "temperature": temperature.item(),
        }

    def _follow(self) -> None:
        """Move the parameters of each target towards its critic, by the share `tau`."""
        tau = self.config.sac.tau
        for critic, target in zip(self._critics, self._targets, strict=True):
            for own, slow in zip(critic.parameters(), target.parameters(), strict=True):
                slow.assign(slow.stop_gradient() * (1 - tau) + own.stop_gradient() * tau)

    @staticmethod
    def _least(critics: list[QNetwork], observations: Tensor, actions: Tensor) -> Tensor:
        # The smaller of two estimates, since the actor exploits actions that one critic overestimates.
        first, second = (critic(observations, actions) for critic in critics)
        return first - (first - second).relu()

    def _reaching(self, mean: Tensor) -> Tensor:
        """Return the mean `[N, A]` before tanh: the output of a dense actor, or REACH times the output of gates."""
        return mean * REACH if self.config.policy != "mlp" else mean

    def _sample(self, features: Tensor, scaled: Tensor, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return differentiable sampled actions in [-1, 1], `[N, A]`, and their log densities `[N]`."""
        mean = self._reaching(self.actor(features))
        log_spread = (self._spread(scaled).tanh() + 1.0) * (LOG_SPREAD_RANGE / 2) + LEAST_LOG_SPREAD
        noise = self._tensor(generator.standard_normal(mean.shape, dtype=np.float32))
        actions = (mean + noise * log_spread.exp()).tanh()
        # The density of a squashed normal is the normal's density divided by the slope of tanh, 1 - tanh^2. In float32
        # tanh(10) is 1 and the slope 0: adding 1e-6 keeps the logarithm finite.
        normal = -0.5 * noise**2.0 - log_spread - 0.5 * math.log(2 * math.pi)
        return actions, (normal - (1.0 + 1e-6 - actions**2.0).log()).sum(1)

    def _parts(self) -> dict[str, list[Tensor]]:
        optimizers = {"actor": self._actor_optimizer, "spread": self._spread_optimizer,
                      "critics": self._critic_optimizer}  # fmt: skip
        if self._temperature_optimizer is not None:
            optimizers["temperature"] = self._temperature_optimizer
        parts = {"spread": self._spread.parameters(), "temperature": [self._log_temperature]}
        parts |= {f"critic.{k}": critic.parameters() for k, critic in enumerate([*self._critics, *self._targets])}
        return parts | {f"optimizer.{name}": optimizer.state for name, optimizer in optimizers.items()}

    def state(self) -> Arrays:
        buffer = {f"buffer.{name}": array for name, array in self._buffer.state(SAVED).items()}
        return super().state() | buffer | {"counters": np.array([self._steps, self._updates], dtype=np.int64)}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        saved = part_of(state, "buffer.")
        place = int(saved.pop("next"))
        self._buffer.restore(place, self._columns(**saved))
        self._steps, self._updates = (int(each) for each in state["counters"])
