"""All commands that train on this machine share where a run computes, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import checked_policy, engine_selector
from difflogic.cli.request import changes, requested, written
from difflogic.cli.screen import sinks
from difflogic.config.request import TrainRequest
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config.choices import Policy
    from difflogic.config.schema import Config
    from difflogic.devices.open import Placement

FAILED = 1
SIGNAL_BASE = 128
"""A process ended by signal N returns 128 + N, by the shell's custom."""
WITH_RESUME = ("resume", "engine", "gpu", "epochs", "stop_when_solved", "within")
"""Options that a resumed run takes too, beside those of a `Launch` but `out`."""


@dataclass(frozen=True)
class Launch:
    """A launch says where and how a request is trained on this machine."""

    out: Path | None
    """The new run folder; None: a name is found for it."""
    require_hardware: bool
    policy: Policy
    max_memory: int | None
    log_interval: int
    as_json: bool
    devices: str | None = None
    """Several, which share a population."""
    track: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Launch:
        """The launch that a command's options ask for. Raises UsageError where the policy has nothing to choose."""
        selector = engine_selector(options["engine"], options["gpu"])
        resumed = options.get("resume") is not None
        policy = checked_policy(options["policy"], selector, resumed)
        if options.get("devices") is not None:
            if selector is not None or options["policy"] is not None:
                raise UsageError("--devices chooses the devices: drop --engine, --gpu and --policy.")
            if not resumed and (options["population"] or 1) < 2:
                raise UsageError("--devices distributes a population: give --population of 2 or more, or one --engine.")
        given = {each.name: options[each.name] for each in fields(cls) if each.name in options}
        return cls(**given | {"policy": policy})


def run(options: Mapping[str, Any], config: Config | None = None) -> int:
    """Train what `train_options` ask for, or go on with the run that `--resume` names; returns the exit code.

    `config` stands for PRESET and `--config`. Raises what `start` raises.
    """
    selector = engine_selector(options["engine"], options["gpu"])
    # A run that goes on has a configuration already. Everything that would describe another one is refused; where and
    # how it is trained may change.
    launch, resume = Launch.of(options), options["resume"]
    if resume is None:
        return start(requested(TrainRequest, options, config, engine=selector), launch)
    _check_resumed(resume, options)
    request = TrainRequest(
        config=_resumed_config(resume, options["epochs"]),
        engine=selector,
        stop_when_solved=options["stop_when_solved"] or 0,
        # Whether it goes on until it is solved stands in its folder; a limit can only be of one that does.
        until_solved=options["within"] is not None,
        within=options["within"],
    )
    return start(request, launch, resume)


def start(request: TrainRequest, launch: Launch, resume: Path | None = None) -> int:
    """Train a request, or with it go on with the run in a folder; returns the exit code.

    Raises the errors of `Trainer.run`, UsageError where options contradict each other.
    """
    from difflogic.cli.screen.training import TrainingReporter
    from difflogic.config.customise import configure
    from difflogic.devices.choose import keep_last
    from difflogic.runs.folder import default_path
    from difflogic.train.run_request import run_request
    from difflogic.train.tracking import Several, tracked

    if resume is not None and request.within is not None:
        _check_within(resume)
    made = configure(request)
    if (sentence := changes(made)) and not launch.as_json:
        click.echo(sentence)
    # The engine is opened before the folder is made: a machine without a GPU leaves no empty run folder behind.
    placement = replace(_placement(request, made.config, launch, resume), max_memory=launch.max_memory)
    out = launch.out or (None if resume else default_path(made.config.name))
    with sinks.choose(launch.as_json, "epoch") as sink:
        reporter = TrainingReporter(sink)
        with tracked(*launch.track, tell=reporter.noticed) as tracking:
            observer = Several([reporter, tracking])
            trained = run_request(request, made.config, placement, out, resume, launch.log_interval, observer)
        reporter.ended(trained)
    # For `--policy sticky`: the next run of this shape goes where this one was.
    keep_last(trained.run.config, len(trained.run.members), trained.run.engine)
    interrupted = trained.last.interrupted
    if isinstance(interrupted, int):
        return SIGNAL_BASE + interrupted
    return FAILED if trained.attempts is not None and trained.attempts.is_unsolved else 0


def _check_within(resume: Path) -> None:
    """Raises UsageError where the run that goes on has no limit."""
    from difflogic.runs import attempts

    if not attempts.is_in(resume) or attempts.read(resume).restarts is not None:
        raise UsageError(f"--within limits training until solved, which {resume} does not: drop it.")


def _check_resumed(resume: Path, options: Mapping[str, Any]) -> None:
    """Raises UsageError for options that describe a run: a resumed one has been described."""
    from difflogic.runs import attempts

    taken = {*WITH_RESUME, *(each.name for each in fields(Launch))} - {"out"}
    # Compared with what click gives where an option was left out: None, False, an empty list, or 0 for a padding.
    given = [name for name, value in options.items() if name not in taken and value not in (None, False, (), 0)]
    if given:
        names = ", ".join(map(written, given))
        raise UsageError(f"--resume continues a run as it was configured: drop {names}.")
    if attempts.is_in(resume):
        for name in ("epochs", "stop_when_solved"):
            if options[name] is not None:
                raise UsageError(
                    f"The attempts in {resume} share the epochs they began with, and cannot be changed: drop "
                    f"{written(name)}, or resume one of them alone, say {resume / 'attempt-1'}."
                )


def _resumed_config(resume: Path, epochs: int | None) -> Config:
    """The run's own configuration; only the number of epochs may change."""
    from difflogic.runs import attempts, checkpoint

    if attempts.is_in(resume):
        return attempts.read(resume).config
    config = checkpoint.read(resume).members[0].config
    return config if epochs is None else config.with_(train={"epochs": epochs})


def _placement(request: TrainRequest, config: Config, launch: Launch, resume: Path | None) -> Placement:
    """The engine asked for, else what the policy chooses; for a resumed run the one it ran on."""
    from difflogic.devices import choose
    from difflogic.devices import open as placement
    from difflogic.runs import checkpoint, chosen, manifest

    earlier = None
    if resume is not None:
        earlier = manifest.last_engine(manifest.read(checkpoint.locate(chosen.run_folder(resume)).parent))
    if launch.devices is not None:
        return placement.share([each.strip() for each in launch.devices.split(",")], earlier, launch.require_hardware)
    if request.engine is None and resume is not None:
        return placement.place_again(earlier, launch.require_hardware, trusted=True)
    # Only a new run is measured. One that goes on stays on its engine, since another one may round its sums otherwise.
    if resume is None and request.engine in (None, "auto"):
        return choose.place_run(config, max(1, request.population), launch.policy, launch.require_hardware)
    return placement.place(request.engine or "auto", launch.require_hardware, trusted=True)
