"""A run of agents ends with these: scores on fresh episodes, beside agents without a mind, curves, and words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from difflogic.config.policy import PolicyConfig
from difflogic.model import controller_json, netlist_json
from difflogic.policies import actor_file, controllers
from difflogic.policies.actors import LogicActor
from difflogic.policies.automaton import AutomatonActor
from difflogic.policies.evaluate import Score, Watch, baselines
from difflogic.runs import jsonl, manifest, plots
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import JSONL

if TYPE_CHECKING:
    from difflogic.policies.member import Member
    from difflogic.policies.training import PolicyRun

SUMMARY, EVALUATION, CURVE = "summary.txt", "evaluation.json", "returns.png"
CELL = "circuit.json"
"""The rule of an automaton that acts."""
FINAL = 1 << 20
"""Added to a seed: the episodes of the last evaluation are none of those that were played before it."""


def final_score(member: Member, watch: Watch) -> Score:
    """Score the agent on episodes that neither training nor any earlier evaluation has played."""
    return member.evaluate(member.config.evaluation.final_episodes, FINAL, watch)


def finish(run: PolicyRun, watch: Watch) -> None:
    """Evaluate every member on fresh episodes, and random and constant agents on the leader's."""
    evaluation = run.config.evaluation
    for member in run.members:
        member.score = final_score(member, watch)
    best = run.best
    identifier, spaces = run.config.environment.id, best.environments.spaces
    run.baselines = baselines(identifier, spaces, min(evaluation.final_episodes, 100), best.seed + FINAL, watch)


def best_seed(run: Path) -> int | None:
    """The seed of the best agent of a run that has ended; None where it does not say."""
    try:
        return int(json.loads((run / EVALUATION).read_text(encoding="utf-8"))["best"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(run: PolicyRun, folder: RunFolder, pictures: bool) -> None:
    """The files of the results, into the run's folder."""
    text = summary(run)
    folder.write(SUMMARY, text)
    if run.baselines is not None:
        folder.write(EVALUATION, json.dumps(_evaluation(run), indent=2) + "\n")
    actor, spaces = run.best.agent.actor, run.best.environments.spaces
    if run.complete:
        folder.write(actor_file.NAME, actor_file.encode(run.best.agent))
    if run.complete and isinstance(actor, LogicActor) and not spaces.continuous:
        made = controllers.of_actor(actor, run.config.environment.id, spaces)
        folder.write(controller_json.NAME, controller_json.to_json(made))
    if run.complete and isinstance(actor, AutomatonActor):
        folder.write(CELL, netlist_json.to_json(actor.cell))
    if pictures:
        folder.write(CURVE, curves(folder.path))
    status = "complete" if run.complete else "interrupted"
    record = manifest.end(manifest.read(folder.path), status, run.iteration, text)
    folder.write(manifest.NAME, manifest.to_json(record))


def curves(run: Path, card: bool = False) -> bytes:
    """A picture of the returns of a run's agents so far, the best one's in colour; square where it is for a card.

    Raises ConfigError, OSError.
    """
    config = PolicyConfig.load(run / "config.toml")
    rows: dict[int, list[dict[str, Any]]] = {config.seed: []}
    for row in jsonl.objects(run / JSONL):
        rows.setdefault(row.get("seed", config.seed), []).append(row)
    if (best := best_seed(run)) is None:  # it has not ended
        scores = {seed: [row["score"] for row in found if row["score"] is not None] for seed, found in rows.items()}
        best = max(rows, key=lambda seed: [-np.inf, *scores[seed]][-1])
    title, size = f"{config.name}: {config.environment.id}, {config.policy}, {config.algorithm}", (8.0, 4.5)
    return plots.returns_png(rows, best, config.evaluation.threshold, *(("", (4.5, 4.5)) if card else (title, size)))


def summary(run: PolicyRun) -> str:
    """The result in words."""
    config, best = run.config, run.best
    steps = run.iteration * best.agent.iteration_steps
    lines = [f"{config.name}: {_result(run)}"]
    lines.append(
        f"Trained:         {steps} steps in {run.elapsed_s:.1f} s, {steps / max(run.elapsed_s, 1e-9):.0f} a second"
    )
    if run.baselines is not None:
        beside = ", ".join(f"{name} {value:.1f}" for name, value in run.baselines.items())
        lines.append(f"Beside it:       {beside}")
        if is_no_better(best.score, run.baselines["random"]):
            lines.append(
                "No better than random actions: it has learned nothing yet. Give it more --steps, or try --policy mlp; "
                "where rewards are rare, PPO and SAC seldom find any."
            )
    if len(run.members) > 1:
        scores = [each.score.mean for each in run.members if each.score is not None]
        if scores:
            lines.append(
                f"All {len(run.members)}:           {len(run.solved)} solved; mean returns from {min(scores):.1f} to "
                f"{max(scores):.1f}, median {np.median(scores):.1f}"
            )
    actor = best.agent.actor
    if isinstance(actor, LogicActor):
        lines.append(f"Circuit:         {actor.circuit.gates} gates, {actor.thermometer.bits} thresholds")
    return "\n".join(lines) + "\n"


def is_no_better(score: Score | None, random: float) -> bool:
    """Return whether the mean return is within what chance makes of so many episodes of random actions."""
    return score is not None and score.mean - 2 * score.spread / math.sqrt(len(score.returns)) <= random


def _result(run: PolicyRun) -> str:
    best, least = run.best, run.config.evaluation.threshold
    whose = f" (seed {best.seed})" if len(run.members) > 1 else ""
    if best.score is None:
        return f"not evaluated yet{whose}"
    score = best.score
    text = f"mean return {score.mean:.1f} +- {score.spread:.1f} over {len(score.returns)} episodes{whose}"
    if least == -np.inf:
        return text
    verdict = "solved" if score.mean >= least else "not solved"
    return f"{verdict}, {text}; {score.reached(least)} of {len(score.returns)} reached {least:g}"


def _evaluation(run: PolicyRun) -> dict[str, object]:
    members = [
        {"seed": member.seed, **(member.score.to_dict() if member.score is not None else {})} for member in run.members
    ]
    least = run.config.evaluation.threshold
    return {
        "environment": run.config.environment.id,
        "threshold": None if least == -np.inf else least,
        "solved": len(run.solved),
        "best": run.best.seed,
        "baselines": run.baselines,
        "members": members,
    }
