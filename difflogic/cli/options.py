"""Options that several commands share."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from difflogic.cli.screen.echo import echo
from difflogic.config.choices import ACTORS, ALGORITHMS, PLACINGS, Placing
from difflogic.config.fields import Table
from difflogic.config.request import Option, SweepRequest, TrainRequest, options
from difflogic.config.values import Size
from difflogic.errors import MissingPackagesError, UsageError
from difflogic.system.files import Output
from difflogic.system.words import path_text

if TYPE_CHECKING:
    from difflogic.engine.api import Engine
    from difflogic.serve.client import Client

Function = TypeVar("Function", bound=Callable[..., Any])

SECTIONS = {
    "What to learn": (
        "config_file", "assignments", "target", "size", "colors", "threshold", "invert", "padding", "start", "rule",
        "rule_table", "data", "from_recording", "film_rule", "film_frames", "small",
    ),
    "How to train": (
        "search", "recipe", "until_solved", "within", "epochs", "batch", "seed", "population", "restarts",
        "stop_when_solved", "eval_interval", "init_from", "starts",
    ),
    "Where it runs": ("gpu", "engine", "require_hardware", "placement", "devices", "workers", "max_memory"),
    "Agents and classifiers": ("algorithm", "policy", "steps", "label", "test"),
    "Trials": ("over", "metric", "method", "trials", "sampler_seed", "ahead"),
    "The job": ("name", "priority", "tags", "watch"),
    "Files and output": ("out", "resume", "track", "log_interval", "as_json"),
}  # fmt: skip
"""Mapping from section titles in the help of training commands to the names of options, in order."""


class TrainingCommand(click.Command):
    """Command whose help groups the options by SECTIONS."""

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return a mapping from section titles to options; the last section includes options missing in SECTIONS."""
        rest = {option.name: option for option in self.get_params(ctx) if isinstance(option, click.Option)}
        groups = {title: [rest.pop(name) for name in names if name in rest] for title, names in SECTIONS.items()}
        groups[[*SECTIONS][-1]] += rest.values()
        return {title: group for title, group in groups.items() if group}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl([record for option in group if (record := option.get_help_record(ctx))])


class _Path(click.Path):
    """Click type of a path; users may also write a rule, such as B3/S23, in its place."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(path_text(value) if isinstance(value, str) else value, param, ctx)


PATH = _Path(path_type=Path)
POSITIVE = click.FloatRange(min=0, min_open=True)
GIVEN_OTHERWISE = ("preset", "config", "set")
"""Options of a request that commands take as PRESET, `--config` and `--set`."""


def together(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Combine click options into one decorator, in their order in the help."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


FORCE = "difflogic.force"
"""Key of the `--force` value in the click context's `meta`."""
quick_option = click.option(
    "--quick", is_flag=True, help="Use fewer initial states, and shorten the two long tests to a tenth."
)
# The option is eager, since callbacks of output files read it, in any order on the command line.
force_option = click.option(
    "--force",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, is_given: ctx.meta.update({FORCE: is_given}),
    help="Overwrite existing files.",
)


def forced() -> bool:
    """Return whether the command line has `--force`."""
    return bool(click.get_current_context().meta[FORCE])


def output(ctx: click.Context, param: click.Parameter, value: Path | None) -> Output | None:
    """Return the output file at `value`. As a click callback, it raises UsageError before the command begins."""
    return None if value is None else Output(value, ctx.meta[FORCE])


def output_option(*names: str, required: bool = False, help: str) -> Callable[[Function], Function]:  # noqa: A002
    """Return a click option for an output file, by default `--out`. The command also needs `force_option`."""
    names = names or ("--out", "-o")
    return click.option(*names, type=PATH, callback=output, required=required, metavar="FILE", help=help)


circuit_options = together(
    click.option("--periodic/--zero", default=None, help="The boundary of the grid [the file's, otherwise zero]."),
    click.option("--visible", type=int, metavar="V", help="The number of channels that form the image [the file's]."),
)
"""Options `--periodic/--zero` and `--visible`; None means the value in the circuit's file."""
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object per line, and nothing else.")
json_document_option = click.option("--json", "as_json", is_flag=True, help="One JSON document, and nothing else.")
"""Option `--json` of commands that print a single document."""

placement_option = click.option(
    "--placement",
    type=click.Choice(PLACINGS),
    help="How --engine auto chooses. auto [the default]: time the first epochs on the hardware GPU and the CPU engine, "
    "and store the faster one. gpu or cpu: no timing. sticky: the engine of the last run with the same model, task, "
    "batch and population.",
)
"""Option `--placement`, which `checked_placement` reads."""

agent_options = together(
    click.option("--algorithm", type=click.Choice(ALGORITHMS), help="How an agent learns [the preset's, or ppo]."),
    click.option("--policy", type=click.Choice(ACTORS), help="Gates, an automaton, or a network [the preset's]."),
    click.option("--steps", type=int, help="Total environment steps, or table rows, including those before --resume."),
)
"""Options for agents (`--steps` also for classifiers), which `cli.request.agents` reads."""

table_options = together(
    click.option("--label", metavar="COLUMN", help="Train a classifier for this column of --data, a table."),
    click.option("--test", type=PATH, metavar="FILE", help="A classifier's test set [a fifth of --data]."),
)
"""Options that apply to classifiers only."""


def megabytes(text: str) -> int:
    """Parse a positive number of MB and return the number of bytes (a click type)."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise click.BadParameter(f"{text!r} is not a positive number of MB.")
    return round(value * 1e6)


def grid_size(text: str) -> tuple[int, int]:
    """Parse WIDTHxHEIGHT in cells and return `(height, width)` (a click type)."""
    width, height = _parser(Size)(text)
    return height, width


def _parser(kind: Any) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return kind.parse(text)
        except UsageError as error:
            raise click.BadParameter(str(error)) from error

    return parse


def options_of(
    *groups: str,
    request: type = TrainRequest,
    without: Collection[str] = (),
    where: Callable[[Option], bool] = lambda _: True,
) -> Callable[[Function], Function]:
    """Return click options for the fields of `request` in `groups`, without those in `without` or rejected by `where`.

    Defaults are None for values, False for flags and empty for lists.
    """
    declared = [option for option in options(request) if option.group in groups and option.name not in without]
    return together(*(_option(option) for option in declared if where(option)))


def _option(declared: Option) -> Callable[[Any], Any]:
    kind, limits, name = declared.kind, declared.limits, declared.name
    settings: dict[str, Any] = {"metavar": declared.metavar, "help": declared.words, "default": None}
    if kind is bool:
        settings |= {"is_flag": True, "default": declared.default}
        # A flag that is on by default also has a `--no-` form.
        name = name if declared.default is False else f"{name}/--no-{name}"
    elif kind is Table or typing.get_origin(kind) is tuple:
        settings |= {"multiple": True, "default": (), "help": declared.words[:-1] + ". May be repeated."}
        name = name.removesuffix("s")
    elif limits is not None and limits.names:
        settings["type"] = click.Choice(list(map(str, limits.names)))
    elif declared.is_file or declared.is_local:
        settings["type"] = PATH
    else:
        settings["type"] = _parser(kind) if hasattr(kind, "parse") else kind
    if declared.flag is not None:
        settings |= {"is_flag": False, "flag_value": declared.flag}
    return click.option("--" + name.replace("_", "-"), declared.name, **settings)


# These values are decorators, from which click makes a new option for each command.
gpu_option = click.option("--gpu", is_flag=True, help="Same as --engine gpu.")
"""Option `--gpu`, which `engine_selector` reads with `--engine`."""

engine_options = together(
    gpu_option,
    options_of("run", where=lambda option: option.name == "engine"),
    click.option("--require-hardware", is_flag=True, help="Use only hardware GPUs."),
)
config_option = click.option(
    "--config", "config_file", type=PATH, metavar="FILE", help="A TOML configuration file, as `difflogic init` writes."
)

recipe_option = options_of("what", where=lambda option: option.name == "recipe")
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="SECTION.FIELD=VALUE",
    help="Set a field of the configuration. Write the value as in TOML. May be repeated.",
)

recording_options = together(
    click.option(
        "--recording-rule",
        "--film-rule",
        "film_rule",
        metavar="B3/S23|wireworld|brians-brain",
        help="The rule that animates a pattern [the file's rule]. Without --size, the grid is the file's, or a torus "
        "with 4 times the sides of the pattern.",
    ),
    click.option(
        "--frames",
        "--film-frames",
        "film_frames",
        type=click.IntRange(min=2),
        metavar="N",
        help="Use only the first N frames [all; 50 for a pattern].",
    ),
)
"""Options of recordings. The names with `film` are aliases from earlier versions."""

target_options = together(
    options_of("target"),
    click.option(
        "--from-recording",
        "--from-film",
        "from_recording",
        type=PATH,
        metavar="FILE",
        help="Learn the rule of a recording, .gif or .npy, or of a pattern (RLE, ...) that --recording-rule animates.",
    ),
    recording_options,
)
"""Options for the target and the initial state, which `cli.request` reads."""

field_options = together(
    click.option("--epochs", type=int, help="Epochs in total, including those before --resume."),
    click.option("--seed", type=int, help="The seed of the wiring, initial states and evaluation grids [23]."),
    click.option("--batch", type=int, help="Samples per epoch."),
    click.option("--eval-interval", type=int, help="Epochs between evaluations. Each one saves a checkpoint [50]."),
)
"""Options for single fields of the configuration, which `cli.request` reads."""
sweep_options = options_of("sweep", request=SweepRequest)

run_options = together(
    click.option(
        "--track",
        multiple=True,
        metavar="WHERE",
        help="Also log the run to tensorboard:DIR, mlflow:URI or wandb:PROJECT. May be repeated.",
    ),
    click.option("--out", "-o", type=PATH, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME]."),
    click.option(
        "--resume", type=PATH, metavar="DIR", help="Continue a run, bit-identical on the same device and driver."
    ),
    json_option,
)
"""Options for the run folder and the output of training on this machine."""

train_options = together(
    engine_options,
    placement_option,
    options_of("what", without=GIVEN_OTHERWISE),
    field_options,
    options_of("run", without=("engine",)),
    options_of("until"),
    click.option("--devices", metavar="LIST", help="Split a --population by speed, for example over gpu:0,cpu."),
    click.option("--log-interval", type=int, default=10, show_default=True, help="Epochs between log lines."),
    click.option("--max-memory", type=megabytes, metavar="MB", help="Maximum device memory (GPU engine)."),
    run_options,
)
"""Options of commands that train on this machine, which `cli.training.run` reads."""


def checked_placement(placement: Placing | None, selector: str | None, resume: bool) -> Placing:
    """Return the value of `--placement`, by default `auto`. Raises UsageError if other options choose the engine."""
    if placement is not None and selector not in (None, "auto"):
        raise UsageError(f"--placement requires --engine auto, got --engine {selector}: give only one of them.")
    if placement is not None and resume:
        raise UsageError("--placement cannot be used with --resume: omit it, or choose another engine with --engine.")
    return placement or "auto"


def engine_selector(engine: str | None, gpu: bool) -> str | None:
    """Return the selector that `--engine` or `--gpu` sets, or None. Raises UsageError if these options conflict."""
    if gpu and engine is not None and engine.partition(":")[0] != "gpu":
        raise UsageError(f"--gpu means --engine gpu, got --engine {engine} too: give only one of them.")
    return engine or ("gpu" if gpu else None)


def take_engine(options: dict[str, Any]) -> Engine | None:
    """Remove `engine_options` from a command's options, and return the selected engine, or None if none is selected."""
    from difflogic.devices import open as placement

    selector = engine_selector(options.pop("engine"), options.pop("gpu"))
    is_hardware = options.pop("require_hardware")
    if selector is None and not is_hardware:
        return None
    return placement.place(selector or "auto", is_hardware, trusted=True).engine


def show_choice(sentence: str) -> None:
    """Print `sentence`, which says which circuit of a run was chosen, on standard error, unless it is empty."""
    if sentence:
        echo(sentence, err=True)


@contextmanager
def service(command: str) -> Iterator[None]:
    """Raise MissingPackagesError if an import inside the `with` block fails because the extra `serve` is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        # If a module of difflogic itself is missing, the installation is damaged and no extra helps.
        if (error.name or "").partition(".")[0] == "difflogic":
            raise
        raise MissingPackagesError.of(f"`difflogic {command}`", "serve", error.name) from error


def client(command: str) -> Client:
    """Return a client for DIFFLOGIC_SERVER or the user's local server. Raises UsageError or MissingPackagesError."""
    with service(command):
        from difflogic.serve.client import Client

    return Client.from_environment()
