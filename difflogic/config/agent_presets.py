"""The presets of agents, and what is trained where only an environment is named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from difflogic.config.choices import SUPERVISED
from difflogic.config.document import POLICY
from difflogic.config.fields import merged
from difflogic.config.policy import FORMAT, AutomatonConfig, LogicConfig, PolicyConfig
from difflogic.config.request import TrainRequest

if TYPE_CHECKING:  # NumPy is not imported for the names of presets
    from difflogic.config.table import LabelledTable


def configure(request: TrainRequest) -> PolicyConfig | None:
    """The configuration of agents that a request asks for; None where it is for automata.

    Raises ConfigError, and UsageError for what means nothing to agents.
    """
    base = request.config or PRESETS.get(request.preset or "")
    if request.table is not None:
        base = of_table(request.table, base if isinstance(base, PolicyConfig) else None, request.population)
    if not isinstance(base, PolicyConfig):
        return None
    request.check_kind(of_agents=True)
    return fitted(base.with_(**request.set), request.table)


def of_environment(identifier: str, threshold: float, n_envs: int = 8, **fields: Any) -> PolicyConfig:
    """The defaults for an environment, whose mean return counts as solved from `threshold` on."""
    # `ALE/Pong-v5` and `my_module:Maze-v0` are names of environments, and no names of folders.
    name = re.split(r"[/:]", identifier)[-1].partition("-v")[0].lower()
    own = {"name": name, "environment": {"id": identifier, "n_envs": n_envs}, "evaluation": {"threshold": threshold}}
    return PolicyConfig.from_dict({"kind": POLICY, "format": FORMAT, **merged(own, fields)})


def of_spaces(identifier: str, threshold: float, actions: int, continuous: bool) -> PolicyConfig:
    """What is trained where nothing but the environment is named: gates by PPO, or of continuous actions a dense agent.

    The last layer, and the channels of an automaton, are rounded up to a multiple of the actions.
    """

    def shared(count: int) -> int:
        return -(-count // actions) * actions

    *hidden, last = LogicConfig().widths
    # How many passes over a rollout are good depends on the environment: twenty teach an agent to balance a pole, and
    # make one forget a task whose episodes tell little. So an update ends once the policy has moved so far. Rollouts
    # are twice as long, and actions more random at first: an agent that seldom sees a reward has to look for it.
    ppo = {"n_steps": 64, "target_kl": 0.05}
    # Gates have not learned any continuous task so well as dense layers do.
    kind: dict[str, Any] = {"algorithm": "sac", "policy": "mlp"} if continuous else {}
    return of_environment(
        identifier,
        threshold,
        logic={"widths": [*hidden, shared(last)], "temperature": 1.0},
        automaton={"channels": shared(AutomatonConfig().channels)},
        ppo=ppo,
        **kind,
    )


PASSES, SEEN, EVALUATIONS, GATES = 300, 100_000, 20, 4000
"""Of a classifier: least passes over the rows that are learned, and least rows that are seen in all; evaluations, and
about so many gates in each layer."""


def of_table(table: LabelledTable, base: PolicyConfig | None = None, population: int = 1) -> PolicyConfig:
    """A classifier of the rows of a table: the defaults, or a configuration's. Raises DataError.

    One seed learns from all rows that are not held out, as none need to choose.
    """
    table.require_learnable()
    own: dict[str, Any] = {"table": table.fields(), "algorithm": SUPERVISED, "environment": {"id": table.label}}
    if base is not None:
        return base.with_(**own)
    votes = -(-GATES // len(table.classes))
    # Preferences are from 0 to 20, whatever the number of classes. A range twice as large soon has no gradient left
    # from rows that are right by few votes, and such rows fail among new ones.
    temperature = votes**0.5 / 20
    logic = {"bits": 7, "widths": [GATES, votes * len(table.classes)], "temperature": temperature}
    own |= {"name": _name(table), "steps": 1, "logic": logic | {"final_temperature": temperature}}
    config = PolicyConfig.from_dict({"kind": POLICY, "format": FORMAT, **own})
    if population == 1:
        config = config.with_(table={"validation": 0.0})
    steps = max(PASSES * config.table.pass_rows, SEEN)
    return config.with_(steps=steps, evaluation={"interval": max(1, steps // EVALUATIONS)})


def fitted(config: PolicyConfig, table: LabelledTable | None) -> PolicyConfig:
    """A configuration with thresholds: quantiles of the rows that are learned, unless they are given."""
    if table is None or config.policy == "mlp" or config.gates.thresholds:
        return config
    thresholds = table.thresholds(table.parts(config.table).learned, config.gates.bits)
    return config.with_(**{config.policy: {"thresholds": thresholds}})


def _name(table: LabelledTable) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", table.label).strip("-")[:100] or "classifier"


# Where a pole that is balanced moves. A random policy tells little of it: its pole falls at once, fast and far from
# upright, while its cart has hardly moved. The rows are the cart's place (m) and speed (m/s),
# the pole's angle (rad) and its speed (rad/s).
POLE = [
    [-2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0],
    [-0.7, -0.3, -0.1, 0.0, 0.1, 0.3, 0.7],
    [-0.08, -0.03, -0.01, 0.0, 0.01, 0.03, 0.08],
    [-0.8, -0.3, -0.1, 0.0, 0.1, 0.3, 0.8],
]

_POLE_PPO = {"n_steps": 32, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8}

# The numbers of the dense networks and of PPO and SAC are those of the RL Baselines3 Zoo for these environments.
PRESETS = {
    "cartpole": of_environment(
        "CartPole-v1",
        475.0,
        steps=100_000,
        # Episodes begin twice as far out as the environment's: late in training too few of its own fail to learn from.
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
    # Without both velocities: an empty row hides a number.
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
    # Agents of gates have not learned these two: without --policy it is a dense one.
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
"""The environments that the documentation tells of, by the name that the command line takes."""
