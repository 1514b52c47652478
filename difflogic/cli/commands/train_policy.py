"""`difflogic train-policy`: an agent whose policy is a logic circuit."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import options as shared
from difflogic.cli.request import parse, written
from difflogic.cli.training import FAILED, SIGNAL_BASE
from difflogic.config.choices import ACTORS, ALGORITHMS
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.cli.screen.policies import PolicyReporter
    from difflogic.config.policy import PolicyConfig
    from difflogic.config.request import Within
    from difflogic.devices.device import Device


@click.command("train-policy")
@click.argument("environment", required=False)
@shared.config_option
@shared.set_option
@click.option("--algorithm", type=click.Choice(ALGORITHMS), help="How the agent learns [the preset's, else ppo].")
@click.option(
    "--policy",
    type=click.Choice(ACTORS),
    help="The kind of policy: gates, an automaton of gates, or a neural network [logic].",
)
@click.option("--steps", type=int, help="Environment steps in total, including those before --resume.")
@click.option("--seed", type=int, help="The seed of wiring, weights, episodes and actions [23].")
@shared.engine_options
@shared.options_of("run", "until", without=("engine",), where=attrgetter("of_agents"))
@click.option("--out", "-o", type=shared.PATH, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME].")
@click.option(
    "--resume",
    type=shared.PATH,
    metavar="DIR",
    help="Continue the run in this folder, bit for bit on the same device and driver.",
)
@shared.json_option
def command(environment: str | None, resume: Path | None, out: Path | None, as_json: bool, **options: Any) -> int:
    """Train an agent on ENVIRONMENT: a preset or a registered name.

    Presets are cartpole, cartpole-automaton, acrobot, pendulum and lunarlander.

    By default the policy is a circuit of two-input gates. Observations become thermometer bits, and each action
    counts the bits of its group. The command writes a run folder with metrics, checkpoint, curve and summary. It
    also scores the agent on fresh episodes, beside random and constant agents. Ctrl-C stops after the current
    iteration, skips the evaluation, and saves a checkpoint, from which --resume continues. The command needs the
    extra `rl`.

    Example: difflogic train-policy cartpole
    """
    from difflogic.cli.screen import sinks
    from difflogic.cli.screen.policies import PolicyReporter
    from difflogic.devices.device import Device
    from difflogic.policies.training import PolicyTrainer
    from difflogic.runs.folder import default_path

    config = _resumed(environment, resume, options) if resume else _configured(environment, options)
    device = Device(shared.engine_selector(options["engine"], options["gpu"]) or "cpu")
    if options["require_hardware"] and device.kind != "hardware":
        raise UsageError(f"--require-hardware refuses {device.described()}: give --engine gpu, or drop it.")
    stop_when_solved, population = options["stop_when_solved"] or 0, options["population"]
    trainer = PolicyTrainer(config, device)
    _check_until(options, resume)
    with sinks.choose(as_json, "step") as sink:
        reporter = PolicyReporter(sink)
        if options["until_solved"]:
            return _until_solved(config, device, out or default_path(config.name), options["within"], reporter)
        if resume is not None:
            run = trainer.resume(resume, stop_when_solved, reporter)
        else:
            run = trainer.run(
                out or default_path(config.name),
                1 if population is None else population,
                stop_when_solved,
                reporter,
                init_from=options["init_from"],
            )
    return SIGNAL_BASE + run.interrupted if isinstance(run.interrupted, int) else 0


def _check_until(options: dict[str, Any], resume: Path | None) -> None:
    """Raises UsageError for what does not go with `--until-solved`, or means nothing without it."""
    if not options["until_solved"]:
        if options["within"] is not None:
            raise UsageError("--within limits --until-solved: give both, or --steps.")
        return
    others = [name for name in ("population", "stop_when_solved", "init_from") if options[name] is not None]
    if others or resume is not None:
        drop = "--resume" if resume is not None else written(others[0])
        raise UsageError(f"--until-solved trains one seed after the other, each to its first solution: drop {drop}.")
    if options["within"] is not None and options["within"].epochs is not None:
        raise UsageError("--within of agents is a time, say 60s, 5m or 2h: --steps limits each attempt.")


def _until_solved(
    config: PolicyConfig, device: Device, out: Path, within: Within | None, reporter: PolicyReporter
) -> int:
    from difflogic.policies.until_solved import until_solved

    found = until_solved(config, device, out, None if within is None else within.seconds, reporter)
    tried = "1 attempt" if found.attempts == 1 else f"{found.attempts} attempts"
    word = "Solved" if found.best.solved else "NOT solved"
    reporter.noticed(f"{word} in {tried}: the best agent, of seed {found.best.config.seed}, is in {out}.")
    if isinstance(found.last.interrupted, int):
        return SIGNAL_BASE + found.last.interrupted
    return 0 if found.best.solved else FAILED


def _configured(environment: str | None, options: dict[str, Any]) -> PolicyConfig:
    """The configuration that is asked for. Raises ConfigError, UsageError."""
    from difflogic.config.agent_presets import PRESETS
    from difflogic.config.policy import PolicyConfig
    from difflogic.policies.environments import of_name

    file = options["config_file"]
    if [environment, file].count(None) != 1:
        raise UsageError(
            f"Say what to train on: {', '.join(PRESETS)}, another environment's registered name, or --config FILE."
        )
    if environment is None:
        config = PolicyConfig.load(file)
    elif environment in PRESETS:
        config = PRESETS[environment]
    else:
        config = of_name(environment, PRESETS)
    given = {name: options[name] for name in ("algorithm", "policy", "steps", "seed") if options[name] is not None}
    return config.with_(**given, **parse(options["assignments"]))


def _resumed(environment: str | None, resume: Path, options: dict[str, Any]) -> PolicyConfig:
    """The configuration of the run that continues; only its steps may change. Raises UsageError, CheckpointError."""
    from difflogic.policies import checkpoint

    names = ("environment", "config_file", "assignments", "algorithm", "policy", "seed", "population", "init_from")
    given = [
        written(name) for name, value in {"environment": environment, **options}.items() if name in names and value
    ]
    if given:
        raise UsageError(f"--resume continues a run as it was configured: drop {', '.join(given)}.")
    config = checkpoint.read(resume).config
    return config if options["steps"] is None else config.with_(steps=options["steps"])
