"""Arguments that select the preset or run for a command to examine: PRESET or RUN, and related options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from difflogic.cli.options import config_option, set_option, show_choice, together
from difflogic.cli.request import requested, written
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config.dataset import Dataset
    from difflogic.config.schema import Config
    from difflogic.runs.checkpoint import ModelState

work_options = together(
    click.argument("name", required=False, metavar="[PRESET|RUN]"),
    config_option,
    set_option,
    click.option("--batch", type=int, help="Samples per epoch [as configured]."),
)
"""Argument PRESET or RUN and the options `--config`, `--set` and `--batch`, which `work` reads."""


class Examined(NamedTuple):
    """Configuration to examine and, if it comes from a run, the run's model and samples."""

    config: Config
    model: ModelState | None = None
    data: Dataset | None = None


def is_asked(options: Mapping[str, Any]) -> bool:
    """Return whether the command line sets any of `work_options`."""
    return any(options[name] not in (None, ()) for name in ("name", "config_file", "assignments", "batch"))


def work(options: Mapping[str, Any]) -> Examined:
    """Return the preset, run or configuration that `work_options` select, by default the preset checkerboard.

    Raises UsageError or ConfigError, or for an unreadable run RunFolderError, CheckpointError or DataError.
    """
    from difflogic.config import presets
    from difflogic.config.customise import configure
    from difflogic.config.request import TrainRequest

    name = options["name"]
    if name is not None and name not in presets.PRESETS and (Path(name).name != name or Path(name).exists()):
        return _of_run(Path(name), options)
    if name is None and options["config_file"] is None:
        name = "checkerboard"
    # Measurements and memory plans use the recipe `paper`, so that they do not depend on other recipes.
    return Examined(configure(requested(TrainRequest, {**options, "preset": name}, recipe="paper")).config)


def _of_run(path: Path, options: Mapping[str, Any]) -> Examined:
    from difflogic.runs import chosen

    if others := [written(name) for name in ("config_file", "assignments") if options[name]]:
        raise UsageError(f"{path} is a run and has its own configuration: omit {others[0]}, or name a preset.")
    run = chosen.load(path)
    show_choice(run.told)
    batch = {} if options["batch"] is None else {"train": {"batch": options["batch"]}}
    return Examined(run.config.with_(**batch), run.model, run.data())
