"""Specification of a sweep: a configuration, the axes in which trials differ, and how trials are chosen and ranked.

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

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from difflogic.config import agent_presets, document, kept_starts, presets, recipes, registered
from difflogic.config.customise import configure
from difflogic.config.document import Document
from difflogic.config.fields import Table, build, by_path, convert, field, hint, merged, nested, plain, section, shown
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import SweepRequest, TrainRequest, options
from difflogic.config.schema import Config
from difflogic.errors import ConfigError, UsageError
from difflogic.sweeps.axes import SEED, Axis, axis

NAME = "sweep.toml"
FORMAT = 1
RUNGS, REDUCTION = 3, 3
"""Number of rungs and reduction factor of halving: a third of trials continue after 1/9 and 1/3 of the training."""
ENTRIES = ("config", *(each.name for each in options(SweepRequest)))
OF_TRIALS = ("set", *(each.name for each in options(TrainRequest) if each.of_trials))
"""Names of entries that apply to the training of each trial, unlike ENTRIES, which apply to the sweep itself."""
OF_AUTOMATA, OF_AGENTS = ("tts", "hard_loss", "gates"), ("return", "tts")


@section
class Spec(SweepRequest, Document):
    """Specification of a sweep, to be created with `of`, which sets defaults."""

    if TYPE_CHECKING:  # `of` sets them
        metric: str = ""
        method: str = ""
    config: Table = field("The complete configuration of all trials, since a preset may change", default=Table())
    asked: TrainRequest = field("The options and fields that all trials share", default=TrainRequest())

    @classmethod
    def of(cls, **entries: Any) -> Self:
        """Return the specification with entries as in a file, and with defaults for missing entries.

        Args:
            entries: Entries such as `preset` or `config` (a file or configuration), `over`, `metric` and `method`.

        Raises:
            UsageError: An entry is missing, or entries contradict each other.
            ConfigError: A field is unknown, or a value is out of range.
        """
        entries = {name: value for name, value in entries.items() if value is not None}
        preset = entries.pop("preset", None)
        base = base_of(preset, entries.get("config"))
        if preset is not None and isinstance(base, Config):
            entries.setdefault("recipe", recipes.usual(base))
        over = {path: plain(list(value) if isinstance(value, range) else value)
                for path, value in by_path(_table(entries.get("over", {}), "over")).items()}  # fmt: skip
        usual = {"metric": (OF_AGENTS if isinstance(base, PolicyConfig) else OF_AUTOMATA)[0]}
        is_grid = "trials" not in entries and all(axis(path, value, base).values for path, value in over.items())
        usual |= {"method": "grid" if is_grid else "random"}
        fixed = {"config": base.to_dict(), "over": over, "set": by_path(_table(entries.get("set", {}), "set"))}
        return cls.from_dict(usual | entries | fixed)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the specification for entries as in `to_dict`, without defaults. Raises UsageError or ConfigError."""
        if data.get("format", FORMAT) != FORMAT:
            raise UsageError("The sweep was written by another version of difflogic: use that version to continue it.")
        entries = {name: value for name, value in data.items() if name != "format"}
        known = (*ENTRIES, *OF_TRIALS)
        if unknown := [name for name in entries if name not in known]:
            raise ConfigError(f"Unknown entry {shown(unknown[0])}{hint(unknown[0], known)}: use {', '.join(known)}.")
        shared = {name: entries.pop(name) for name in OF_TRIALS if name in entries}
        spec: Self = build(cls, entries | {"asked": TrainRequest.from_dict(shared)})
        return spec

    def to_dict(self) -> dict[str, Any]:
        """Return the entries for a file, including the complete configuration, on which trials depend."""
        entries = {name: plain(getattr(self, name)) for name in ENTRIES if getattr(self, name) is not None}
        return {"format": FORMAT} | entries | self.asked.to_dict()

    @classmethod
    def load(cls, path: Path, **changed: Any) -> Self:
        """Read a specification from a file, with `changed` entries replaced. Raises UsageError or ConfigError."""
        data = document.read(path)
        if isinstance(data.get("config"), str):  # relative to the specification
            data["config"] = path.parent / data["config"]
        return cls.of(**data | {name: value for name, value in changed.items() if value is not None})

    def __post_init__(self) -> None:
        """Raise UsageError if entries contradict each other, ConfigError for invalid fields."""
        super().__post_init__()
        own, kind = (OF_AGENTS, "agents") if self.is_policy else (OF_AUTOMATA, "automata")
        if self.metric not in own:
            raise UsageError(f"Expected a metric of {kind}, one of {', '.join(own)}, got {self.metric}.")
        self._check_method()
        self._check_request()

    def _check_method(self) -> None:
        ranges = [axis.path for axis in self.axes if not axis.values]
        if self.method == "grid" and ranges:
            raise UsageError(
                f"Expected a list of values of {ranges[0]} for `method` grid, got the range {self.over[ranges[0]]}: "
                "list some, or give `method` random and `trials`."
            )
        if SEED in ranges:
            raise UsageError("Expected a list of seeds, such as seed=0..31, got a range.")
        if self.method in ("optuna", "halving") and not self.searched:
            raise UsageError(f"`method` {self.method} requires an axis besides seed: add one, or give `method` grid.")
        if self.method != "grid" and self.trials is None:
            raise UsageError(f"`method` {self.method} requires the number of trials: give `trials`.")
        request = self.asked
        if self.method == "halving" and (request.until_solved or request.restarts):
            raise UsageError(
                "`method` halving ranks unfinished runs, so it does not support restarts: give another method, or "
                "`restarts` 0 without `until_solved`."
            )

    def _check_request(self) -> None:
        self.asked.check_kind(self.is_policy)
        if self.is_policy and self.asked.until_solved:
            raise UsageError("Sweeps of agents do not support `until_solved`: omit it.")
        if isinstance(self.base, Config):
            kept_starts.refuse(self.base, "a sweep")
        # An error that affects all trials is raised here, before the first trial.
        try:
            self.configured({})
        except ConfigError:  # `set` may be valid only with values of the axes: try their first values
            self.configured({axis.path: axis.values[0] if axis.values else axis.low for axis in self.axes})

    @cached_property
    def base(self) -> Config | PolicyConfig:
        """Configuration of all trials, before `set` and the values of the axes are applied."""
        return base_of(None, dict(self.config))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis(path, values, self.base) for path, values in self.over.items())

    @property
    def is_policy(self) -> bool:
        """True if trials train agents, False if they train automata."""
        return isinstance(self.base, PolicyConfig)

    @property
    def searched(self) -> list[Axis]:
        """Axes that samplers search, which are all axes except the seed."""
        return [axis for axis in self.axes if axis.path != SEED]

    @property
    def sign(self) -> int:
        """Sign by which to multiply the metric so that lower is better: 1, or -1 if higher values are better."""
        return -1 if self.metric == "return" else 1

    @property
    def most(self) -> int:
        """Maximum number of trials of the sweep."""
        points = math.prod(len(axis.values) for axis in self.axes) if self.method == "grid" else math.inf
        return int(min(points, math.inf if self.trials is None else self.trials))

    def rungs(self) -> list[int | None]:
        """Return the epochs (for agents, environment steps) at the end of each rung, with None for the last rung."""
        if self.method != "halving":
            return [None]
        # Example: with 1000 epochs, the result is [112, 334, None].
        config = self.configured({})
        total = config.train.epochs if isinstance(config, Config) else config.steps
        return [*(math.ceil(total / REDUCTION**rest) for rest in range(RUNGS - 1, 0, -1)), None]

    def configured(self, values: Mapping[str, Any]) -> Config | PolicyConfig:
        """Return the configuration of a trial; `values` maps the paths of axes to values. Raises ConfigError."""
        fields = dict(self.asked.set)
        for path, value in values.items():
            fields = merged(fields, nested(path, value))
        if isinstance(self.base, Config):
            fields = _fitted(self.base, fields)
            return configure(TrainRequest(config=self.base, set=fields, recipe=self.asked.recipe)).config
        return self.base.with_(**fields)

    @property
    def request(self) -> TrainRequest:
        """Training options of each trial, including the stop condition, but without the configuration."""
        # With the metric tts, a trial ends when all models are solved; other metrics may still improve after that.
        request = replace(self.asked, set={}, stop_when_solved=self.asked.population if self.metric == "tts" else 0)
        # Halving compares unfinished runs, so recipes must not restart them.
        return replace(request, restarts=0) if self.method == "halving" else request


def base_of(preset: Any, config: Any) -> Config | PolicyConfig:
    """Return the configuration (automata or agents) of a preset, file or table. Raises UsageError or ConfigError."""
    if (preset is None) == (config is None):
        raise UsageError("Expected either `preset` or `config`, or a sweep file with one of them.")
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
        raise ConfigError(f"Unknown preset {shown(name)}{hint(name, names)}: expected {', '.join(names)}.")
    return presets.get(name)


def _table(entry: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{name} must be a table of fields, got {shown(entry)}.")
    return entry


def _fitted(base: Config, fields: dict[str, Any]) -> dict[str, Any]:
    """Return `fields` with the update network's widths, unless set, adapted to changed kernels or channels."""
    model = fields.get("model", {})
    if not isinstance(model, dict) or not {"kernels", "channels"} & set(model) or "widths" in model.get("update", {}):
        return fields
    channels, kernels = model.get("channels", base.model.channels), model.get("kernels", base.model.kernels)
    outputs = model.get("perceive", {}).get("widths", base.model.perceive.widths)[-1]
    widths = [channels + channels * outputs * kernels, *base.model.update.widths[1:-1], channels]
    return merged(fields, {"model": {"update": {"widths": widths}}})
