"""The memory and time of a training of agents are predicted from its configuration, before anything is made."""

from difflogic.config.policy import PERCEPTION, AgentConfig, ClassifierConfig, PolicyConfig
from difflogic.devices.cost import EVALUATIONS_PER_S, Cost
from difflogic.engine.memory import FLOAT
from difflogic.policies.environments import Spaces
from difflogic.policies.sac import ITERATION

STEP = 10**5
"""What a step of an environment takes, in gate evaluations."""
PASSES = 3
"""A sample that is learned from, forward and back, in forward passes."""
EPISODE = 500
"""Steps of an episode, as those of gymnasium's classic environments end after 200 to 1000."""
ENVIRONMENT = 1 << 14
"""Bytes of a copy of an environment and of the actions since it began."""
COPIES = 6
"""Numbers that are kept for each parameter: itself, its gradient, two moments, a mean or target, and one in passing."""


def cost_of(config: AgentConfig, spaces: Spaces, population: int) -> Cost:
    """See `devices.cost`; nothing is made for it, however large the job."""
    sac, ppo, copies = config.sac, config.ppo, config.environment.n_envs
    is_sac, judged = config.algorithm == "sac", config.evaluation
    actor, networks = _actor(config, spaces), _networks(config, spaces)
    times = -(-config.steps // max(judged.interval, _size(config)))
    played = (times * judged.episodes + judged.final_episodes) * EPISODE * (STEP + actor)
    evaluations = population * (config.steps * _step(config, spaces) + played + config.gates.random_steps * STEP)
    row = 2 * spaces.observations + spaces.actions + 6
    # A ring is at most twice as long as what is in it, and holds what networks read of both observations.
    transition = row + 2 * (spaces.observations + _features(config, spaces))
    kept = min(sac.buffer_size, 2 * config.steps) * transition if is_sac else ppo.n_steps * copies * row
    # The values of a sample, and what goes back through them; a gate computes sixteen numbers and keeps one.
    batch = (sac if is_sac else ppo).batch_size * (actor // 4 + 8 * sum(config.critic.widths))
    return Cost(evaluations, population * (FLOAT * (COPIES * networks + kept + batch) + copies * ENVIRONMENT))


def of_classifier(config: ClassifierConfig, population: int) -> tuple[Cost, float]:
    """Return the cost of a training, and the seconds of a pass over the rows, in which nothing is saved."""
    table, spaces = config.table, Spaces(len(config.table.features), len(config.table.classes))
    actor = _actor(config, spaces)
    # A gate learns sixteen numbers and computes one.
    row = actor if config.policy == "mlp" else actor // 16
    played = -(-config.steps // config.evaluation.interval) * table.rows * row
    memory = FLOAT * (COPIES * actor + table.batch_size * actor // 4) + 8 * table.rows * len(table.features)
    evaluations = config.steps * (1 + PASSES) * row + played
    seconds = population * table.pass_rows * (1 + PASSES) * row / EVALUATIONS_PER_S
    return Cost(population * evaluations, population * memory), seconds


def iteration_s(config: AgentConfig, spaces: Spaces, population: int) -> float:
    """Seconds of an iteration, or of the random steps before the first: in them nothing is saved, and nobody heard."""
    longest = max(_size(config) * _step(config, spaces), config.gates.random_steps * STEP)
    return population * longest / EVALUATIONS_PER_S


def _size(config: AgentConfig) -> int:
    """Steps of an iteration."""
    return ITERATION if config.algorithm == "sac" else config.ppo.n_steps * config.environment.n_envs


def _networks(config: AgentConfig, spaces: Spaces) -> int:
    """Numbers that all networks of an agent learn."""
    # Of SAC: two critics, their two targets, and the network of the spread.
    critics = 5 if config.algorithm == "sac" else 1
    return _actor(config, spaces) + critics * _dense(spaces.observations, config.critic.widths)


def _step(config: AgentConfig, spaces: Spaces) -> int:
    """Gate evaluations of a step of a copy, with what is learned from it."""
    sac = config.sac
    # Samples that are learned from, for each step of a copy.
    learned: float = config.ppo.n_epochs
    if config.algorithm == "sac":
        learned = sac.batch_size * sac.gradient_steps / (sac.train_freq * config.environment.n_envs)
    return STEP + round((1 + PASSES * learned) * _networks(config, spaces))


def _features(config: AgentConfig, spaces: Spaces) -> int:
    """Numbers that the actor reads of an observation."""
    if config.policy == "automaton":
        return config.automaton.side**2 * config.automaton.channels
    return spaces.observations * (1 if config.policy == "mlp" else config.logic.bits)


def _actor(config: PolicyConfig, spaces: Spaces) -> int:
    """Numbers that the actor learns, which are also what it computes for a sample."""
    if config.policy == "mlp":
        return _dense(spaces.observations, config.mlp.widths)
    if config.policy == "automaton":
        given = config.automaton
        # Perception is computed for each channel of a cell.
        cell = sum(given.widths) + given.channels * (1 + PERCEPTION[-1] * given.kernels)
        return 16 * cell * given.side**2 * given.steps
    return 16 * sum(config.logic.widths) + spaces.observations * config.logic.bits


def _dense(inputs: int, widths: tuple[int, ...]) -> int:
    return sum(one * other for one, other in zip((inputs, *widths), widths, strict=False))
