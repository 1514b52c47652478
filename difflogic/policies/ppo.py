"""Proximal policy optimization (PPO): collect a rollout, and learn from it in several passes with a clipped ratio.

Source: Schulman et al., *Proximal policy optimization algorithms* (2017); names and details follow Stable-Baselines3.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from difflogic.config.policy import AgentConfig
from difflogic.devices.device import Device
from difflogic.policies.actors import LogicActor, Sightings
from difflogic.policies.buffers import RolloutBuffer, Samples, minibatches
from difflogic.policies.environments import Environments, Flags, Floats, Spaces
from difflogic.policies.learner import Chooser
from difflogic.tensor import Tensor, gathered, nn, optim

EPSILON = 1e-8

ON_DEVICE = ("features", "scaled", "log_probs", "values", "returns")
"""Names of the rollout's arrays on the device; advantages are normalized on the host, batch by batch."""
Stepped = Callable[[Environments, Flags], None]


class PPO(Chooser):
    """PPO learner, with an actor and a critic."""

    config: AgentConfig

    def __init__(self, config: AgentConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int) -> None:
        """Make actor and critic. Raises ConfigError if the actor's layers do not fit the actions, or DeviceError."""
        super().__init__(config, spaces, seen, device, wiring)
        self.critic = nn.MLP(seen.mean.size, [*config.critic.widths, 1], seed=config.seed + 1, device=device)
        ppo = config.ppo
        dense = [*self.critic.parameters(), *self.distribution.parameters()]
        # Logits of gates and weights have different scales, so each kind has its own learning rate, and its gradients
        # are clipped by their own norm. `_learn` relies on the gates' optimizer being the first.
        self._optimizers = []
        self._largest_spread = Tensor([0.0], device)
        if isinstance(self.actor, LogicActor):
            self._optimizers.append(self._adam(self.actor.parameters(), config.gates.learning_rate))
        else:
            dense += self.actor.parameters()
        self._optimizers.append(self._adam(dense, ppo.learning_rate))

    def _adam(self, parameters: list[Tensor], rate: float) -> tuple[optim.Adam, float]:
        return optim.Adam(parameters, rate, epsilon=EPSILON, max_norm=self.config.ppo.max_grad_norm), rate

    @property
    def iteration_steps(self) -> int:
        return self.config.ppo.n_steps * self.config.environment.n_envs

    def iterate(
        self, environments: Environments, iteration: int, progress: float, stepped: Stepped
    ) -> dict[str, float]:
        """Collect a rollout, learn from it, and return metrics.

        Args:
            environments: Environment copies to step.
            iteration: Number of the iteration.
            progress: Completed share of training, from 0 to 1.
            stepped: Callback after every step, which receives the environments and a mask of ended episodes.
        """
        # Each iteration has a separate generator, so that a checkpoint needs no state of a generator.
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.config.seed, 1, iteration])))
        self.actor.began(progress)
        samples = self._collect(environments, generator, stepped)
        return self._learn(samples, generator, 1 - progress if self.config.ppo.linear_schedule else 1.0)

    def _collect(self, environments: Environments, generator: np.random.Generator, stepped: Stepped) -> Samples:
        ppo = self.config.ppo
        buffer = RolloutBuffer(ppo.n_steps, environments.count, ppo.gamma, ppo.gae_lambda)
        for _ in range(ppo.n_steps):
            observations = environments.observations.copy()
            features = self.actor.features(observations)
            preferences, remembered = self._stepped(features, evaluated=False)
            actions, log_probs = self.distribution.sample(preferences, generator)
            step = environments.step(self.distribution.given(actions) + remembered)
            rewards = step.rewards.astype(np.float32)
            # The critic estimates the value of the rest of a truncated episode. This value is added to the reward here,
            # since the next observation in the buffer belongs to a new episode.
            cut = step.truncated & ~step.terminated
            if cut.any():
                after = self._values(self.seen.scaled(step.observations))
                rewards += np.float32(ppo.gamma) * np.where(cut, after, np.float32(0))
            over = step.terminated | step.truncated
            buffer.add(observations, features, actions, log_probs, rewards, over)
            stepped(environments, over)
            environments.begin_anew(over)
        return buffer.samples(environments.observations, self.seen.scaled, self._values)

    def _learn(self, samples: Samples, generator: np.random.Generator, rate_factor: float) -> dict[str, float]:
        ppo = self.config.ppo
        for optimizer, rate in self._optimizers:
            optimizer.lr = rate * rate_factor
        if isinstance(self.actor, LogicActor):
            self._optimizers[0][0].lr *= self._rate_share(float(samples.advantages.std()))
        # The rollout is uploaded once, and batches are gathered on the device.
        rollout = {name: self._tensor(array) for name, array in vars(samples).items() if name in ON_DEVICE}
        rollout["taken"] = self._tensor(self.distribution.coded(samples.actions))
        updates = 0
        for _ in range(ppo.n_epochs):
            for places in self._minibatches(samples, generator):
                batch = rollout
                if len(places) < len(samples.values):
                    batch = dict(zip(rollout, gathered([*rollout.values()], places), strict=True))
                goes_on = samples.goes_on.reshape(-1)[places]
                tell = self._update(batch, samples.advantages[places], ppo.clip_range * rate_factor, goes_on)
                updates += 1
            if ppo.target_kl and tell()["approx_kl"] > 1.5 * ppo.target_kl:
                break
        spread = float(samples.returns.var())
        unexplained = float((samples.returns - samples.values).var())
        return tell() | {"explained_variance": 1 - unexplained / spread if spread else 0.0, "updates": updates}

    def _minibatches(self, samples: Samples, generator: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
        steps, copies = samples.goes_on.shape
        if not self.spaces.memory:
            yield from minibatches(steps * copies, self.config.ppo.batch_size, generator)
            return
        # A batch contains all steps of some copies, since remembered bits pass from step to step.
        for some in minibatches(copies, max(1, self.config.ppo.batch_size // steps), generator):
            yield (copies * np.arange(steps)[:, None] + some).reshape(-1)

    def _rate_share(self, spread: float) -> float:
        """Return the gates' learning-rate factor, below 1 if `spread`, the advantages' standard deviation, is small."""
        # The advantages of an agent that makes no mistakes are only the critic's errors. Normalized by their own small
        # spread (or by Adam, which divides by the size of gradients), they would have the effect of real advantages,
        # and the agent would unlearn.
        largest = max(spread, float(self._largest_spread.numpy()[0]))
        self._largest_spread.assign([largest])
        least = self.config.gates.calm * largest
        return spread / least if spread < least else 1.0

    def _update(
        self, batch: dict[str, Tensor], advantages: Floats, clip: float, goes_on: Flags
    ) -> Callable[[], dict[str, float]]:
        """Take a gradient step, with ratios clipped to 1 +- `clip`; return a function that computes its metrics."""
        ppo = self.config.ppo
        if ppo.normalize_advantage and advantages.size > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + EPSILON)
        if self.spaces.memory and isinstance(self.actor, LogicActor):
            preferences = self.actor.unrolled(batch["features"], goes_on.reshape(ppo.n_steps, -1))
        else:
            preferences = self.actor(batch["features"])
        log_ratio = self.distribution.log_probs(preferences, batch["taken"]) - batch["log_probs"]
        ratio = log_ratio.exp()
        # A ratio gains the advantage A up to a bound, 1 + clip where A > 0 and 1 - clip where A < 0. Tensors have
        # neither a minimum nor a clip, and need none:
        # -min(A ratio, A clipped ratio) = relu(A (bound - ratio)) - A bound
        #     A = 2, clip = 0.2, ratio 1.5:  relu(2.4 - 3) - 2.4 = -2.4      ratio 0.5:  relu(2.4 - 1) - 2.4 = -1
        most = advantages * (1 + clip * np.sign(advantages)).astype(np.float32)
        policy_loss = (self._tensor(most) - ratio * self._tensor(advantages)).relu().mean() - float(most.mean())
        value_loss = self._value_loss(batch)
        loss = policy_loss + ppo.vf_coef * value_loss
        if ppo.ent_coef:
            loss = loss - ppo.ent_coef * self.distribution.entropy(preferences)
        loss.backward()
        for optimizer, _ in self._optimizers:
            optimizer.step()
        self.actor.updated()

        def tell() -> dict[str, float]:
            log_ratios, ratios = log_ratio.numpy(), ratio.numpy()
            return {
                "policy_loss": policy_loss.item(),
                "value_loss": value_loss.item(),
                "entropy": self.distribution.entropy(preferences).item(),
                # E[r - 1 - log r] estimates the divergence as E[-log r] does, but no sample is below 0.
                "approx_kl": float((ratios - 1 - log_ratios).mean()),
                "clip_fraction": float((np.abs(ratios - 1) > clip).mean()),
            }

        return tell

    def _value_loss(self, batch: dict[str, Tensor]) -> Tensor:
        values = self.critic(batch["scaled"]).reshape(-1)
        if reach := self.config.ppo.clip_range_vf:
            # The change is clipped to -reach..reach by two relus: 0.5 with reach 0.2 becomes -0.2 + 0.7 - 0.3 = 0.2.
            moved = values - batch["values"]
            values = batch["values"] - reach + (moved + reach).relu() - (moved - reach).relu()
        return ((values - batch["returns"]) ** 2.0).mean()

    def _values(self, scaled: Floats) -> Floats:
        return self.critic(self._tensor(scaled)).numpy().reshape(-1)

    def _parts(self) -> dict[str, list[Tensor]]:
        optimizers = {f"optimizer.{index}": optimizer.state for index, (optimizer, _) in enumerate(self._optimizers)}
        return optimizers | {
            "critic": self.critic.parameters(),
            "distribution": self.distribution.parameters(),
            "largest": [self._largest_spread],
        }
