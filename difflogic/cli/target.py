"""What to train: a preset or file, with a target, start and fields of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from difflogic.cli.options import picture_size
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config import Config

Function = TypeVar("Function", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)


def config_option(function: Function) -> Function:
    """`--config`, which reaches the command as `config_file`."""
    return click.option(
        "--config", "config_file", type=FILE, metavar="FILE", help="A TOML file, as `difflogic init` writes it."
    )(function)


def set_option(function: Function) -> Function:
    """`--set`, which reaches the command as `assignments`."""
    return click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="SECTION.FIELD=VALUE",
        help="Any field of the configuration, the value as in TOML; may be given more than once.",
    )(function)


def target_options(function: Function) -> Function:
    """`--target` and all that goes with it; `configured` reads them."""
    for option in (
        click.option("--padding", type=click.IntRange(0, 64), default=0, help="Empty cells on each side of a target."),
        click.option(
            "--threshold",
            type=click.FloatRange(0, 1, max_open=True),
            help="A bit of a picture is 1 above this share of full light [0.26 in 2 colours, 0.5 in 8].",
        ),
        click.option(
            "--size", type=picture_size, metavar="WIDTHxHEIGHT", help="Scale pictures down to fit into so many cells."
        ),
        click.option(
            "--colors",
            type=click.Choice(["2", "8", "64"]),
            help="Colours of a picture, in 1, 3 or 6 channels [as many as the preset's loss channels carry].",
        ),
        click.option(
            "--start", metavar="random|boards|seed|zeros|PICTURE", help="What each sample starts from, or a picture."
        ),
        click.option(
            "--rule-table",
            type=FILE,
            metavar="FILE",
            help="A rule to learn, as 512 digits 0 and 1, as 128 hexadecimal digits, or as .npy.",
        ),
        click.option("--rule", metavar="B3/S23", help="A life-like rule to learn in one step."),
        click.option("--target", type=FILE, metavar="PICTURE", help="A picture to grow, of at most 128x128 cells."),
    ):
        function = option(function)
    return function


def work_options(function: Function) -> Function:
    """PRESET, `--config`, `--set`, `--small` and `--batch`, for commands that look at training; `work` reads them."""
    for option in (
        click.option("--batch", type=int, help="So many samples per epoch [the preset's]."),
        click.option("--small", is_flag=True, help="The same as checkerboard-small: 1496 gates instead of 3040."),
        set_option,
        config_option,
        click.argument("preset", required=False),
    ):
        function = option(function)
    return function


def work(options: Mapping[str, Any]) -> Config:
    """A preset, the paper's checkerboard where none is named, or a file; with fields changed.

    Raises UsageError where they are named twice, ConfigError.
    """
    from difflogic import presets
    from difflogic.cli import settings
    from difflogic.config import Config
    from difflogic.train.wanted import applied

    preset, file = options["preset"], options["config_file"]
    if (preset is not None) + (file is not None) + options["small"] > 1:
        raise UsageError("There is one thing to train: give a PRESET, --config FILE or --small, not several.")
    if file is not None:
        config = Config.load(file)
    elif preset is not None:
        config = presets.get(preset)
    else:
        config = presets.checkerboard(options["small"])
    return applied(config, settings.asked(options))


def configured(options: Mapping[str, Any]) -> tuple[Config, str]:
    """The configuration, and a sentence on what a target or start changed in it, empty where nothing.

    Raises ConfigError, DataError, UsageError.
    """
    from difflogic import presets
    from difflogic.cli import settings
    from difflogic.config import Config
    from difflogic.train import wanted
    from difflogic.train.retarget import Wishes

    file = options["config_file"]
    base = presets.get(options["preset"]) if file is None else Config.load(file)
    fields = settings.asked(options)
    colors = options["colors"]
    wishes = Wishes(
        **{name: options[name] for name in ("target", "rule", "rule_table", "start", "size", "threshold", "padding")},
        colors=None if colors is None else int(colors),
    )
    config, found = wanted.configured(base, wishes, fields, keep_grid=file is not None)
    return config, _told(base, config, found)


def _told(base: Config, config: Config, found: Mapping[str, Mapping[str, Any]]) -> str:
    changes = list(_differences(base, config, found))
    return f"Changed for it: {', '.join(changes)}" if changes else ""


def _differences(base: Config, config: Config, found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for section, fields in found.items():
        for field in fields:
            before, after = (getattr(getattr(each, section), field) for each in (base, config))
            if before != after:
                yield f"{field} {_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return f"of {len(value[0])}x{len(value)} cells"
    if isinstance(value, tuple | str):
        return "(none)" if not value else value if isinstance(value, str) else str(list(value))
    return str(value).lower()
