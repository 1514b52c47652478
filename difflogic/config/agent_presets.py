"""Presets of agents, and the default configurations for environments and tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from difflogic.config.document import CLASSIFIER, POLICY
from difflogic.config.fields import merged
from difflogic.config.policy import FORMAT, AgentConfig, AutomatonConfig, ClassifierConfig, LogicConfig, PolicyConfig
from difflogic.config.request import TrainRequest

if TYPE_CHECKING:  # NumPy is not imported for the names of presets
    from difflogic.config.table import LabelledTable


def configure(request: TrainRequest) -> PolicyConfig | None:
    """Return the configuration of an agent or classifier, or None for automata. Raises ConfigError or UsageError."""
    base = request.config or PRESETS.get(request.preset or "")
    if request.table is not None:
        own = base if isinstance(base, PolicyConfig) else None
        base = of_table(request.table, own, request.population, request.set.get("steps"))
    if not isinstance(base, PolicyConfig):
        return None
    request.check_kind(of_agents=True)
    return fitted(base.with_(**request.set), request.table)


def of_environment(identifier: str, threshold: float, n_envs: int = 8, **fields: Any) -> AgentConfig:
    """Return the default configuration, updated with `fields`, for an environment solved at mean return `threshold`."""
    # Names of environments, such as `ALE/Pong-v5` and `my_module:Maze-v0`, are not valid names of folders.
    name = re.split(r"[/:]", identifier)[-1].partition("-v")[0].lower()
    own = {"name": name, "environment": {"id": identifier, "n_envs": n_envs}, "evaluation": {"threshold": threshold}}
    return AgentConfig.from_dict({"kind": POLICY, "format": FORMAT, **merged(own, fields)})


def of_spaces(identifier: str, threshold: float, actions: int, continuous: bool) -> AgentConfig:
    """Return the default configuration for a new environment: gates and PPO, or dense layers and SAC if `continuous`.

    The width of the last layer and the channels of an automaton are multiples of `actions`, the number of actions.
    """

    def shared(count: int) -> int:
        return -(-count // actions) * actions

    *hidden, last = LogicConfig().widths
    # Twenty passes over a rollout teach an agent to balance a pole, but make it unlearn a task with rare rewards. So an
    # update ends early if its KL is large. Longer rollouts and a higher temperature help to find a rare reward.
    # Gates have not learned any continuous task as well as dense layers.
    kind: dict[str, Any] = {"algorithm": "sac", "policy": "mlp"} if continuous else {}
    return of_environment(
        identifier,
        threshold,
        logic={"widths": [*hidden, shared(last)], "temperature": 1.0},
        automaton={"channels": shared(AutomatonConfig().channels)},
        ppo={"n_steps": 64, "target_kl": 0.05},
        **kind,
    )


PASSES, SEEN, EVALUATIONS, GATES = (15, 300), (100_000, 1_000_000), 20, 4000
"""Classifier defaults: (minimum, default) passes, (minimum, maximum) total rows, evaluations, and gates per layer."""


def of_table(
    table: LabelledTable, base: PolicyConfig | None = None, population: int = 1, steps: object = None
) -> ClassifierConfig:
    """Return a classifier configuration for `table`: `base` with this table, or the defaults. Raises DataError.

    Without `base`, training makes 300 passes, but reads at least 100,000 rows, and at most 1,000,000 rows or 15 passes,
    whichever is more. An integer `steps` sets the number of rows. If `population` is 1, no rows are for validation.
    """
    table.require_learnable()
    split = {"held_out": 0.0} if table.tests else {}
    own: dict[str, Any] = {"table": table.fields() | split}
    if base is not None:
        return ClassifierConfig.from_dict(merged(base.to_dict(), own))
    last = -(-GATES // len(table.classes)) * len(table.classes)
    name = re.sub(r"[^A-Za-z0-9_]+", "-", table.label).strip("-")[:100] or "classifier"
    own |= {"kind": CLASSIFIER, "format": FORMAT, "name": name, "steps": 1}
    config = ClassifierConfig.from_dict(own).with_(logic={"bits": 7, "widths": [GATES, last]})
    if population == 1:
        config = config.with_(table={"validation": 0.0})
    rows = config.table.pass_rows
    if not isinstance(steps, int):
        steps = max(min(max(PASSES[1] * rows, SEEN[0]), SEEN[1]), PASSES[0] * rows)
    return config.with_(steps=steps, evaluation={"interval": max(1, steps // EVALUATIONS)})


def fitted(config: PolicyConfig, table: LabelledTable | None) -> PolicyConfig:
    """Return `config`, with quantiles of the training rows as thresholds if a classifier of gates has none."""
    if not isinstance(config, ClassifierConfig) or table is None or config.policy == "mlp" or config.gates.thresholds:
        return config
    thresholds = table.thresholds(table.parts(config.table).learned, config.gates.bits)
    return config.with_(**{config.policy: {"thresholds": thresholds}})


# Thresholds among the states of a balanced pole, which a random policy rarely sees. Rows: the cart's position (m) and
# speed (m/s), the pole's angle (rad) and speed (rad/s).
POLE = [
    [-2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0],
    [-0.7, -0.3, -0.1, 0.0, 0.1, 0.3, 0.7],
    [-0.08, -0.03, -0.01, 0.0, 0.01, 0.03, 0.08],
    [-0.8, -0.3, -0.1, 0.0, 0.1, 0.3, 0.8],
]

_POLE_PPO = {"n_steps": 32, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8}

# The hyperparameters of dense networks, PPO and SAC are those of the RL Baselines3 Zoo for these environments.
PRESETS = {
    "cartpole": of_environment(
        "CartPole-v1",
        475.0,
        steps=100_000,
        # Initial states are twice as far from balance as usual: late in training too few usual episodes fail.
        environment={"reset": {"low": -0.1, "high": 0.1}},
        logic={"bits": 7, "widths": [32, 32], "thresholds": POLE},
        ppo=_POLE_PPO,
    ),
    "cartpole-automaton": of_environment(
        "CartPole-v1",
        475.0,
        name="cartpole-automaton",
        policy="automaton",
        steps=100_000,
        ppo=_POLE_PPO | {"n_epochs": 10, "ent_coef": 0.01},
    ),
    # Both velocities are hidden: an observed number without thresholds is not read.
    "cartpole-memory": of_environment(
        "CartPole-v1",
        475.0,
        name="cartpole-memory",
        steps=200_000,
        environment={"reset": {"low": -0.1, "high": 0.1}},
        logic={"bits": 7, "widths": [64, 32], "memory": 16, "thresholds": [POLE[0], [], POLE[2], []]},
        ppo=_POLE_PPO,
    ),
    "acrobot": of_environment(
        "Acrobot-v1",
        -100.0,
        steps=300_000,
        n_envs=16,
        logic={"bits": 8, "spread": 1.5, "widths": [96, 96, 96], "temperature": 1.0, "final_temperature": 1.0},
        ppo={"n_steps": 128, "n_epochs": 8, "gae_lambda": 0.94},
        evaluation={"interval": 50_000},
    ),
    # Agents of gates have not learned these two environments, so dense networks are the default.
    "pendulum": of_environment(
        "Pendulum-v1",
        -200.0,
        steps=12_000,
        n_envs=1,
        algorithm="sac",
        policy="mlp",
        logic={"bits": 12, "spread": 1.5, "widths": [256, 256]},
        sac={"learning_rate": 1e-3, "learning_starts": 500},
        evaluation={"interval": 3000},
    ),
    "lunarlander": of_environment(
        "LunarLander-v3",
        200.0,
        steps=1_000_000,
        n_envs=16,
        policy="mlp",
        logic={"bits": 10, "spread": 1.5, "widths": [160, 160], "temperature": 1.0, "final_temperature": 0.3},
        ppo={"n_steps": 1024, "n_epochs": 4, "gamma": 0.999, "gae_lambda": 0.98, "ent_coef": 0.01},
    ),
}
"""Mapping from preset names, which commands accept, to configurations for the documented environments."""
