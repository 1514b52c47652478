"""All commands that train on this machine share where a run computes, and how it ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflogic.cli.options import checked_placement, engine_selector
from difflogic.cli.request import agents, changes, limit, requested, said, written
from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import echo
from difflogic.config.request import TrainRequest
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config.choices import Placing
    from difflogic.config.policy import PolicyConfig
    from difflogic.config.schema import Config
    from difflogic.config.table import LabelledTable
    from difflogic.devices.open import Placement

FAILED = 1
SIGNAL_BASE = 128
"""A process ended by signal N returns 128 + N, by the shell's custom."""
WITH_RESUME = ("resume", "engine", "gpu", "epochs", "steps", "stop_when_solved", "within")
"""Options that a resumed run takes too, beside those of a `Launch` but `out`."""
OF_AGENTS = ("algorithm", "policy", "steps")
"""Options that mean nothing where automata are trained."""
OF_AUTOMATA = ("from_film", "placement", "devices", "max_memory")
"""Options that mean nothing where agents are trained, beside those of a request and of a configuration."""
ENVIRONMENT = re.compile(r"-v\d+$")
"""How a registered environment's name ends."""


@dataclass(frozen=True)
class Launch:
    """A launch says where and how a request is trained on this machine."""

    out: Path | None
    """The new run folder; None: a name is found for it."""
    require_hardware: bool
    as_json: bool
    placement: Placing = "auto"
    max_memory: int | None = None
    log_interval: int = 10
    devices: str | None = None
    """Several, which share a population."""
    track: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Launch:
        """The launch that a command's options ask for. Raises UsageError where there is nothing to choose."""
        selector = engine_selector(options["engine"], options["gpu"])
        resumed = options.get("resume") is not None
        placement = checked_placement(options.get("placement"), selector, resumed)
        if options.get("devices") is not None:
            if selector is not None or options["placement"] is not None:
                raise UsageError("--devices chooses the devices: drop --engine, --gpu and --placement.")
            if not resumed and (options["population"] or 1) < 2:
                raise UsageError("--devices distributes a population: give --population of 2 or more, or one --engine.")
        given = {each.name: options[each.name] for each in fields(cls) if each.name in options}
        return cls(**given | {"placement": placement})


def run(options: Mapping[str, Any], takes_environments: bool = False) -> int:
    """Train what `train_options` ask for, or go on with the run that `--resume` names; returns the exit code.

    `takes_environments`: whatever PRESET names that is no preset of agents is an environment. Raises what `start`
    raises.
    """
    selector = engine_selector(options["engine"], options["gpu"])
    # A run that goes on has a configuration already. Everything that would describe another one is refused; where and
    # how it is trained may change.
    launch, resume = Launch.of(options), options["resume"]
    if resume is None:
        if (table := _table(options)) is not None:
            options = {**options, "data": None, "label": None}
        request = _request(options, _agents(options, takes_environments, table), selector)
        return start(replace(request, table=table), launch)
    _check_resumed(resume, options)
    request = TrainRequest(
        config=_resumed_config(resume, options.get("epochs"), options.get("steps")),
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
    from difflogic.config.policy import PolicyConfig
    from difflogic.devices.choose import keep_last
    from difflogic.runs.folder import default_path
    from difflogic.train.run import Run
    from difflogic.train.run_request import run_request
    from difflogic.train.tracking import Several, tracked

    if resume is not None and request.within is not None:
        _check_within(resume)
    if not isinstance(request.config, PolicyConfig):
        made = configure(request)
        request = made.request
        sentences = [] if launch.as_json else [changes(made), limit(made)]
        for sentence in filter(None, sentences):
            echo(sentence)
    # The engine is opened before the folder is made: a machine without a GPU leaves no empty run folder behind.
    placement = replace(_placement(request, launch, resume), max_memory=launch.max_memory)
    out = launch.out or (None if resume else default_path(request.whole.name))
    whole = request.whole
    with sinks.choose(launch.as_json, whole.unit if isinstance(whole, PolicyConfig) else "epoch") as sink:
        reporter = TrainingReporter(sink, launch.log_interval)
        with tracked(*launch.track, tell=reporter.noticed) as tracking:
            trained = run_request(request, placement, out, resume, Several([reporter, tracking]))
        reporter.ended(trained)
    if isinstance(trained.run, Run):
        # For `--placement sticky`: the next run of this shape goes where this one was.
        keep_last(trained.run.config, len(trained.run.members), trained.run.engine)
    interrupted = trained.last.interrupted
    if isinstance(interrupted, int):
        return SIGNAL_BASE + interrupted
    return FAILED if trained.attempts is not None and trained.attempts.is_unsolved else 0


def _request(options: Mapping[str, Any], config: Config | PolicyConfig | None, selector: str | None) -> TrainRequest:
    """What a new run trains. Raises ConfigError, UsageError for what means nothing to it."""
    from difflogic.config.policy import PolicyConfig

    of_agents = isinstance(config, PolicyConfig)
    if given := [name for name in (OF_AUTOMATA if of_agents else OF_AGENTS) if options.get(name) is not None]:
        kind, what = ("automata", "agents") if of_agents else ("agents", "automata")
        raise UsageError(f"{written(given[0])} is for {kind}, and this trains {what}: drop it.")
    if not isinstance(config, PolicyConfig):
        return requested(TrainRequest, options, config, engine=selector)
    asked = said(options) | {"preset": None, "config": config, "engine": selector}
    return TrainRequest(**asked)


def _agents(options: Mapping[str, Any], takes_environments: bool, table: LabelledTable | None) -> PolicyConfig | None:
    """The configuration of agents that options ask for, by a preset, a file, an environment or a table.

    None where they ask for automata.
    """
    from difflogic.config.agent_presets import PRESETS, fitted, of_table

    name, base = options.get("preset"), None
    if table is not None:
        from difflogic.config.policy import PolicyConfig

        file = options["config_file"]
        base = of_table(table, None if file is None else PolicyConfig.load(file), options["population"] or 1)
    if name is not None and name not in PRESETS and (takes_environments or ENVIRONMENT.search(name)):
        from difflogic.policies.environments import of_name

        base = of_name(name, PRESETS)
    found = agents(options, name, base)
    if found is None:
        return None
    return fitted(found.with_(**{name: options[name] for name in OF_AGENTS if options.get(name) is not None}), table)


def _table(options: Mapping[str, Any]) -> LabelledTable | None:
    """The table whose `--label` is learned; None where there is none. Raises DataError, UsageError."""
    label: str | None = options.get("label")
    file: Path | None = options.get("data")
    if label is None and (file is None or file.suffix != ".csv"):
        return None
    if file is None or (label is not None and options["preset"] is not None):
        raise UsageError("--label is a column of a table: give --data FILE with it, and no PRESET.")
    from difflogic.config import table

    return table.load_table(file, label or table.label_of(file, ()))


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
        for name in ("epochs", "steps", "stop_when_solved"):
            if options.get(name) is not None:
                raise UsageError(
                    f"The attempts in {resume} share the epochs they began with, and cannot be changed: drop "
                    f"{written(name)}, or resume one of them alone, say {resume / 'attempt-1'}."
                )


def _resumed_config(resume: Path, epochs: int | None, steps: int | None) -> Config | PolicyConfig:
    """The run's own configuration; only the number of epochs, or of steps, may change. Raises UsageError."""
    from difflogic.config.policy import PolicyConfig
    from difflogic.runs import attempts, checkpoint

    if attempts.is_in(resume):
        return attempts.read(resume).config
    config = checkpoint.config_of(resume)
    unit, total, other = "epochs", epochs, steps
    if isinstance(config, PolicyConfig):
        unit, total, other = "steps", steps, epochs
    if other is not None:
        raise UsageError(f"The run in {resume} is counted in {unit}: give --{unit}.")
    return config if total is None else config.with_epochs(total)


def _placement(request: TrainRequest, launch: Launch, resume: Path | None) -> Placement:
    """The engine asked for, else what `--placement` chooses; for a resumed run the one it ran on."""
    from difflogic.config.policy import PolicyConfig
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
    if isinstance(config := request.whole, PolicyConfig):
        # Networks this small are trained sooner on the processor.
        selector = "cpu" if request.engine in (None, "auto") and not launch.require_hardware else request.engine
        return placement.place(selector or "auto", launch.require_hardware, trusted=True)
    # Only a new run is measured. One that goes on stays on its engine, since another one may round its sums otherwise.
    if resume is None and request.engine in (None, "auto"):
        return choose.place_run(config, max(1, request.population), launch.placement, launch.require_hardware)
    return placement.place(request.engine or "auto", launch.require_hardware, trusted=True)
