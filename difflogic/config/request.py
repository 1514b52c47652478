"""Training requests; each option of a request is declared here once.

A declaration yields the option of the command line, the field of the API and its OpenAPI document, the control of the
page's form, the entry of a sweep's file, and the line of the reference.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from difflogic.config.choices import COLORS, METHODS, METRICS, RECIPES, STARTS
from difflogic.config.fields import Section, Table, build, hint, hints_of, in_tables, merged, plain, section, shown
from difflogic.config.limits import BELOW_ONE, COUNT, SEED, WHOLE, Limits, between, matching, one_of
from difflogic.config.values import Size, Within, coerced
from difflogic.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from difflogic.config.dataset import Dataset
    from difflogic.config.document import Document
    from difflogic.config.policy import PolicyConfig
    from difflogic.config.schema import Config
    from difflogic.config.table import LabelledTable
else:  # placeholders for annotations, so that the help of a command does not import NumPy
    Dataset = Document = LabelledTable = object


@dataclass(frozen=True)
class Option:
    """Declaration of an option of a request, for commands, the API, the form and the reference."""

    about: str
    """Meaning of the option, in one sentence without its full stop."""
    limits: Limits | None
    group: str
    """Name of the group to which the option belongs, such as `target`."""
    metavar: str | None = None
    """Name of the option's value in the help of a command."""
    usual: str | None = None
    """Description of the default; None if the default value is clear."""
    flag: Any = None
    """Value of the option if a command line names the option without a value."""
    of_agents: bool = True
    """True if the option applies to agents too."""
    of_trials: bool = False
    """True if all trials of a sweep share the option, which the sweep's file may set."""
    is_file: bool = False
    """True if the option is a file, which a command reads on its machine and a form uploads."""
    is_local: bool = False
    """True if the option is only for training on this machine and is never sent to a server."""
    sent: Limits | None = None
    """Limits in a request to a server, if they differ from `limits`: for example, no path is ever sent."""
    needs: str | None = None
    """Name of an option that this option requires."""
    implies: str | None = None
    """Name of a flag that this option sets."""
    excludes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Mapping from options that contradict this option to the reasons."""
    name: str = ""
    kind: Any = None
    """Type of the option; `int` if it is declared as `int | None`."""
    default: Any = None

    @property
    def usual_words(self) -> str | None:
        """Description of the default; None if the default is empty."""
        is_empty = self.default is False or self.default in (None, (), {}, dataclasses.MISSING)
        return self.usual or (None if is_empty else str(self.default))

    @property
    def words(self) -> str:
        """Meaning and default of the option, as the help of a command shows them."""
        return f"{self.about}{f' [{self.usual_words}]' if self.usual_words else ''}."

    def is_in(self, request: Any) -> bool:
        """Return whether a request sets the option to a value other than the default."""
        return bool(getattr(request, self.name) != self.default)


def option(about: str, limits: Limits | None = None, *, default: Any = None, **more: Any) -> Any:
    """Declare a field of a request; the arguments, `more` included, are fields of `Option`."""
    declared = Option(about, limits, **more)
    return dataclasses.field(default=default, metadata={"about": about, "limits": limits, "option": declared})


_target, _sweep = partial(option, group="target", of_agents=False), partial(option, group="sweep")


def options(cls: type) -> list[Option]:
    """Return the options that a class of requests declares, in the order of declaration."""
    return _options(cls)  # a separate function, since mypy rejects a dataclass as the key of a cache


@cache  # a store reads thousands of requests when it is opened
def _options(cls: type) -> list[Option]:
    kinds = hints_of(cls)
    declared = []
    for field in dataclasses.fields(cls):
        kind = kinds[field.name]
        kind = kind.__args__[0] if isinstance(kind, types.UnionType) else kind
        if "option" in field.metadata:
            declared.append(replace(field.metadata["option"], name=field.name, kind=kind, default=field.default))
    return declared


class Request(Section):
    """Base class of requests. Messages quote options in backticks; commands print `until_solved` as --until-solved."""

    def called(self, name: str) -> str:
        return f"`{name}`"

    def __post_init__(self) -> None:
        """Set implied flags. Raises ConfigError for a value out of range, or UsageError for contradictory options."""
        declared = {option.name: option for option in options(type(self))}
        for name, option in declared.items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, coerced(name, option.kind, value))
        super().__post_init__()
        implied = {option.implies: name for name, option in declared.items()
                   if option.implies and option.is_in(self) and not getattr(self, option.implies)}  # fmt: skip
        for name in implied:
            object.__setattr__(self, name, True)
        for name, option in declared.items():
            if option.needs is not None and option.is_in(self) and not getattr(self, option.needs):
                raise UsageError(f"`{name}` requires `{option.needs}`: give both.")
            for other, why in option.excludes.items():
                # An option that is false or 0 excludes nothing, but an excluded option counts even if its value is 0.
                if getattr(self, name) and declared[other].is_in(self):
                    name = implied.get(name, name)
                    raise UsageError(f"`{name}` and `{other}` cannot be used together: {why}. Omit one.")

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a request from the result of `to_dict`. Raises ConfigError or UsageError."""
        request: Self = build(cls, data)
        return request

    def to_dict(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as JSON values."""
        return {o.name: _plain(getattr(self, o.name)) for o in options(type(self)) if o.is_in(self)}


@section
class SweepRequest(Request):
    """Request for a sweep: trials that differ in some fields."""

    over: Table = _sweep(
        "A field to vary and its values: 4,8,16 or 0..31, or a range, 0.02:0.2, 0.02:0.2:log or, in steps, 0:1:0.25",
        Limits("1 to 20 fields with their values, such as seed=0..31", lambda value: 1 <= len(value) <= 20,
               schema={"minProperties": 1, "maxProperties": 20}),
        default=dataclasses.MISSING, metavar="FIELD=VALUES",
    )  # fmt: skip
    metric: str | None = _sweep(
        "Metric that compares trials: tts, the cost of a solution; hard_loss, wrong cells; gates, live gates of "
        "solved trials; return, the mean return of agents",
        one_of(METRICS),
        usual="tts; for agents return",
    )
    method: str | None = _sweep(
        "How to choose trials", one_of(METHODS), usual="random; grid if all values are listed and trials omitted"
    )
    trials: int | None = _sweep("Trials, including those before a resume", COUNT, metavar="N", usual="the whole grid")
    sampler_seed: int = _sweep("The seed of all random choices of the sweep, not of a run", SEED, default=0)
    ahead: int = _sweep("Trials that optuna and halving start before the first result", between(1, 1000), default=8)


TRAIN_FIELDS = ("epochs", "batch", "eval_interval")
"""Fields of `[train]` that are also options of commands and functions."""


def check_names(names: Iterable[str], expected: Iterable[str]) -> None:
    """Raise UsageError, which suggests the most similar of the `expected` names, for an unknown name."""
    expected = list(expected)
    for name in names:
        if name not in expected:
            raise UsageError(f"Unknown option `{name}`{hint(name, expected)}: expected {', '.join(expected)}.")


JOB_ID = "[a-z2-7]{16}"
"""Regular expression for job identifiers."""
_OTHER_WIRING = "attempts sample new wiring, but `init_from` keeps the wiring of its run"
_ONE_RUN = "`starts` supports only a single attempt"


@section
class TrainRequest(Request):
    """Request for training: task, options and stopping conditions. `customise.configure` makes its configuration.

        TrainRequest("lizard", target=Path("cat.png"), size=Size(24, 24), set={"train": {"epochs": 1000}}, restarts=2)

    An option that is None has the value of the preset or configuration.
    """

    preset: str | None = option("A preset of automata or agents", group="what")
    config: Document | None = option(
        "A configuration instead of a preset; target images and rules keep its grid size", group="what"
    )
    set: Mapping[str, Any] = option(
        "Fields of the configuration by path, such as optimizer.lr; they override all others",
        default=Table(), group="what",
    )  # fmt: skip
    recipe: str | None = option(
        "How to train. paper: as in the paper. robust: more seeds succeed, and training restarts when it stalls",
        one_of(RECIPES), group="what", of_agents=False, of_trials=True,
        usual="robust; paper with a configuration, or a preset with hardening or a search",
    )  # fmt: skip

    target: Path | None = _target("Grow this image, of at most 128x128 cells", metavar="IMAGE", is_file=True)
    rule: str | None = _target(
        "Learn one step of this rule: life-like, or elementary by number, like 110",
        matching("text of 1 to 200 characters", ".{1,200}"), metavar="B3/S23",
    )  # fmt: skip
    rule_table: Path | None = _target(
        "Learn the rule in this file: 512 digits 0 and 1, 128 hexadecimal digits, or .npy", metavar="FILE", is_file=True
    )
    data: Dataset | None = _target(
        "Learn these samples: .npz, or a folder of .npy, with x and y, or frames. mask and steps are optional",
        metavar="FILE|DIR", is_local=True,
    )  # fmt: skip
    start: str | None = _target(
        "The initial state of each sample: one of these words, or an image file",
        metavar="random|boards|seed|zeros|IMAGE", usual="the preset's",
        sent=one_of([word for word in STARTS if word != "picture"]),
    )  # fmt: skip
    colors: int | None = _target(
        "The colours of an image, in 1, 3 or 6 channels", one_of(COLORS), usual="its own, or 8"
    )
    size: Size | None = _target(
        "Scale images down to fit into this many cells",
        Limits("WIDTHxHEIGHT of 1 to 128 cells each", lambda size: all(1 <= side <= 128 for side in size)),
        metavar="WIDTHxHEIGHT",
    )
    threshold: float | None = _target("The brightness above which a cell of an image is on", BELOW_ONE, usual="0.26")
    invert: bool | None = _target("Invert the lightness of images, so that light is off", usual="if dark on light")
    padding: int = _target("Empty cells on each side of a target", between(0, 64), default=0)

    engine: str | None = option(
        "The engine. auto: the CPU engine or, if there is one, a hardware GPU",
        matching("auto, cpu, reference, gpu, gpu:INDEX or gpu:NAME", r"auto|cpu|reference|gpu(:[^\x00-\x1f]{1,80})?"),
        group="run", metavar="auto|gpu[:INDEX|:NAME]|cpu|reference", usual="auto",
    )  # fmt: skip
    population: int = option(
        "Train this number of models at once, with consecutive seeds from the configuration's", COUNT, default=1,
        group="run", metavar="M", of_trials=True,
    )  # fmt: skip
    stop_when_solved: int = option(
        "Stop at the first evaluation at which this number of models have no wrong cell, or this number of "
        "agents reach the threshold; 0: never", WHOLE, default=0, group="until", metavar="[N]", flag=1,
    )  # fmt: skip
    restarts: int | None = option(
        "Restart with different wiring when a run stalls, at most this number of times. All attempts share the epochs. "
        "An epoch on a smaller grid counts as a fraction, and an epoch of a population counts once per model",
        WHOLE, group="until", metavar="N", usual="with the recipe robust, as often as is useful; otherwise 0",
        of_agents=False, of_trials=True,
        excludes={"init_from": _OTHER_WIRING, "starts": _ONE_RUN},
    )  # fmt: skip
    until_solved: bool = option(
        "Restart until a circuit is right on fresh initial states, after more steps, and on a larger grid, or an agent "
        "reaches its threshold in 100 fresh episodes",
        default=False, group="until", of_trials=True,
        excludes={"restarts": "one restarts without a limit, the other sets one", "init_from": _OTHER_WIRING,
                  "starts": _ONE_RUN},
    )  # fmt: skip
    within: Within | None = option(
        "Train until solved, but at most for 60s, 5m or 2h, or for 2000 epochs of all attempts together",
        group="until", metavar="LIMIT", implies="until_solved", of_trials=True,
    )  # fmt: skip
    init_from: str | Path | None = option(
        "Start from the logits and wiring of another run; in a request to a server, of a job",
        group="run", metavar="RUN|JOB", usual="a new one", sent=matching("the id of a job", JOB_ID),
    )  # fmt: skip
    starts: Path | None = option(
        "Also train on the initial states in this .npy file, with which on average half of the samples begin, "
        "such as the counterexamples that `prove` writes",
        group="run", metavar="FILE", is_local=True, of_agents=False,
    )  # fmt: skip
    decide: bool = option(
        "Set the unconverged gates of a solved model to their most probable functions, as `harden` does by default",
        default=False, group="harden", is_local=True,
    )  # fmt: skip
    table: LabelledTable | None = None
    """Rows with labels for a classifier, which commands read with `--data` and `--label`."""

    @classmethod
    def of(cls, **arguments: Any) -> Self:
        """Return the request for a Python function's arguments, ignoring None. Raises UsageError or ConfigError."""
        check_names(arguments, [*(field.name for field in dataclasses.fields(cls)), "seed", "test", *TRAIN_FIELDS])
        arguments = {name: value for name, value in arguments.items() if value is not None}
        if (test := arguments.pop("test", None)) is not None:
            if "table" not in arguments:
                raise UsageError("`test` is the test set of a `table`: give that too.")
            arguments["table"] = arguments["table"].with_test(test)
        train = {name: arguments.pop(name) for name in TRAIN_FIELDS if name in arguments}
        seed = {"seed": arguments.pop("seed")} if "seed" in arguments else {}
        if fields := seed | ({"train": train} if train else {}):
            arguments["set"] = merged(arguments.get("set", {}), fields)
        return cls(**arguments)

    def check_kind(self, of_agents: bool) -> None:
        """Raise UsageError if `of_agents` is true and the request sets an option that is only for automata."""
        for option in options(type(self)) if of_agents else []:
            if not option.of_agents and option.is_in(self):
                raise UsageError(f"`{option.name}` is for automata, but this trains agents: omit it.")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a request from JSON data, in which limits and sizes are texts. Raises ConfigError or UsageError."""
        expected = [option.name for option in options(cls) if not option.is_file and not option.is_local]
        for name in data:
            if name not in expected:
                raise ConfigError(f"Unknown field {shown(name)}{hint(name, expected)}: expected {', '.join(expected)}.")
        fields = dict(data)
        config = fields.pop("config", None)
        if isinstance(fields.get("set"), Mapping):
            fields["set"] = in_tables(fields["set"])
        request: Self = build(cls, fields)
        for option in options(cls):
            value = getattr(request, option.name)
            if option.sent is not None and option.is_in(request) and not option.sent.holds(value):
                raise ConfigError(f"`{option.name}` must be {option.sent.words}, got {shown(value)}.")
        if config is None:
            return request
        from difflogic.config.policy import any_config

        return replace(request, config=any_config(config))

    def configured(self, config: Document) -> Self:
        """Return the request with `config` in place of its preset, its target and their options."""
        defaults = {option.name: option.default for option in options(type(self)) if option.group in ("what", "target")}
        return replace(self, **defaults | {"config": config})

    @property
    def resumable(self) -> Self:
        """Request as a run stores it: without values that a resumed run reads from its folder or is given again."""
        # A time limit begins again when a run is resumed; a limit of epochs counts all epochs since the beginning.
        within = None if self.within is None or self.within.epochs is None else Within(epochs=self.within.epochs)
        request = self.configured(self.whole)
        return replace(request, engine=None, init_from=None, starts=None, table=None, within=within)

    @property
    def whole(self) -> Config | PolicyConfig:
        """Configuration of the request, which `configured` sets. Raises UsageError if there is none."""
        if self.config is None:
            raise UsageError("This request has no configuration yet: config.customise.configure makes it.")
        return cast("Config | PolicyConfig", self.config)

    @property
    def solved_models(self) -> int:
        """Number of solved models at which training stops, or 0 for never; by default 1 if there are restarts."""
        # A run without restarts continues to its last epoch, in which more gates may converge.
        return self.stop_when_solved or int(self.until_solved or bool(self.restarts))

    def most_attempts(self, attempt: int) -> int | None:
        """Return the maximum number of attempts, or None if unlimited or (in jobs of version 0.1.0) below `attempt`."""
        most = (self.restarts or 0) + 1
        return None if self.until_solved or attempt > most else most


def _plain(value: Any) -> Any:
    if isinstance(value, Within | Size | Path):
        return str(value)
    return value.to_dict() if hasattr(value, "to_dict") else plain(value)
