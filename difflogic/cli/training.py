"""Training on this machine, for all commands that train: build the request, open the engine, report the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflogic.cli.options import checked_placement, engine_selector
from difflogic.cli.request import agents, changes, limit, request_fields, requested, written
from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import FAILED, echo
from difflogic.config.request import TrainRequest
from difflogic.errors import UsageError
from difflogic.system.files import quoted

if TYPE_CHECKING:
    from difflogic.config.policy import PolicyConfig
    from difflogic.config.table import LabelledTable
    from difflogic.devices.open import Placement

SIGNAL_BASE = 128
"""Offset of exit codes: a process that signal N ends has the exit code SIGNAL_BASE + N."""
WITH_RESUME = (
    "resume", "engine", "gpu", "require_hardware", "devices", "placement", "max_memory", "epochs", "steps",
    "stop_when_solved", "within", "log_interval", "track", "as_json",
)  # fmt: skip
"""Options that are allowed with `--resume`."""


def run(options: Mapping[str, Any], takes_environments: bool = False) -> int:
    """Train with a command's options (`train_options`), or continue the run of `--resume`; return the exit code.

    If `takes_environments`, PRESET may be any registered environment. Raises the errors of `start`.
    """
    selector, resume = engine_selector(options["engine"], options["gpu"]), options["resume"]
    checked_placement(options.get("placement"), selector, resume is not None)
    if resume is None:
        config, table, others = policy(options, takes_environments)
        if config is None:
            return start(requested(TrainRequest, others, engine=selector), options)
        fields = request_fields(others) | {"preset": None, "config": config, "engine": selector, "table": table}
        return start(TrainRequest(**fields), options)
    # Other options are rejected if their value is not the default of click.
    if given := [name for name in options if name not in WITH_RESUME and options[name] not in (None, False, (), 0)]:
        names = ", ".join(map(written, given))
        raise UsageError(f"--resume continues a run as it was configured: omit {names}.")
    from difflogic.train.run_request import resumed

    changed = {name: options.get(name) for name in ("epochs", "steps", "stop_when_solved", "within")}
    return start(resumed(resume, engine=selector, **changed), options, resume)


def start(request: TrainRequest, options: Mapping[str, Any], resume: Path | None = None) -> int:
    """Train a request, or continue the run in the folder `resume`; return the exit code.

    `options` select the devices and the reports. Raises UsageError and the errors of `Trainer.run`.
    """
    from difflogic.cli.screen.training import TrainingReporter
    from difflogic.config.customise import configure
    from difflogic.config.policy import PolicyConfig
    from difflogic.devices.choose import keep_last
    from difflogic.runs.folder import default_path
    from difflogic.train.run import Run
    from difflogic.train.run_request import run_request
    from difflogic.train.tracking import Several, tracked

    as_json, sentences = options["as_json"], list[str]()
    if resume is None and not isinstance(request.config, PolicyConfig):
        configured = configure(request)
        request = configured.request
        samples, advice = options.get("from_recording") or options.get("data"), ""
        if samples is not None:
            command = f"difflogic build {quoted(samples)}"
            advice = f"Without training, {command} finds their rule in seconds if a simple one exists."
        sentences = [] if as_json else list(filter(None, (changes(configured), advice, limit(configured))))
    # The engine is opened first, so that no empty run folder is left on a machine without a GPU.
    placement = replace(_placement(request, options, resume), max_memory=options.get("max_memory"))
    for sentence in sentences:
        echo(sentence)
    config = request.whole
    out = options["out"] or (None if resume else default_path(config.name))
    with sinks.choose(as_json, config.unit) as sink:
        reporter = TrainingReporter(sink, options.get("log_interval", TrainingReporter.log_interval))
        with tracked(*options.get("track", ()), warn=reporter.noticed) as tracking:
            trained = run_request(request, placement, out, resume, Several([reporter, tracking]))
        reporter.ended(trained)
    if isinstance(trained.run, Run):
        # `--placement sticky` later reads this engine.
        keep_last(trained.run.config, len(trained.run.members), trained.run.engine)
    interrupted = trained.last.interrupted
    if isinstance(interrupted, int):
        return SIGNAL_BASE + interrupted
    return FAILED if trained.attempts is not None and trained.attempts.is_unsolved else 0


def policy(
    options: Mapping[str, Any], takes_environments: bool = False
) -> tuple[PolicyConfig | None, LabelledTable | None, Mapping[str, Any]]:
    """Return the configuration of agents or a classifier, its table (both may be None), and the remaining options.

    Raises DataError or UsageError.
    """
    from difflogic.config.agent_presets import fitted, of_table
    from difflogic.config.policy import PolicyConfig
    from difflogic.policies import environments

    name, base, table = options.get("preset"), None, _table(options)
    if table is not None:
        if options.get("algorithm"):
            raise UsageError("--algorithm is for agents, but this trains a classifier: omit it.")
        file, options = options["config_file"], {**options, "data": None, "label": None, "test": None}
        base = None if file is None else PolicyConfig.load(file)
        base = of_table(table, base, options["population"] or 1, options["steps"])
    config = agents(options, name, environments.of_preset(name, takes_environments) or base)
    return (None if config is None else fitted(config, table)), table, options


def _table(options: Mapping[str, Any]) -> LabelledTable | None:
    """Return the classifier's table of `--data`, `--label` and `--test`, or None. Raises DataError or UsageError."""
    from difflogic.config import table

    label, file, test = (options.get(name) for name in ("label", "data", "test"))
    if label is None and test is None and (file is None or not table.is_table(file)):
        return None
    if file is None or options["preset"] is not None:
        name = "--label" if test is None else "--test"
        raise UsageError(f"{name} requires a table: give --data FILE, and no PRESET.")
    label = label or table.label_of(file, ())
    rows = table.load_table(file, label)
    return rows if test is None else rows.with_test(table.load_table(test, label))


def _placement(request: TrainRequest, options: Mapping[str, Any], resume: Path | None) -> Placement:
    """Return the selected engine, or the one that `--placement` chooses; by default, a resumed run keeps its engine.

    Raises UsageError if options contradict each other.
    """
    from difflogic.config.policy import PolicyConfig
    from difflogic.devices import choose
    from difflogic.devices import open as opening
    from difflogic.train.run_request import last_engine

    selector, only_hardware, devices = request.engine, options["require_hardware"], options.get("devices")
    placing = checked_placement(options.get("placement"), selector, resume is not None)
    if devices is not None and (selector is not None or options["placement"] is not None):
        raise UsageError("--devices cannot be used with --engine, --gpu or --placement: omit them.")
    if devices is not None and resume is None and request.population < 2:
        raise UsageError("--devices requires a population: give --population of 2 or more, or use --engine instead.")
    earlier = None if resume is None else last_engine(resume)
    if devices is not None:
        return opening.share([device.strip() for device in devices.split(",")], earlier, only_hardware)
    if selector is None and resume is not None:
        return opening.place_again(earlier, only_hardware, trusted=True)
    if isinstance(config := request.whole, PolicyConfig):
        # Networks of agents are small and train faster on the CPU.
        selector = "cpu" if selector in (None, "auto") and not only_hardware else selector
        return opening.place(selector or "auto", only_hardware, trusted=True)
    # A resumed run stays on its engine, since another engine may round sums differently.
    if resume is None and selector in (None, "auto"):
        return choose.place_run(config, max(1, request.population), placing, only_hardware)
    return opening.place(selector or "auto", only_hardware, trusted=True)
