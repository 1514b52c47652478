"""What a sweep is: a configuration, the axes along which trials differ from it, and how they are chosen and judged.

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

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from difflogic.config import kept_starts, presets, registered
from difflogic.config import policy as policies
from difflogic.config.choices import METHODS, METRICS
from difflogic.config.customise import configure
from difflogic.config.document import POLICY
from difflogic.config.fields import COUNT, KINDS, hint, merged, shown
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest, Within
from difflogic.config.schema import Config
from difflogic.errors import ConfigError, UsageError
from difflogic.sweeps import axes
from difflogic.sweeps.axes import SEED, Axis

NAME = "sweep.toml"
FORMAT = 1
RUNGS, REDUCTION = 3, 3
"""`halving` looks at a trial after a ninth and after a third of its training, and lets about every third go on."""
OF_AUTOMATA, OF_AGENTS = ("tts", "hard_loss", "gates"), ("return", "tts")
REQUEST = ("recipe", "population", "restarts", "until_solved", "within")
"""Of a `TrainRequest`, what every trial has alike."""
_TYPES = {"preset": str, "recipe": str, "metric": str, "method": str, "within": str, "population": int, "restarts": int,
          "sampler_seed": int, "until_solved": bool}  # fmt: skip
_DEFAULTS = {each: getattr(TrainRequest(), each) for each in REQUEST}


@dataclass(frozen=True)
class Spec:
    """A sweep, whole: everything that its table depends on."""

    base: Config | PolicyConfig
    over: tuple[Axis, ...]
    metric: str
    method: str
    trials: int | None = None
    """How many; of a grid at most so many, None: all."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields that every trial has changed, nested. They go before what a recipe sets, as axes do."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """Of REQUEST, what is not as usual; `within` as text."""
    seed: int = 0
    """Of the sampler: it chooses the same again."""
    ahead: int = 8
    """`optuna` and `halving` choose a trial when all but the last so many before it have been judged."""

    def __post_init__(self) -> None:
        """Raises UsageError for what contradicts itself, ConfigError where the fields are none."""
        if not self.over:
            raise UsageError("A sweep needs an axis: give --over FIELD=VALUES, say --over seed=0..31.")
        for name, value, names in (("method", self.method, METHODS), ("metric", self.metric, METRICS)):
            if value not in names:
                raise UsageError(f"{name} must be one of {', '.join(names)}, got {shown(value)}{hint(value, names)}.")
        own, kind = (OF_AGENTS, "agents") if self.is_policy else (OF_AUTOMATA, "automata")
        if self.metric not in own:
            raise UsageError(f"The metric of {kind} is one of {', '.join(own)}, got {self.metric}.")
        paths = [each.path for each in self.over]
        if twice := next((path for path in paths if paths.count(path) > 1), None):
            raise UsageError(f"{twice} is an axis twice: give its values once.")
        for name, count in (("trials", 1 if self.trials is None else self.trials), ("ahead", self.ahead)):
            if not COUNT.holds(count):
                raise UsageError(f"{name} must be {COUNT.words}, got {shown(count)}.")
        self._check_method()
        self._check_request()

    def _check_method(self) -> None:
        ranges = [each for each in self.over if each.range is not None]
        if self.method == "grid" and ranges:
            raise UsageError(
                f"A grid needs values, but {ranges[0].path} is the range {ranges[0].told}: list some, or give "
                "--method random and --trials N."
            )
        if any(each.path == SEED for each in ranges):
            raise UsageError("Seeds are not searched: list them, say --over seed=0..31.")
        if self.method in ("optuna", "halving") and not self.searched:
            raise UsageError(f"--method {self.method} searches fields, but seed is the only axis: give --method grid.")
        if self.method != "grid" and self.trials is None:
            raise UsageError(f"--method {self.method} needs the number of trials: give --trials N.")
        attempts = self.request.get("until_solved") or self.request.get("restarts")
        if self.method == "halving" and (attempts or self.recipe == "robust"):
            raise UsageError(
                "--method halving judges runs before they end, but trials of several attempts begin again: give "
                "another method, or --restarts 0 without --until-solved."
            )

    def _check_request(self) -> None:
        unknown = set(self.request) - (set(REQUEST) if not self.is_policy else {"population"})
        if unknown:
            raise UsageError(f"Agents are swept without {', '.join(sorted(unknown))}: drop it.")
        if isinstance(self.base, Config):
            kept_starts.refuse(self.base, "a sweep")
        # Everything that is wrong with all trials is refused here, and not found in as many failures.
        first = {each.path: each.values[0] if each.range is None else each.range.low for each in self.over}
        try:
            self.configured({})
        except ConfigError:  # as they are the fields may go only together with those of the axes
            self.configured(first)
        self.asked(self.base).check_attempts()

    @property
    def is_policy(self) -> bool:
        """Whether trials are runs of agents."""
        return isinstance(self.base, PolicyConfig)

    @property
    def recipe(self) -> str | None:
        """The recipe, unless it begins as often as it was told to, which is never."""
        return None if self.request.get("restarts") == 0 else self.request.get("recipe")

    @property
    def searched(self) -> list[Axis]:
        """The axes but the seeds."""
        return [each for each in self.over if each.path != SEED]

    @property
    def population(self) -> int:
        """Models of each trial."""
        return int(self.request.get("population", 1))

    @property
    def is_maximised(self) -> bool:
        """Whether more is better."""
        return self.metric == "return"

    @property
    def most(self) -> int:
        """So many trials there are in the end."""
        if self.method != "grid":
            return int(self.trials or 0)
        points = math.prod(len(each.values) for each in self.over)
        return points if self.trials is None else min(self.trials, points)

    def rungs(self) -> list[int | None]:
        """Epochs, of agents steps, after which a trial is looked at; the last one, None, is its end."""
        if self.method != "halving":
            return [None]
        config = self.configured({})
        whole = config.train.epochs if isinstance(config, Config) else config.steps
        return [*(math.ceil(whole / REDUCTION**rest) for rest in range(RUNGS - 1, 0, -1)), None]

    def configured(self, values: Mapping[str, Any]) -> Config | PolicyConfig:
        """The configuration of a trial with these values, by their paths. Raises ConfigError."""
        fields = dict(self.fields)
        for path, value in values.items():
            fields = merged(fields, _nested(path, value))
        if isinstance(self.base, Config):
            fields = _fitted(self.base, fields)
            return configure(TrainRequest(config=self.base, fields=fields, recipe=self.request.get("recipe"))).config
        return self.base.with_(**fields)

    def asked(self, config: Config | PolicyConfig) -> TrainRequest:
        """A trial with this configuration, as somebody would ask for it."""
        given = dict(self.request)
        if given.get("within") is not None:
            given["within"] = Within.parse(given["within"])
        # The time to a solution is over when there is one; whoever looks for few gates or values lets it go on.
        given["stop_when_solved"] = self.population if self.metric == "tts" else 0
        return TrainRequest(config=config if isinstance(config, Config) else None, **given)

    def to_toml(self) -> str:
        """As `load` reads it, with the configuration in it: what a preset is may change."""
        data: dict[str, Any] = {"format": FORMAT, "metric": self.metric, "method": self.method}
        data |= {} if self.trials is None else {"trials": self.trials}
        data |= {"sampler_seed": self.seed, "ahead": self.ahead, **self.request}
        over = {each.path: each.told for each in self.over}
        return tomli_w.dumps(data | {"over": over, "set": dict(self.fields), "config": self.base.to_dict()})

    @classmethod
    def load(cls, path: Path, **changed: Any) -> Spec:
        """Read a specification, with some of its entries replaced. Raises UsageError."""
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise UsageError(f"Cannot read the sweep {path}: {error.strerror or error}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"The sweep {path} is not valid TOML: {error}.") from error
        if isinstance(data.get("config"), str):  # beside the file that names it
            data["config"] = str(path.parent / data["config"])
        return cls.of(**data | changed)

    @classmethod
    def of(cls, **given: Any) -> Spec:
        """The sweep of these entries, as a file has them. Raises UsageError, ConfigError."""
        known = ("format", "preset", "config", "metric", "method", "trials", "sampler_seed", "ahead", "over", "set")
        for name in given:
            if name not in (*known, *REQUEST):
                raise UsageError(f"A sweep has no {shown(name)}{hint(name, (*known, *REQUEST))}.")
        if given.pop("format", FORMAT) != FORMAT:
            raise UsageError("The sweep was written by another version of difflogic: go on with that one.")
        for name, kind in _TYPES.items():
            if given.get(name) is not None and type(given[name]) is not kind:
                raise UsageError(f"{name} must be {KINDS[kind]}, got {shown(given[name])}.")
        base = base_of(given.pop("preset", None), given.pop("config", None))
        fields: dict[str, Any] = {}
        for path, value in _table(given.pop("set", {}), "set").items():
            fields = merged(fields, _nested(path, value))
        over = _table(given.pop("over", {}), "over")
        made = tuple(each if isinstance(each, Axis) else axes.axis(path, each, base) for path, each in over.items())
        request = {name: given.pop(name) for name in REQUEST if given.get(name, _DEFAULTS[name]) != _DEFAULTS[name]}
        metric = given.pop("metric", None) or (OF_AGENTS if isinstance(base, PolicyConfig) else OF_AUTOMATA)[0]
        is_grid = all(each.range is None for each in made)
        method = given.pop("method", None) or ("grid" if is_grid and given.get("trials") is None else "random")
        seed, ahead = given.get("sampler_seed", 0), given.get("ahead", 8)
        return cls(base, made, metric, method, given.get("trials"), fields, request, seed, ahead)

    def with_(self, trials: int) -> Spec:
        """With so many trials. Raises UsageError."""
        return replace(self, trials=trials)


def base_of(preset: str | None, config: Any) -> Config | PolicyConfig:
    """A preset of automata or of agents, or what a file or a table holds. Raises UsageError, ConfigError."""
    if (preset is None) == (config is None):
        raise UsageError("Say what to sweep: a PRESET, --config FILE, or a sweep's own file.")
    if isinstance(config, Config | PolicyConfig):
        return config
    if isinstance(config, str | Path):
        config = _read(Path(config))
    if isinstance(config, dict):
        return (PolicyConfig if config.get("kind") == POLICY else Config).from_dict(config)
    if preset in policies.PRESETS:
        return policies.PRESETS[preset]
    if preset not in presets.PRESETS and not registered.is_task(str(preset)):
        names = [*presets.PRESETS, *policies.PRESETS]
        raise ConfigError(f"There is no preset {shown(preset)}{hint(str(preset), names)}: expected {', '.join(names)}.")
    return presets.get(str(preset))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration {path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"The configuration {path} is not valid TOML: {error}.") from error


def _table(found: Any, name: str) -> Mapping[str, Any]:
    """A table, whether its paths are written `"train.epochs" = 3` or `train.epochs = 3`. Raises UsageError."""
    if not isinstance(found, Mapping):
        raise UsageError(f"{name} must be a table of fields, got {shown(found)}.")
    flat: dict[str, Any] = {}
    for key, value in found.items():
        inside = _table(value, key) if isinstance(value, Mapping) else None
        flat |= {key: value} if inside is None else {f"{key}.{rest}": each for rest, each in inside.items()}
    return flat


def _nested(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return dict(value)


def _fitted(base: Config, fields: dict[str, Any]) -> dict[str, Any]:
    """Where kernels or channels change, the ends of the update network follow, unless somebody set them."""
    model = fields.get("model", {})
    if not isinstance(model, dict) or not {"kernels", "channels"} & set(model) or "widths" in model.get("update", {}):
        return fields
    channels, kernels = model.get("channels", base.model.channels), model.get("kernels", base.model.kernels)
    outputs = model.get("perceive", {}).get("widths", base.model.perceive.widths)[-1]
    widths = [channels + channels * outputs * kernels, *base.model.update.widths[1:-1], channels]
    return merged(fields, {"model": {"update": {"widths": widths}}})
