"""Configurations of agents, which `difflogic train-policy` reads, and of classifiers.

    [logic]        an actor of logic gates                [evaluation]  when and how the actor is tested
    [automaton]    an automaton of gates                  [mlp]         a dense actor, the baseline
    [environment]  an agent's environment and its copies  [ppo]         proximal policy optimisation
    [critic]       a dense network, values of states      [sac]         soft actor-critic
    [table]        a classifier's labelled rows

The parameters of the algorithms have the names and meanings of Stable-Baselines3.
"""

from __future__ import annotations

import math
from typing import Any, Self

from difflogic.config.choices import ACTORS, ALGORITHMS
from difflogic.config.document import CLASSIFIER, POLICY, Document, is_classifier, is_policy
from difflogic.config.fields import Section, Table, build, field, hints_of, plain, require, section, shown
from difflogic.config.limits import (
    BELOW_ONE,
    COUNT,
    FILE_NAME,
    NOT_NEGATIVE,
    SEED,
    SHARE,
    UP_TO_ONE,
    WHOLE,
    WIDTH,
    Limits,
    between,
    one_of,
)
from difflogic.config.schema import Config
from difflogic.core.wiring import CANDIDATES, PATCH
from difflogic.errors import ConfigError

FORMAT = 1
FORWARDS = ("hard", "soft")
PERCEPTION = (PATCH, PATCH - 1)
"""Widths of an automaton's perception kernel: one layer, in which each gate reads the cell and one neighbour."""

POSITIVE = Limits("a number above 0, at most 1e+30", lambda value: 0 < value <= 1e30)
_NAME = Limits("text of 1 to 200 characters", lambda value: 0 < len(value) <= 200 and value.isprintable())
_COEFFICIENT = Limits('"auto", or a number of at least 0 as text', lambda value: value == "auto" or _is_number(value))


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False


def _require_widths(name: str, widths: tuple[int, ...]) -> None:
    require(
        0 < len(widths) <= 64 and all(WIDTH.holds(width) for width in widths),
        f"{name} must be 1 to 64 layers, each {WIDTH.words}, got {list(widths)}.",
    )


@section
class EnvironmentConfig(Section, path="environment."):
    """`[environment]`: an environment that is registered with Gymnasium, and its parallel copies."""

    id: str = field("Name of the environment, as gymnasium.make takes it", _NAME)
    n_envs: int = field("Number of parallel copies of the environment", between(1, 4096), default=8)
    reset: Table = field(
        "Options for the environment's reset in training; evaluations use its defaults", default=Table()
    )


@section
class LogicConfig(Section, path="logic."):
    """`[logic]`: an actor of two-input gates, which reads thermometer bits and counts its output bits per action."""

    bits: int = field("Number of thresholds per observed number; bit i is number >= threshold[i]", WIDTH, default=15)
    spread: float = field("Spread of the thresholds relative to that of observations", POSITIVE, default=2.0)
    random_steps: int = field("Steps of random actions that determine the thresholds", between(2, 10**6), default=500)
    thresholds: tuple[tuple[float, ...], ...] = field(
        "Ascending thresholds, a row of at most `bits` for each number; empty: computed from random steps or the table",
        default=(),
    )
    widths: tuple[int, ...] = field("Gates per layer; actions or classes share the last one equally", default=(64, 64))
    candidates: int = field("Candidates for each input of a gate; 1: fixed wiring", one_of(CANDIDATES), default=1)
    memory: int = field("Bits that an agent remembers from a step to the next (PPO)", between(0, 16), default=0)
    learning_rate: float = field("Learning rate of the gates' logits", POSITIVE, default=0.02)
    averaging: float = field(
        "Logits of the evaluated agent are averaged over this share of the updates so far; 0: the last logits",
        BELOW_ONE,
        default=0.06,
    )
    calm: float = field(
        "Gates learn more slowly if the spread of advantages is below this share of its maximum (PPO); 0: never",
        UP_TO_ONE,
        default=0.1,
    )
    start_logit: float = field("Initial logit of gate A, a pass-through; others begin at 0", NOT_NEGATIVE, default=3.0)
    temperature: float = field(
        "An action's logit is the number of ones among its k bits, divided by temperature * sqrt(k)",
        POSITIVE,
        default=0.5,
    )
    final_temperature: float = field("Final temperature, approached exponentially in training", POSITIVE, default=0.1)
    forward: str = field(
        "hard: hard gates choose actions, soft gates give gradients (straight-through); soft: soft gates do both",
        one_of(FORWARDS),
        default="hard",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_widths(f"{self.path}widths", self.widths)
        for row in self.thresholds:
            require(
                len(row) <= self.bits and all(map(math.isfinite, row)) and list(row) == sorted(set(row)),
                f"{self.path}thresholds must be rows of at most {self.path}bits = {self.bits} finite numbers in "
                f"strictly ascending order, got {shown(list(row))}: correct it, or set {self.path}thresholds=[].",
            )


@section
class AutomatonConfig(LogicConfig, path="automaton."):
    """`[automaton]`: a grid whose border reads the thermometer bits, and whose inner cells vote for the actions.

    The defaults differ from those of `[logic]`, since a circuit of several steps is trained with soft gates.
    """

    side: int = field("Cells per side of the grid, including its border", between(4, 64), default=6)
    channels: int = field("Bits of a cell, which are split equally among the actions", between(1, 1024), default=16)
    steps: int = field("Steps of the automaton for each decision", between(1, 64), default=2)
    kernels: int = field("Perception kernels", between(1, 64), default=1)
    bits: int = field("As logic.bits: number of thresholds per observed number", WIDTH, default=7)
    spread: float = field("As logic.spread: relative spread of the thresholds", POSITIVE, default=1.5)
    # The discrete agent, which is evaluated, may still be wrong if the soft agent has nothing left to learn.
    calm: float = field("As logic.calm: share of the spread below which gates learn slowly", UP_TO_ONE, default=0.0)
    widths: tuple[int, ...] = field("Gates of the update network's layers, except the last", default=(32, 16))
    temperature: float = field("As logic.temperature, where k counts the votes for an action", POSITIVE, default=1.0)
    forward: str = field("As logic.forward: whether soft or hard gates choose", one_of(FORWARDS), default="soft")


@section
class TableConfig(Section, path="table."):
    """`[table]`: the rows from which a classifier learns; a run stores them in `data.npz`."""

    sha256: str = field("SHA-256 of the rows")
    rows: int = field("Number of rows", WHOLE)
    label: str = field("Column with the classes")
    features: tuple[str, ...] = field("Columns that the classifier reads")
    classes: tuple[str, ...] = field("Classes, in the order of their numbers")
    test: int = field("Number of rows, the last ones, that are the test set; 0: no test set", WHOLE, default=0)
    held_out: float = field("Share of each class's rows that are only evaluated at the end", BELOW_ONE, default=0.2)
    validation: float = field(
        "Share of the rows neither held out nor for tests that select a population's best model; 0: the training rows",
        BELOW_ONE,
        default=0.1,
    )
    split: int = field("Seed of the training/validation/held-out split, independent of `seed`", SEED, default=0)
    batch_size: int = field("Rows in each gradient step", COUNT, default=128)
    learning_rate: float = field("Learning rate of a dense network; gates have their own", POSITIVE, default=1e-3)
    rewiring: float = field(
        "Share of training, in whole passes, during which improbable candidates for gate inputs are replaced; 0: never",
        UP_TO_ONE,
        default=0.6,
    )
    shift: int = field("Maximum random shift of square images in training, in pixels", WHOLE, default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not (self.test and self.held_out), f"table.held_out must be 0 with a test set, got {self.held_out}.")
        side = math.isqrt(len(self.features))
        require(
            not self.shift or (side * side == len(self.features) and self.shift < side),
            f"table.shift must be 0, or smaller than the side of square images, got {self.shift} with "
            f"{len(self.features)} features.",
        )

    @property
    def pass_rows(self) -> int:
        """Number of training rows, up to rounding; a pass visits each of them once."""
        return max(1, round((self.rows - self.test) * (1 - self.held_out) * (1 - self.validation)))

    @property
    def final_rows(self) -> str:
        """Description of the rows of the final evaluation, such as "held out"."""
        return "of the test set" if self.test else "held out" if self.held_out else "learned"


@section
class DenseConfig(Section):
    """`[mlp]` and `[critic]`: a dense network with tanh between its layers."""

    widths: tuple[int, ...] = field("Units of each hidden layer", default=(64, 64))

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_widths("widths", self.widths)


@section
class PPOConfig(Section, path="ppo."):
    """`[ppo]`. Source: Schulman et al., *Proximal policy optimization algorithms* (2017)."""

    learning_rate: float = field("Learning rate of the dense networks", POSITIVE, default=1e-3)
    n_steps: int = field("Steps of each environment in a rollout", between(1, 10**6), default=32)
    batch_size: int = field("Samples in each gradient step", COUNT, default=256)
    n_epochs: int = field("Passes over each rollout", between(1, 1000), default=20)
    gamma: float = field("Discount of a reward per step", UP_TO_ONE, default=0.99)
    gae_lambda: float = field("Lambda of generalised advantage estimation (GAE)", UP_TO_ONE, default=0.95)
    clip_range: float = field("The probability ratio is clipped to 1 plus or minus this value", POSITIVE, default=0.2)
    clip_range_vf: float = field("Clip range of the value function; 0: no clipping", NOT_NEGATIVE, default=0.0)
    ent_coef: float = field("Weight of the entropy in the loss", NOT_NEGATIVE, default=0.0)
    vf_coef: float = field("Weight of the value function's squared error in the loss", NOT_NEGATIVE, default=0.5)
    max_grad_norm: float = field("Maximum global norm of the gradients", POSITIVE, default=0.5)
    target_kl: float = field(
        "An update ends early if its approximate KL exceeds 1.5 times this; 0: no limit", NOT_NEGATIVE, default=0.0
    )
    normalize_advantage: bool = field("Whether a batch's advantages are scaled to mean 0, spread 1", default=True)
    linear_schedule: bool = field("Whether learning rates and clip_range fall linearly to 0 in training", default=True)


@section
class SACConfig(Section, path="sac."):
    """`[sac]`. Source: Haarnoja et al., *Soft actor-critic algorithms and applications* (2018)."""

    learning_rate: float = field("Learning rate of the dense networks and the entropy weight", POSITIVE, default=3e-4)
    buffer_size: int = field("Transitions in the replay buffer", COUNT, default=1_000_000)
    learning_starts: int = field("Random steps before the first update", WHOLE, default=100)
    batch_size: int = field("Transitions in each update", COUNT, default=256)
    tau: float = field("Share by which a target network moves towards its critic at each update", SHARE, default=0.005)
    gamma: float = field("Discount of a reward per step", UP_TO_ONE, default=0.99)
    train_freq: int = field("Steps of each environment between updates", COUNT, default=1)
    gradient_steps: int = field("Number of gradient updates after every train_freq steps", COUNT, default=1)
    target_update_interval: int = field("Updates between two moves of the target networks", COUNT, default=1)
    ent_coef: str = field("Weight of the entropy; auto: it is learned", _COEFFICIENT, default="auto")
    target_entropy: float = field("Target entropy if ent_coef is auto; 0: -1 per action dimension", default=0.0)


@section
class IntervalConfig(Section, path="evaluation."):
    """`[evaluation]` of a classifier: the interval of its evaluations."""

    interval: int = field("Steps, or rows of a table, between evaluations, which save the run", COUNT, default=10_000)
    episodes = final_episodes = 0
    threshold = -math.inf


@section
class EvaluationConfig(IntervalConfig):
    """`[evaluation]` of an agent: episodes with unseen seeds and the most probable actions of the discrete circuit."""

    episodes: int = field("Episodes of an evaluation while training", between(1, 10_000), default=20)
    final_episodes: int = field("Episodes of the evaluation at the end", between(1, 10_000), default=100)
    threshold: float = field("Mean return that counts as solved; -inf: none does", default=-math.inf)


@section
class PolicyConfig(Document):
    """Base class of the configurations of agents and of classifiers."""

    name: str = field("Name of the run; its folder is runs/NAME-DATE-TIME", FILE_NAME)
    policy: str = field("Kind of the actor", one_of(ACTORS), default="logic")
    steps: int = field("Total environment steps of all copies; for a classifier, rows visited", COUNT, default=100_000)
    logic: LogicConfig = field("An actor of logic gates", default=LogicConfig())
    automaton: AutomatonConfig = field("An automaton of gates as actor", default=AutomatonConfig())
    mlp: DenseConfig = field("A dense actor, the baseline", default=DenseConfig())
    evaluation: IntervalConfig = field("When training is evaluated", default=IntervalConfig())
    seed: int = field("The seed of wiring, weights, episodes and actions", between(0, 2**32 - 1), default=23)
    kind, unit, algorithm = CLASSIFIER, "row", "supervised"
    """Value of the field `kind` in a file, unit of progress, and algorithm; AgentConfig overrides them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            not self.gates.memory or (self.policy, self.algorithm) == ("logic", "ppo"),
            f'Only agents with policy "logic" and algorithm "ppo" have memory: {self.gates.path}memory must be 0 for '
            f"{self.policy!r} and {self.algorithm!r}, got {self.gates.memory}.",
        )
        # In training, soft gates would read soft memory values instead of the bits on which the agent acted.
        require(
            not self.gates.memory or self.gates.forward == "hard",
            f'logic.memory = {self.gates.memory} needs logic.forward = "hard".',
        )

    def require_episodes(self) -> AgentConfig:
        """Return this configuration if it is an agent's. Raises ConfigError for a classifier."""
        if not isinstance(self, AgentConfig):
            # A classifier is measured by its accuracy on held-out rows at the end.
            raise ConfigError("Expected an agent, got a classifier, which has neither episodes nor a return.")
        return self

    @property
    def epochs(self) -> int:
        """Number of environment steps of a run; for a classifier, number of rows."""
        return self.steps

    def with_epochs(self, epochs: int) -> Self:
        return self.with_(steps=epochs)

    @property
    def gates(self) -> LogicConfig:
        """Section `automaton` or `logic`, which configures the actor's gates."""
        return self.automaton if self.policy == "automaton" else self.logic

    @property
    def gate_count(self) -> int:
        """Number of the actor's gates; for an automaton, gates in the rule of a cell."""
        if self.policy == "mlp":
            return 0
        grid, gates = self.automaton, sum(self.gates.widths) + self.gates.memory
        return gates + grid.channels + grid.kernels * PERCEPTION[-1] if self.policy == "automaton" else gates

    @property
    def made_of(self) -> str:
        """Description of the actor for users."""
        grid, widths = self.automaton, ", ".join(map(str, self.logic.widths))
        memory = f", {self.logic.memory} bits of memory" if self.logic.memory else ""
        return {
            "logic": f"{self.gates.bits} thresholds a number, layers of {widths} gates{memory}",
            "automaton": f"{self.gates.bits} thresholds a number, {grid.side}x{grid.side} cells of {grid.channels} "
            f"bits, {grid.steps} steps a decision",
            "mlp": f"dense layers of {', '.join(map(str, self.mlp.widths))}",
        }[self.policy]

    @property
    def subject(self) -> str:
        """Name of the environment; for a classifier, name of the label's column."""
        return self.table.label if isinstance(self, ClassifierConfig) else self.require_episodes().environment.id

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and strings for TOML and JSON, with `kind` and `format` first."""
        data = plain(self)
        # JSON has no infinity.
        if data["evaluation"].get("threshold") == -math.inf:
            del data["evaluation"]["threshold"]
        return {"kind": self.kind, "format": FORMAT, **data}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make an AgentConfig or ClassifierConfig from the result of `to_dict`. Raises ConfigError."""
        require(
            is_policy(data),
            f'Expected the configuration of a policy, with kind = "{POLICY}" at its top; '
            "for automata, use `difflogic train`.",
        )
        require(
            data.get("format") == FORMAT,
            f"The configuration has format {shown(data.get('format'))}, but this difflogic reads format {FORMAT}.",
        )
        fields = {name: value for name, value in data.items() if name not in ("kind", "format")}
        sac = fields.get("sac")
        # This field alone has two types: "auto" or a number.
        if isinstance(sac, dict) and type(sac.get("ent_coef")) in (int, float):
            fields["sac"] = sac | {"ent_coef": str(sac["ent_coef"])}
        kind, other = (ClassifierConfig, AgentConfig) if is_classifier(data) else (AgentConfig, ClassifierConfig)
        if data["kind"] == POLICY:  # in earlier versions one kind had the fields of both
            others = hints_of(other).keys() - hints_of(kind).keys()
            fields = {name: value for name, value in fields.items() if name not in others}
            if kind is ClassifierConfig and isinstance(evaluation := fields.get("evaluation"), dict):
                fields["evaluation"] = {name: value for name, value in evaluation.items() if name == "interval"}
        config: Self = build(kind, fields)
        return config


@section
class AgentConfig(PolicyConfig):
    """Configuration for training an agent: environment, actor, algorithm, budget, name and seed."""

    environment: EnvironmentConfig = field("Environment of the agent", kw_only=True)
    kind, unit = POLICY, "step"
    algorithm: str = field("Algorithm of training", one_of(ALGORITHMS), default="ppo")
    critic: DenseConfig = field("The dense network that estimates the value of a state", default=DenseConfig())
    ppo: PPOConfig = field("Proximal policy optimisation", default=PPOConfig())
    sac: SACConfig = field("Soft actor-critic", default=SACConfig())
    evaluation: EvaluationConfig = field("When and how agents are evaluated", default=EvaluationConfig())


@section
class ClassifierConfig(PolicyConfig):
    """Configuration for training a classifier: table, actor, budget, name and seed."""

    table: TableConfig = field("Table of the rows", kw_only=True)

    def with_(self, /, **sections: Any) -> Self:
        """Return a changed copy; new `logic.widths` also change the temperatures, unless `sections` sets these.

        With these temperatures, class logits are from 0 to 20. With a range twice as large, rows decided by few votes
        soon have no gradient, and similar new rows are misclassified.
        """
        changed, logic = super().with_(**sections), plain(sections).get("logic", {})
        if "widths" not in logic or not {"temperature", "final_temperature"}.isdisjoint(logic):
            return changed
        temperature = max(1, changed.logic.widths[-1] // len(changed.table.classes)) ** 0.5 / 20
        return changed.with_(logic={"temperature": temperature, "final_temperature": temperature})


def any_config(data: dict[str, Any]) -> Config | PolicyConfig:
    """Make a configuration of automata, agents or a classifier from plain data. Raises ConfigError."""
    return PolicyConfig.from_dict(data) if is_policy(data) else Config.from_dict(data)
