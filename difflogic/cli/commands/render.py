"""`difflogic render`: draw the rollout, the gates or the losses of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import options as shared
from difflogic.cli.request import written
from difflogic.cli.screen.echo import echo
from difflogic.config.choices import BOUNDARIES, DRAWINGS
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.evaluation.render import RenderSpec
    from difflogic.evaluation.rollout import DamagePlan
    from difflogic.system.files import Output

ASYNCHRONOUS = 0.6
"""Default fire rate of asynchronous rollouts, as in the paper."""
OF_EPISODES = ("steps", "seed", "frame_ms")
"""Options that also apply to the drawing of an agent's episode."""
FRAME_MS = 40


def step_list(text: str) -> list[int]:
    """Parse `12`, `0,5,10`, `1-40` or a mixture as ascending steps (a click type)."""
    # Numbers have at most seven digits, so that `1-999999999` does not fill the memory.
    if not re.fullmatch(r"\d{1,7}(-\d{1,7})?(,\d{1,7}(-\d{1,7})?)*", text):
        raise click.BadParameter(f"{text!r} is not a list of steps: expected, for example, 12, 0,5,10 or 1-40.")
    steps: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        steps.update(range(int(first), int(last or first) + 1))
    if not steps:
        raise click.BadParameter(f"{text!r} is not a list of steps: write the lower end of a range first.")
    return sorted(steps)


def damage_position(text: str) -> Any:
    """Parse the position of damage: `centre`, `random` or `ROW,COLUMN` (a click type)."""
    if text in ("centre", "random"):
        return text
    if not re.fullmatch(r"\d{1,7},\d{1,7}", text):
        raise click.BadParameter(f"{text!r} is not a position: expected centre, random, or ROW,COLUMN, such as 0,12.")
    return tuple(map(int, text.split(",")))


def channel(text: str) -> Any:
    """Parse the channels to draw: `loss`, `all`, or the number of a channel (a click type)."""
    if text in ("loss", "all"):
        return text
    if not text.isascii() or not text.isdigit():
        raise click.BadParameter(f"{text!r} is not a channel: expected loss, all, or a number.")
    return int(text)


@click.command("render")
@click.argument("run", type=shared.PATH)
@shared.output_option(required=True, help="The file to write. .gif and .apng are animations. .png is a strip of steps.")
@click.option(
    "--what",
    type=click.Choice(DRAWINGS),
    default="rollout",
    show_default=True,
    help="rollout: the running automaton. gates: the gate functions in each layer. loss: the loss curves.",
)
@click.option("--member", type=int, metavar="N", help="For a population: use the N-th model [the best].")
@click.option("--size", type=shared.grid_size, metavar="WIDTHxHEIGHT", help="Use another grid [the run's].")
@click.option("--steps", type=click.IntRange(min=1), help="CA steps [the run's].")
@click.option("--start", metavar="random|seed|zeros|FILE", help="The initial state; FILE: .npy or image [the run's].")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of initial state, masks and damage [the run's].")
@click.option("--async", "asynchronous", is_flag=True, help="Update each cell with probability 0.6.")
@click.option("--fire-rate", type=click.FloatRange(0, 1, min_open=True), help="The fire rate of cells [the run's].")
@click.option(
    "--rollouts",
    type=click.IntRange(1, 16),
    metavar="N",
    help="Draw N rollouts from the same initial state side by side, with different cells updated in each [1].",
)
@click.option("--boundary", type=click.Choice(BOUNDARIES), help="The boundary of the grid [the run's].")
@click.option("--damage", type=click.IntRange(min=1), metavar="SIDE", help="Set a square with this side to zero.")
@click.option("--damage-at", type=damage_position, metavar="centre|random|ROW,COL", help="Its position [centre].")
@click.option("--damage-steps", type=step_list, metavar="STEPS", help="Damage after these steps, such as 1-40 [all].")
@click.option("--channels", type=channel, metavar="loss|all|N", help="The image, all channels, or channel N [loss].")
@click.option("--scale", type=click.IntRange(1, 64), help="Pixels per cell [512 on the longer side].")
@click.option("--at", type=step_list, metavar="STEPS", help="The steps to show, for example 0,5,10 [evenly spread].")
@click.option("--frame-ms", type=click.IntRange(20, 10_000), help="Milliseconds per frame [120].")
@shared.force_option
@shared.engine_options
def command(run: Path, out: Output, what: str, member: int | None, **options: Any) -> int:
    """Draw a rollout of RUN's hard circuit, its gates, or its losses, as one image or animation.

    RUN is a run folder or a checkpoint; for a population, its best model. The rollout is exact on any grid, for any
    number of steps and on every engine. By default the command uses the run's hardware GPU if there is one,
    otherwise the CPU engine. It only replaces existing files with --force.

    For agents or a controller.json the animation shows one episode, with the thresholds and gates that are 1.

    Example: difflogic render runs/NAME -o healing.gif --size 64x64 --steps 80 --damage 20 --damage-steps 1-40
    """
    from difflogic.circuits.readers import zoo
    from difflogic.circuits.readers.source import is_of_agents
    from difflogic.evaluation.render import Look, render
    from difflogic.runs import chosen

    engine_options = {name: options.pop(name) for name in ("engine", "gpu", "require_hardware")}
    if is_of_agents(run := zoo.path(run)):
        return _render_episode(run, out, what, member, options)
    given = [name for name, value in options.items() if value not in (None, False)]
    if what != "rollout" and given:
        raise UsageError(f"--what {what} does not show a rollout: omit {', '.join(map(written, given))}.")
    engine = shared.take_engine(engine_options)
    settings = {name: options[name] for name in ("channels", "scale", "frame_ms") if options[name] is not None}
    look = Look(steps=options["at"], **settings)
    size = render(run, out.path, what, _scene(options), look, engine, member, out.force)
    shared.show_choice(chosen.load(run, member).told)
    echo(f"Written: {out}, {size / 1000:.1f} kB")
    return 0


def _scene(options: dict[str, Any]) -> RenderSpec:
    from difflogic.evaluation.render import RenderSpec

    fire_rate, boundary = options["fire_rate"], options["boundary"]
    return RenderSpec(
        **{name: options[name] for name in ("size", "steps", "start", "seed")},
        fire_rate=ASYNCHRONOUS if fire_rate is None and options["asynchronous"] else fire_rate,
        rollouts=options["rollouts"] or 1,
        damage=_damage(options),
        periodic=None if boundary is None else boundary == "periodic",
    )


def _damage(options: dict[str, Any]) -> DamagePlan | None:
    from difflogic.evaluation.rollout import DamagePlan

    if options["damage"] is None:
        if options["damage_at"] is not None or options["damage_steps"] is not None:
            raise UsageError("--damage-at and --damage-steps require --damage SIDE.")
        return None
    steps = range(1, 10**9) if options["damage_steps"] is None else options["damage_steps"]  # longer than any rollout
    return DamagePlan(options["damage"], steps, options["damage_at"] or "centre")


def _render_episode(path: Path, out: Output, what: str, member: int | None, options: Mapping[str, Any]) -> int:
    """Write an agent's training curve, or an animated episode with a controller's bits or an automaton's grids."""
    from difflogic.circuits.readers import source
    from difflogic.model import function_json
    from difflogic.policies import controllers, film
    from difflogic.policies.member import restored
    from difflogic.policies.results import CELL, curves

    unused = [name for name, value in options.items() if value not in (None, False) and name not in OF_EPISODES]
    if unused or what == "gates":
        names = ", ".join(map(written, unused)) or "--what gates"
        raise UsageError(f"These options are not supported for agents: omit {names}.")
    if what == "loss":
        out.write(curves(path))
        echo(f"Written: {out}")
        return 0
    steps, seed = options["steps"] or 500, options["seed"] or 0
    file = path if path.is_file() else path / function_json.NAME
    controller = source.controller(path) if file.is_file() and member is None else None
    if controller is not None and not (path / CELL).is_file():
        lamps = partial(film.lamps, controller)
        decide, memory = controllers.decider(controller), controller.memory
        frames = film.episode(decide, controller.environment, seed, steps, lamps, memory)
    else:
        frames = film.of_agent(restored(path, member), steps, None, seed)
    out.write(film.encoded(frames, out.path.suffix, options["frame_ms"] or FRAME_MS))
    echo(f"Written: {out}, {len(frames)} frames")
    return 0
