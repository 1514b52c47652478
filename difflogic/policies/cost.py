"""Predict memory and time of training agents from the configuration, before any memory is allocated."""

from difflogic.config.policy import PERCEPTION, AgentConfig, ClassifierConfig, PolicyConfig
from difflogic.devices.cost import EVALUATIONS_PER_S, Cost
from difflogic.engine.memory import FLOAT
from difflogic.policies.environments import Spaces
from difflogic.policies.sac import ITERATION

STEP = 10**5
"""Assumed cost of an environment step, in gate evaluations."""
PASSES = 3
"""Cost of learning from a sample, forward and backward, relative to a forward pass."""
EPISODE = 500
"""Assumed number of steps per episode; Gymnasium's classic environments end episodes after 200 to 1000."""
ENVIRONMENT = 1 << 14
"""Assumed memory of an environment copy in bytes, including the actions of its current episode."""
COPIES = 6
"""Number of values stored per parameter: parameter, gradient, two moments, mean or target, and temporary value."""


def cost_of(config: AgentConfig, spaces: Spaces, population: int) -> Cost:
    """Return the cost of training `population` agents, in the units of `devices.cost`."""
    sac, ppo, copies = config.sac, config.ppo, config.environment.n_envs
    is_sac, evaluation = config.algorithm == "sac", config.evaluation
    actor, networks = _actor(config, spaces), _networks(config, spaces)
    times = -(-config.steps // max(evaluation.interval, _size(config)))
    played = (times * evaluation.episodes + evaluation.final_episodes) * EPISODE * (STEP + actor)
    evaluations = population * (config.steps * _step(config, spaces) + played + config.gates.random_steps * STEP)
    row = 2 * spaces.observations + spaces.actions + 6
    # A ring is at most twice as long as its contents, which include network inputs before and after each step.
    features = spaces.observations * (1 if config.policy == "mlp" else config.logic.bits)
    if config.policy == "automaton":
        features = config.automaton.side**2 * config.automaton.channels
    transition = row + 2 * (spaces.observations + features)
    buffer = min(sac.buffer_size, 2 * config.steps) * transition if is_sac else ppo.n_steps * copies * row
    # Values of samples and their gradients; a gate computes sixteen numbers and stores one.
    batch = (sac if is_sac else ppo).batch_size * (actor // 4 + 8 * sum(config.critic.widths))
    return Cost(evaluations, population * (FLOAT * (COPIES * networks + buffer + batch) + copies * ENVIRONMENT))


def of_classifier(config: ClassifierConfig, population: int) -> tuple[Cost, float]:
    """Return the cost of training `population` classifiers, and the seconds of a pass, which cannot be interrupted."""
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
    """Return the longest time in seconds without a save or stop: that of an iteration or of the random steps."""
    longest = max(_size(config) * _step(config, spaces), config.gates.random_steps * STEP)
    return population * longest / EVALUATIONS_PER_S


def _size(config: AgentConfig) -> int:
    """Return the number of environment steps per iteration."""
    return ITERATION if config.algorithm == "sac" else config.ppo.n_steps * config.environment.n_envs


def _networks(config: AgentConfig, spaces: Spaces) -> int:
    """Return the number of parameters of all networks of an agent."""
    # SAC has two critics, their two targets, and the network of the spread.
    critics = 5 if config.algorithm == "sac" else 1
    return _actor(config, spaces) + critics * _dense(spaces.observations, config.critic.widths)


def _step(config: AgentConfig, spaces: Spaces) -> int:
    """Return the cost of one environment step and of learning from this step, in gate evaluations."""
    sac = config.sac
    # Number of samples to learn from, per step of a copy.
    learned: float = config.ppo.n_epochs
    if config.algorithm == "sac":
        learned = sac.batch_size * sac.gradient_steps / (sac.train_freq * config.environment.n_envs)
    return STEP + round((1 + PASSES * learned) * _networks(config, spaces))


def _actor(config: PolicyConfig, spaces: Spaces) -> int:
    """Return the number of parameters of the actor, which is also the actor's cost per sample."""
    if config.policy == "mlp":
        return _dense(spaces.observations, config.mlp.widths)
    if config.policy == "automaton":
        shape = config.automaton
        # Perception is computed for each channel of a cell.
        cell = sum(shape.widths) + shape.channels * (1 + PERCEPTION[-1] * shape.kernels)
        return 16 * cell * shape.side**2 * shape.steps
    return 16 * sum(config.logic.widths) + spaces.observations * config.logic.bits


def _dense(inputs: int, widths: tuple[int, ...]) -> int:
    return sum(width * following for width, following in zip((inputs, *widths), widths, strict=False))
