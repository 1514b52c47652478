"""A sweep is a configuration, the axes along which trials differ from it, and how they are chosen and ranked.

preset = "checkerboard-small"     # of `difflogic train` or `train-policy`; or config = "mine.toml"
recipe = "robust"
metric = "tts"
method = "optuna"
trials = 64
[set]
"train.epochs" = 300
[over]
"optimizer.lr" = "0.02:0.2:log"
seed = "0..3"
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from difflogic.config import agent_presets, document, kept_starts, presets, registered
from difflogic.config.choices import METHODS, METRICS
from difflogic.config.customise import configure
from difflogic.config.document import Document
from difflogic.config.fields import Table, build, convert, field, hint, merged, nested, plain, section, shown
from difflogic.config.limits import COUNT, one_of
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest, Within
from difflogic.config.schema import Config
from difflogic.errors import ConfigError, UsageError
from difflogic.sweeps.axes import SEED, Axis, axis

NAME = "sweep.toml"
FORMAT = 1
RUNGS, REDUCTION = 3, 3
"""`halving` looks at a trial after a ninth and after a third of its training, and lets about every third go on."""
OF_AUTOMATA, OF_AGENTS = ("tts", "hard_loss", "gates"), ("return", "tts")


@section
class Spec(Document):
    """A sweep, whole: everything that its table depends on. Make one with `of`, which fills in what is usual."""

    config: Table = field("The configuration that trials begin with, whole: what a preset is may change")
    over: Table = field("The values of each axis, by the path of its field")
    metric: str = field("The metric that compares trials", one_of(METRICS))
    method: str = field("How trials are chosen", one_of(METHODS))
    trials: int | None = field("The number of trials; of a grid the first ones, without it all", COUNT, default=None)
    set: Table = field("Fields that are changed in all trials, and that override the recipe", default=Table())
    recipe: str | None = None
    population: int = field("Models of each trial", COUNT, default=1)
    restarts: int | None = None
    until_solved: bool = False
    within: str | None = None
    sampler_seed: int = 0
    ahead: int = field("Trials that optuna and halving start before the first result is known", COUNT, default=8)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The sweep of these entries, as a file has them; `preset`, or for `config` a file or a configuration.

        Raises UsageError, ConfigError.
        """
        given = {name: value for name, value in given.items() if value is not None}
        base = base_of(given.pop("preset", None), given.get("config"))
        over = {path: plain(list(value) if isinstance(value, range) else value)
                for path, value in _flat(given.get("over", {}), "over").items()}  # fmt: skip
        usual = {"metric": (OF_AGENTS if isinstance(base, PolicyConfig) else OF_AUTOMATA)[0]}
        is_grid = "trials" not in given and all(axis(path, value, base).values for path, value in over.items())
        usual |= {"method": "grid" if is_grid else "random"}
        known = {"config": base.to_dict(), "over": over, "set": _flat(given.get("set", {}), "set")}
        return cls.from_dict(usual | given | known)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read it like every document. Raises UsageError, ConfigError."""
        if data.get("format", FORMAT) != FORMAT:
            raise UsageError("The sweep was written by another version of difflogic: use that version to continue it.")
        made: Self = build(cls, {name: value for name, value in data.items() if name != "format"})
        return made

    def to_dict(self) -> dict[str, Any]:
        entries = {each.name: plain(getattr(self, each.name)) for each in dataclasses.fields(self)}
        return {"format": FORMAT} | {name: value for name, value in entries.items() if value is not None}

    @classmethod
    def load(cls, path: Path, **changed: Any) -> Self:
        """Read a specification, with some of its entries replaced. Raises UsageError, ConfigError."""
        data = document.read(path)
        if isinstance(data.get("config"), str):  # beside the file that names it
            data["config"] = path.parent / data["config"]
        return cls.of(**data | {name: value for name, value in changed.items() if value is not None})

    def __post_init__(self) -> None:
        """Raises UsageError for what contradicts itself, ConfigError where the fields are none."""
        super().__post_init__()
        if not self.over:
            raise UsageError("A sweep needs an axis: give --over FIELD=VALUES, say --over seed=0..31.")
        own, kind = (OF_AGENTS, "agents") if self.is_policy else (OF_AUTOMATA, "automata")
        if self.metric not in own:
            raise UsageError(f"The metric of {kind} is one of {', '.join(own)}, got {self.metric}.")
        self._check_method()
        self._check_request()

    def _check_method(self) -> None:
        ranges = [each.path for each in self.axes if not each.values]
        if self.method == "grid" and ranges:
            raise UsageError(
                f"A grid needs values, but {ranges[0]} is the range {self.over[ranges[0]]}: list some, or give "
                "--method random and --trials N."
            )
        if SEED in ranges:
            raise UsageError("Seeds are not searched: list them, say --over seed=0..31.")
        if self.method in ("optuna", "halving") and not self.searched:
            raise UsageError(f"--method {self.method} searches fields, but seed is the only axis: give --method grid.")
        if self.method != "grid" and self.trials is None:
            raise UsageError(f"--method {self.method} needs the number of trials: give --trials N.")
        begins_again = self.until_solved or self.restarts or (self.recipe == "robust" and self.restarts is None)
        if self.method == "halving" and begins_again:
            raise UsageError(
                "--method halving judges runs before they end, but trials of several attempts begin again: give "
                "another method, or --restarts 0 without --until-solved."
            )

    def _check_request(self) -> None:
        of_automata = ("recipe", "restarts", "until_solved", "within")
        if self.is_policy and (given := [name for name in of_automata if getattr(self, name) not in (None, False)]):
            raise UsageError(f"Agents are swept without {', '.join(given)}: drop it.")
        if isinstance(self.base, Config):
            kept_starts.refuse(self.base, "a sweep")
        # Everything that is wrong with all trials is refused here, and not found in as many failures.
        try:
            self.configured({})
        except ConfigError:  # the fields of --set may fit only beside values of the axes: the first of each is tried
            self.configured({each.path: each.values[0] if each.values else each.low for each in self.axes})
        self.asked().check_attempts()

    @cached_property
    def base(self) -> Config | PolicyConfig:
        """The configuration that trials start from."""
        return base_of(None, dict(self.config))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis(path, given, self.base) for path, given in self.over.items())

    @property
    def is_policy(self) -> bool:
        """Return whether trials are runs of agents."""
        return isinstance(self.base, PolicyConfig)

    @property
    def searched(self) -> list[Axis]:
        """The axes but the seeds."""
        return [each for each in self.axes if each.path != SEED]

    @property
    def sign(self) -> int:
        """Times this, less of the metric is better."""
        return -1 if self.metric == "return" else 1

    @property
    def most(self) -> int:
        """Return how many trials there are in the end."""
        points = math.prod(len(each.values) for each in self.axes) if self.method == "grid" else math.inf
        return int(min(points, math.inf if self.trials is None else self.trials))

    def rungs(self) -> list[int | None]:
        """Epochs, of agents steps, after which a trial is looked at; the last one, None, is its end."""
        if self.method != "halving":
            return [None]
        # Three rungs of 1000 epochs, each three times as far as the one before: [112, 334, None].
        config = self.configured({})
        whole = config.train.epochs if isinstance(config, Config) else config.steps
        return [*(math.ceil(whole / REDUCTION**rest) for rest in range(RUNGS - 1, 0, -1)), None]

    def configured(self, values: Mapping[str, Any]) -> Config | PolicyConfig:
        """The configuration of a trial with these values, by their paths. Raises ConfigError."""
        fields: dict[str, Any] = {}
        for path, value in {**self.set, **values}.items():
            fields = merged(fields, nested(path, value))
        if isinstance(self.base, Config):
            fields = _fitted(self.base, fields)
            return configure(TrainRequest(config=self.base, fields=fields, recipe=self.recipe)).config
        return self.base.with_(**fields)

    def asked(self) -> TrainRequest:
        """Return how each trial is trained; of agents, how many, and whether a solution ends it."""
        return TrainRequest(
            recipe=self.recipe,
            population=self.population,
            # The time to a solution is over when there is one; who looks for few gates or values lets it go on.
            stop_when_solved=self.population if self.metric == "tts" else 0,
            restarts=self.restarts,
            until_solved=self.until_solved,
            within=None if self.within is None else Within.parse(self.within),
        )


def base_of(preset: Any, config: Any) -> Config | PolicyConfig:
    """A preset of automata or of agents, or what a file or a table holds. Raises UsageError, ConfigError."""
    if (preset is None) == (config is None):
        raise UsageError("Say what to sweep: a PRESET, --config FILE, or a sweep's own file.")
    if isinstance(config, Config | PolicyConfig):
        return config
    if config is not None:
        data = document.read(Path(config)) if isinstance(config, str | Path) else config
        return (PolicyConfig if document.is_policy(data) else Config).from_dict(data)
    name = convert(str, preset, "preset")
    if name in agent_presets.PRESETS:
        return agent_presets.PRESETS[name]
    if name not in presets.PRESETS and not registered.is_task(name):
        names = [*presets.PRESETS, *agent_presets.PRESETS]
        raise ConfigError(f"There is no preset {shown(name)}{hint(name, names)}: expected {', '.join(names)}.")
    return presets.get(name)


def _flat(found: Any, name: str) -> dict[str, Any]:
    """A table, whether its paths are written `"train.epochs" = 3` or `train.epochs = 3`. Raises UsageError."""
    if not isinstance(found, Mapping):
        raise UsageError(f"{name} must be a table of fields, got {shown(found)}.")
    flat: dict[str, Any] = {}
    for key, value in found.items():
        inside = _flat(value, key) if isinstance(value, Mapping) else {"": value}
        flat |= {f"{key}.{path}".removesuffix("."): each for path, each in inside.items()}
    return flat


def _fitted(base: Config, fields: dict[str, Any]) -> dict[str, Any]:
    """Fit the ends of the update network where kernels or channels change, unless somebody set them."""
    model = fields.get("model", {})
    if not isinstance(model, dict) or not {"kernels", "channels"} & set(model) or "widths" in model.get("update", {}):
        return fields
    channels, kernels = model.get("channels", base.model.channels), model.get("kernels", base.model.kernels)
    outputs = model.get("perceive", {}).get("widths", base.model.perceive.widths)[-1]
    widths = [channels + channels * outputs * kernels, *base.model.update.widths[1:-1], channels]
    return merged(fields, {"model": {"update": {"widths": widths}}})
