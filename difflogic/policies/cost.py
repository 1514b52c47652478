"""What a training of agents would take, predicted from its configuration alone, before anything is made."""

from __future__ import annotations

from difflogic.config.policy import PolicyConfig
from difflogic.devices.cost import EVALUATIONS_PER_S, Cost
from difflogic.engine.memory import FLOAT
from difflogic.policies.environments import Spaces
from difflogic.policies.sac import ITERATION

STEP = 10**5
"""What a step of an environment takes, in gate evaluations."""
PASSES = 3
"""A sample that is learned from, forward and back, in forward passes."""
COPIES = 6
"""Numbers that are kept for each parameter: itself, its gradient, two moments, a mean or target, and one in passing."""


def cost_of(config: PolicyConfig, spaces: Spaces, population: int) -> Cost:
    """See `devices.cost`; nothing is made for it, however large the job."""
    sac, ppo, copies = config.sac, config.ppo, config.environment.n_envs
    is_sac = config.algorithm == "sac"
    actor, critic = _actor(config, spaces), _dense(spaces.observations, config.critic.widths)
    networks = actor + (5 if is_sac else 1) * critic
    # Samples that are learned from, for each step of a copy.
    learned = sac.batch_size * sac.gradient_steps / (sac.train_freq * copies) if is_sac else ppo.n_epochs
    evaluations = config.steps * population * (STEP + round((1 + PASSES * learned) * networks))
    row = 2 * spaces.observations + spaces.actions + 6
    kept = sac.buffer_size * row if is_sac else ppo.n_steps * copies * row
    # The values of a sample, and what goes back through them; a gate computes sixteen numbers and keeps one.
    batch = (sac if is_sac else ppo).batch_size * (actor // 4 + 8 * sum(config.critic.widths))
    return Cost(evaluations, FLOAT * population * (COPIES * networks + kept + batch))


def iteration_s(config: PolicyConfig, cost: Cost) -> float:
    """Seconds of an iteration: in it nothing is saved, and nobody is heard."""
    size = ITERATION if config.algorithm == "sac" else config.ppo.n_steps * config.environment.n_envs
    return cost.evaluations / EVALUATIONS_PER_S * size / config.steps


def _actor(config: PolicyConfig, spaces: Spaces) -> int:
    """Numbers that the actor learns, which are also what it computes for a sample."""
    if config.policy == "mlp":
        return _dense(spaces.observations, config.mlp.widths)
    if config.policy == "automaton":
        given = config.automaton
        cell = sum(given.widths) + given.channels * (1 + 17 * given.kernels)  # 17: the gates of a perception kernel
        return 16 * cell * given.side**2 * given.steps
    return 16 * sum(config.logic.widths) + spaces.observations * config.logic.bits


def _dense(inputs: int, widths: tuple[int, ...]) -> int:
    return sum(one * other for one, other in zip((inputs, *widths), widths, strict=False))
