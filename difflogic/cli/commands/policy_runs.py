"""What the commands about runs do with a run of agents, or with a controller's file."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.screen import passes, table
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.circuits.synthesis.prove import Equivalence
    from difflogic.model.controller import Controller
    from difflogic.policies.controllers import Pruned
    from difflogic.policies.evaluate import Score
    from difflogic.system.files import Output

FAILED = 1
EPISODES = 100
WORDS = {True: "equal", False: "DIFFERENT", None: "undecided"}


def is_policy(path: Path) -> bool:
    """Whether a folder holds a run of agents, or a file a controller."""
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

    on_pass = silent if as_json else passes.show
    smaller, judged = synthesis.simplified(given, on_pass), None
    if to_task:
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
        "how": found.verdict.how,
        "out": None if out is None else str(out),
    }
    if judged is not None:
        report["episodes"] = {"before": judged.before.mean, "after": judged.after.mean, "count": EPISODES}
    if as_json:
        click.echo(json.dumps(report))
    else:
        whole, verdict = smaller.controller, smaller.verdict
        kind = "Proved equal" if verdict.equal and verdict.proves else WORDS[verdict.equal]
        click.echo(f"{given.environment or 'Controller'}: {_size(given)}")
        click.echo(f"{kind}: {verdict.how}; {_size(whole)}")
        if judged is not None:
            click.echo(_pruned(judged))
        click.echo(_size(made) + (f": {out}" if out else "."))
    # A pruned controller is not proved: it has to do as well on episodes that it was not pruned for.
    is_worse = judged is not None and judged.is_worse
    return FAILED if is_worse or not smaller.verdict.equal else 0


def _size(controller: Controller) -> str:
    from difflogic.circuits.synthesis.convert import gate_count

    return f"{gate_count(controller)} two-input gates, {controller.inputs} thresholds"


def _pruned(judged: Pruned) -> str:
    before, after = judged.before, judged.after
    return (
        f"--task: the same on {judged.codes} codes that {EPISODES} episodes met; elsewhere it may differ. On "
        f"{EPISODES} other episodes: mean return {after.mean:.1f} +- {after.spread:.1f}, before "
        f"{before.mean:.1f} +- {before.spread:.1f}."
    )


def prove(one: Controller, other: Controller, judges: tuple[str, ...], as_json: bool) -> int:
    """Whether two controllers take the same action at every observation."""
    from difflogic.circuits.synthesis import controller as synthesis

    asked = [judge for judge in ("difflogic", "berkeley-abc", "yosys") if not judges or judge in judges]
    if not asked:
        raise UsageError(
            "--judge network is of automata: two controllers are judged by difflogic, berkeley-abc, yosys."
        )
    verdicts = synthesis.prove(one, other, asked)
    different = any(each.equal is False for each in verdicts)
    equal = not different and any(each.equal and each.proves for each in verdicts)
    if as_json:
        whole = False if different else True if equal else None
        click.echo(json.dumps({"equal": whole, "verdicts": [asdict(each) for each in verdicts]}))
    else:
        table.show(("judge", "verdict", "how"), [(each.judge, WORDS[each.equal], each.how) for each in verdicts])
        for each in verdicts:
            if each.counterexample is not None:
                click.echo(_counterexample(each))
        click.echo(
            "Different." if different
            else "Equal: the two take the same action at every observation." if equal
            else "Undecided: no judge could prove it."
        )  # fmt: skip
    return 0 if equal else FAILED


def _counterexample(verdict: Equivalence) -> str:
    found = verdict.counterexample
    assert found is not None  # noqa: S101
    values = "; ".join(f"{name}: {one} and {other}" for name, one, other in found.outputs)
    return f"Counter-example: thresholds that are reached: {', '.join(found.ones) or 'none'}. {values}."


def evaluate(path: Path, episodes: int | None, member: int | None, as_json: bool) -> int:
    """Scores of agents, or of a controller's file, on fresh episodes, beside agents without a mind."""
    from difflogic.circuits.readers import source
    from difflogic.policies import controllers
    from difflogic.policies.environments import make, spaces, threshold
    from difflogic.policies.evaluate import baselines

    count = episodes or EPISODES
    if path.is_dir():
        identifier, least, scores = _scores_of_run(path, count, member)
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


def _scores_of_run(path: Path, count: int, member: int | None) -> tuple[str, float, dict[str, Score]]:
    """Environment, threshold, and the scores of its agents, or of the one counted `member` from 1."""
    from difflogic.devices.device import Device
    from difflogic.policies import checkpoint, controllers
    from difflogic.policies.training import Member

    saved, device = checkpoint.read(path), Device("cpu")
    if member is not None and not 1 <= member <= len(saved.members):
        raise UsageError(f"There is no member {member} in {path}: it has 1 to {len(saved.members)}.")
    scores = {}
    for index in range(len(saved.members)) if member is None else [member - 1]:
        seed = saved.seeds[index]
        agent = Member.restored(saved.config.with_(seed=seed), device, saved.members[index])
        scores[f"seed {seed}"] = agent.evaluate(count, controllers.FRESH)
        agent.environments.close()
    return saved.config.environment.id, saved.config.evaluation.threshold, scores
