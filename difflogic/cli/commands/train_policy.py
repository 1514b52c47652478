"""`difflogic train-policy`: `difflogic train` for agents, in any environment by its name."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import click

from difflogic.cli import options as shared
from difflogic.cli import training
from difflogic.errors import UsageError


@click.command("train-policy")
@click.argument("preset", required=False, metavar="[ENVIRONMENT]")
@shared.config_option
@shared.set_option
@shared.agent_options
@click.option("--seed", type=int, help="The seed of wiring, weights, episodes and actions [23].")
@shared.engine_options
@shared.options_of("run", "until", without=("engine",), where=attrgetter("of_agents"))
@shared.run_options
def command(**options: Any) -> int:
    """Train an agent on ENVIRONMENT: a preset or a registered name.

    Presets are cartpole, cartpole-automaton, cartpole-memory, acrobot, pendulum and lunarlander. `difflogic train` does
    the same, and takes names that end with -v and a number.

    By default the policy is a circuit of two-input gates. Observations become thermometer bits, and each action
    counts the bits of its group. The command writes a run folder with metrics, checkpoint, curve and summary. It
    also scores the agent on fresh episodes, beside random and constant agents. Ctrl-C stops after the current
    iteration, skips the evaluation, and saves a checkpoint, from which --resume continues. The command needs the
    extra `rl`.

    Example: difflogic train-policy cartpole
    """
    from difflogic.config.agent_presets import PRESETS

    if options["resume"] is None and [options["preset"], options["config_file"]].count(None) != 1:
        raise UsageError(
            f"Say what to train on: {', '.join(PRESETS)}, another environment's registered name, or --config FILE."
        )
    return training.run(options, takes_environments=True)
