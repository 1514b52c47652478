"""Commands about runs use these functions for a run of agents, or for a controller's file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.request import written
from difflogic.cli.screen import sinks, table
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.model.controller import Controller
    from difflogic.policies.evaluate import Score
    from difflogic.system.files import Output

FAILED, INTERRUPTED = 1, 130
EPISODES = 100


def is_policy(path: Path) -> bool:
    """Return whether a folder holds a run of agents, or a file a controller."""
    from difflogic.circuits.readers import source
    from difflogic.runs import manifest

    return manifest.is_policy(manifest.read(path)) if path.is_dir() else source.controller(path) is not None


def simplify(given: Controller, to_task: bool, out: Output | None, as_json: bool) -> int:
    """A controller with fewer gates; with `to_task` one that is right where episodes lead."""
    from difflogic.circuits.synthesis import controller as synthesis
    from difflogic.circuits.synthesis.convert import gate_count
    from difflogic.circuits.synthesis.simplify import silent
    from difflogic.model import controller_json
    from difflogic.policies import controllers

    on_pass = silent if as_json else sinks.show_pass
    smaller, judged = synthesis.simplified(given, on_pass), None
    if to_task and not smaller.stopped:
        judged = controllers.pruned(smaller.controller, EPISODES, 0, on_pass)
    found = smaller if judged is None else judged.smaller
    made = found.controller
    if out is not None:
        out.write(controller_json.to_json(made).encode())
    report: dict[str, Any] = {
        "gates": [gate_count(given), gate_count(made)],
        "thresholds": [given.inputs, made.inputs],
        "equal": found.verdict.equal,
        "proved": bool(found.verdict.proves and found.verdict.equal),
        "run": found.verdict.how,
        "out": None if out is None else str(out),
    }
    if judged is not None:
        report["episodes"] = {"before": judged.before.mean, "after": judged.after.mean, "count": EPISODES}
    if as_json:
        click.echo(json.dumps(report))
    else:
        whole, verdict = smaller.controller, smaller.verdict
        kind = "Proved equal" if verdict.equal and verdict.proves else "NOT proved equal"
        click.echo(f"{given.environment or 'Controller'}: {_size(given)}")
        click.echo(f"{kind}: {verdict.how}; {_size(whole)}")
        if judged is not None:
            click.echo(f"--task: {judged.words}")
        click.echo(_size(made) + (f": {out}" if out else "."))
    if found.stopped:
        return INTERRUPTED
    # A pruned controller is not proved: it has to do as well on episodes that it was not pruned for.
    is_worse = judged is not None and judged.is_worse
    return FAILED if is_worse or not smaller.verdict.equal else 0


def _size(controller: Controller) -> str:
    from difflogic.circuits.synthesis.convert import gate_count

    return f"{gate_count(controller)} two-input gates, {controller.inputs} thresholds"


def evaluate(path: Path, episodes: int | None, member: int | None, damage: int | None, as_json: bool) -> int:
    """Scores of agents, or of a controller's file, on fresh episodes, beside agents without a mind.

    `damage`: cells of an automaton that are zeroed while it decides, for further scores.
    """
    from difflogic.circuits.readers import source
    from difflogic.policies import controllers
    from difflogic.policies.environments import make, spaces, threshold
    from difflogic.policies.evaluate import baselines

    count = episodes or EPISODES
    if path.is_dir():
        identifier, least, scores = _scores_of_run(path, count, member, damage)
    elif damage is not None:
        raise UsageError("--damage sets cells of a grid to zero: give the run of an automaton that acts, not a file.")
    else:
        controller = source.controller(path)
        if controller is None:
            raise UsageError(f"{path} holds no controller.")
        scores = {path.name: controllers.score(controller, count, controllers.FRESH)}
        identifier, least = controller.environment, threshold(controller.environment)
    world = make(identifier)
    beside = baselines(identifier, spaces(world, identifier), count, controllers.FRESH)
    world.close()
    if as_json:
        report: dict[str, Any] = {"environment": identifier, "episodes": count, "baselines": beside}
        report["threshold"] = least if math.isfinite(least) else None
        click.echo(json.dumps(report | {"scores": {name: each.to_dict() for name, each in scores.items()}}))
        return 0
    rows = [(name, f"{each.mean:.1f}", f"{each.spread:.1f}", f"{min(each.returns):.1f}", f"{each.mean_length:.1f}",
             f"{each.reached(least)} of {count}" if math.isfinite(least) else "")
            for name, each in scores.items()]  # fmt: skip
    rows += [(name, f"{value:.1f}", "", "", "", "") for name, value in beside.items()]
    click.echo(f"{identifier}, {count} episodes that were never played before")
    reached = f"reached {least:g}" if math.isfinite(least) else ""
    table.show(("policy", "mean return", "spread", "least", "length", reached), rows)
    return 0


def _scores_of_run(
    path: Path, count: int, member: int | None, damage: int | None
) -> tuple[str, float, dict[str, Score]]:
    """Environment, threshold, and the scores of its agents, or of the one counted `member` from 1."""
    from difflogic.policies import checkpoint, controllers
    from difflogic.policies.automaton import Damage
    from difflogic.policies.member import restored

    saved, scores = checkpoint.read(path), {}
    damages = [] if damage is None else [Damage(damage, every_step) for every_step in (False, True)]
    for number in range(1, len(saved.members) + 1) if member is None else [member]:
        agent = restored(path, number)
        scores[f"seed {agent.seed}"] = agent.evaluate(count, controllers.FRESH)
        for each in damages:
            each.on(agent.agent.actor)
            scores[f"seed {agent.seed}, {each}"] = agent.evaluate(count, controllers.FRESH)
        agent.environments.close()
    return saved.config.environment.id, saved.config.evaluation.threshold, scores


PICTURED = ("steps", "seed", "frame_ms")
"""Options of `render` that an episode has too."""
FRAME_MS = 40


def render(path: Path, out: Output, what: str, member: int | None, options: Mapping[str, Any]) -> int:
    """A film of an episode, with the lamps of its controller where it has one; or the curve of its training."""
    from difflogic.circuits.readers import source
    from difflogic.model import controller_json
    from difflogic.policies import controllers, film
    from difflogic.policies.automaton import AutomatonActor
    from difflogic.policies.member import restored
    from difflogic.policies.results import CELL, curves

    given = [name for name, value in options.items() if value not in (None, False) and name not in PICTURED]
    if given or what == "gates":
        names = ", ".join(map(written, given)) or "--what gates"
        raise UsageError(f"A film of an episode takes no such options: drop {names}.")
    if what == "loss":
        out.write(curves(path))
        click.echo(f"Written: {out}")
        return 0
    steps, seed = options["steps"] or 500, options["seed"] or 0
    file = path if path.is_file() else path / controller_json.NAME
    controller = source.controller(path) if file.is_file() and member is None else None
    if controller is not None and not (path / CELL).is_file():
        lamps = partial(film.lamps, controller)
        frames = film.episode(controllers.decider(controller), controller.environment, seed, steps, lamps)
    else:
        agent = restored(path, member)
        actor = agent.agent.actor
        below = partial(film.grids, actor) if isinstance(actor, AutomatonActor) else None
        frames = film.episode(agent.agent.decide, agent.config.environment.id, seed, steps, below)
    out.write(film.encoded(frames, out.path.suffix, options["frame_ms"] or FRAME_MS))
    click.echo(f"Written: {out}, {len(frames)} frames")
    return 0
