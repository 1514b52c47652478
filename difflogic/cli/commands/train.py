"""`difflogic train`, `train-checkerboard`, `train-policy` and `harden`: train on this machine."""

from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from difflogic.cli import options as shared
from difflogic.cli import training
from difflogic.config.follow_ups import HardenRequest
from difflogic.errors import UsageError


@click.command("train", cls=shared.TrainingCommand)
@click.argument("preset", required=False)
@shared.config_option
@shared.set_option
@shared.target_options
@shared.agent_options
@shared.table_options
@shared.train_options
def command(**options: Any) -> int:
    """Train a preset, a configuration file, your own image or rule, a classifier, or an agent.

    \b
    Example: difflogic train checkerboard --gpu
    Example: difflogic train --target cat.png --size 24x24 --within 10m
    Example: difflogic train --data species.csv --label species

    PRESET is a name that `difflogic presets` lists, or the name of an environment, such as Acrobot-v1. The command
    prints the settings that the options change. It writes a run folder with metrics, checkpoint, circuit, images and
    summary; for a --population those of the best model, the metrics of all, and the success rate. Ctrl-C stops after
    the current epochs and saves a checkpoint, from which --resume continues.

    With --label each row of the table --data is a sample. Thresholds turn its numbers into bits. The accuracy on a
    fifth of the rows, which is held out, or on the rows of --test, is printed at the end. The best model of a
    --population is chosen by validation rows, which are not learned either. Tables may be compressed as .gz.
    """  # noqa: D301
    return training.run(options)


@click.command("train-checkerboard", cls=shared.TrainingCommand)
@shared.train_options
@click.option("--small", is_flag=True, help="Use the model with 1496 gates instead of 3040.")
def checkerboard(**options: Any) -> int:
    """Train the paper's checkerboard: a 16x16 board grown from noise in 20 steps by logic gates.

    \b
    Example: difflogic train-checkerboard --gpu --epochs 500
    Example: difflogic train-checkerboard --small --until-solved
    Example: difflogic train-checkerboard --recipe paper --seed 7

    This is short for `difflogic train checkerboard`, whose help describes the run folder and --resume.
    """  # noqa: D301
    if options["resume"] is None:
        options["preset"] = "checkerboard-small" if options["small"] else "checkerboard"
    return training.run(options)


@click.command("train-policy", cls=shared.TrainingCommand)
@click.argument("preset", required=False, metavar="[ENVIRONMENT]")
@shared.config_option
@shared.set_option
@shared.agent_options
@click.option("--seed", type=int, help="The seed of wiring, weights, episodes and actions [23].")
@shared.engine_options
@shared.options_of("run", "until", without=("engine",), where=attrgetter("of_agents"))
@shared.run_options
def policy(**options: Any) -> int:
    """Train an agent on ENVIRONMENT: a preset or a registered name. The command needs the extra `rl`.

    \b
    Example: difflogic train-policy cartpole
    Example: difflogic train-policy cartpole --until-solved
    Example: difflogic train-policy Acrobot-v1 --policy mlp --steps 300000

    Presets are cartpole, cartpole-automaton, cartpole-memory, acrobot, pendulum and lunarlander. By default the policy
    is a circuit of two-input gates. Observations become thermometer bits, and each action counts the bits of its group.
    The command writes a run folder with metrics, checkpoint, curve and summary, and scores the agent on new episodes,
    compared with random and constant agents. Ctrl-C saves a checkpoint, from which --resume continues.
    """  # noqa: D301
    from difflogic.config.agent_presets import PRESETS

    if options["resume"] is None and [options["preset"], options["config_file"]].count(None) != 1:
        raise UsageError(f"Name an environment: {', '.join(PRESETS)}, another registered name, or --config FILE.")
    return training.run(options, takes_environments=True)


@click.command("harden", cls=shared.TrainingCommand)
@click.argument("run", type=shared.PATH)
@shared.engine_options
@shared.placement_option
@shared.options_of("harden", request=HardenRequest)
@click.option("--eval-interval", type=int, help="Epochs between evaluations. Each one saves a checkpoint [10].")
@click.option("--log-interval", type=int, default=10, show_default=True, help="Epochs between log lines.")
@click.option("--out", "-o", type=shared.PATH, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME].")
@click.option("--max-memory", type=shared.megabytes, metavar="MB", help="Maximum device memory (GPU engine).")
@shared.json_option
def harden(run: Path, search: bool, **options: Any) -> int:
    """Continue training RUN with more and more hard gates, until all gates have converged.

    \b
    Example: difflogic harden runs/NAME
    Example: difflogic harden runs/NAME --search --epochs 1000

    The new run begins with RUN's logits and wiring (for a population, the best model's), at half of its first learning
    rate. More and more gates are evaluated as their most probable function. Training ends at the first evaluation
    without a wrong cell; each unconverged gate then becomes its most probable function. RUN does not change.

    With --search no logits are trained: gates of the hard circuit change their function one at a time, and a change is
    accepted if the number of wrong cells does not grow. This can repair a nearly correct run. Its gates stay
    unconverged.
    """  # noqa: D301
    from difflogic.train.run_request import hardening_request

    selector = shared.engine_selector(options["engine"], options["gpu"])
    request = hardening_request(run, search, options["epochs"], options["eval_interval"], engine=selector)
    return training.start(request, options)
