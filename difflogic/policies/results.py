"""A run of agents ends with these: scores on fresh episodes, beside agents without a mind, curves, and words."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.config.policy import PolicyConfig
from difflogic.model import function_json, netlist_json
from difflogic.policies import actor_file, classifier, controllers
from difflogic.policies.actors import LogicActor
from difflogic.policies.automaton import AutomatonActor
from difflogic.policies.evaluate import Score, Watch
from difflogic.policies.member import Member
from difflogic.runs import checkpoint, chosen, jsonl, plots
from difflogic.runs.journal import JSONL

SUMMARY, EVALUATION, CURVE = "summary.txt", "evaluation.json", "returns.png"
CELL = "circuit.json"
"""The rule of an automaton that acts."""
FINAL = 1 << 20
"""Added to a seed: the episodes of the last evaluation are none of those that were played before it."""


def read(run: Path) -> dict[str, Any]:
    """The evaluation that a run of agents ended with; empty where it has not ended."""
    try:
        found: dict[str, Any] = json.loads((run / EVALUATION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def final_score(member: Member, watch: Watch) -> Score:
    """Score the agent on episodes that neither training nor any earlier evaluation has played."""
    return member.evaluate(member.config.evaluation.final_episodes, FINAL, watch)


def files(
    config: PolicyConfig, members: Sequence[Member], best: Member, beside: dict[str, float] | None
) -> dict[str, str | bytes]:
    """The files of the results by name; `beside`: mean returns of agents without a mind, None where it goes on."""
    if beside is None:
        return {}
    actor, spaces, table = best.agent.actor, best.environments.spaces, config.table
    found: dict[str, str | bytes] = {
        EVALUATION: json.dumps(_evaluation(config, members, best, beside), indent=2) + "\n",
        actor_file.NAME: actor_file.encode(best.agent),
    }
    if isinstance(actor, LogicActor) and config.is_classifier:
        found[function_json.FUNCTION] = function_json.to_json(classifier.function_of(actor, table))
    elif isinstance(actor, LogicActor) and not spaces.continuous:
        made = controllers.of_actor(actor, config.environment.id, spaces)
        found[function_json.NAME] = function_json.to_json(made)
    if isinstance(actor, AutomatonActor):
        found[CELL] = netlist_json.to_json(actor.cell)
    return found


def curves(run: Path, card: bool = False) -> bytes:
    """A picture of the returns of a run's agents so far, the best one's in colour; square where it is for a card.

    Raises CheckpointError, ConfigError, OSError.
    """
    run = chosen.run_folder(run)
    saved, config = checkpoint.read_agents(run), PolicyConfig.load(run / "config.toml")
    rows: dict[int, list[dict[str, Any]]] = {config.seed: []}
    for row in jsonl.objects(run / JSONL):
        rows.setdefault(row.get("seed", config.seed), []).append(row)
    title, size = f"{config.name}: {config.environment.id}, {config.policy}, {config.algorithm}", (8.0, 4.5)
    look: tuple[Any, ...] = ("", (4.5, 4.5)) if card else (title, size)
    if config.is_classifier:
        look = (*look, ("rows seen", "accuracy on rows that are not learned"))
    return plots.returns_png(rows, saved.seeds[saved.best], config.evaluation.threshold, *look)


def summary(
    config: PolicyConfig, members: Sequence[Member], best: Member, steps: int, elapsed_s: float,
    beside: dict[str, float] | None,
) -> str:  # fmt: skip
    """The result in words."""
    scores = [each.score.mean for each in members if each.score is not None]
    lines = [f"{config.name}: {_result(config, best, len(members), beside is not None)}"]
    unit = "rows" if config.is_classifier else "steps"
    lines.append(f"Trained:         {steps} {unit} in {elapsed_s:.1f} s, {steps / max(elapsed_s, 1e-9):.0f} a second")
    if beside is not None and config.is_classifier:
        lines.append(f"Beside it:       {', '.join(f'{name} {100 * value:.1f} %' for name, value in beside.items())}")
        if len(members) > 1:
            lines.append(
                f"All {len(members)}:           {100 * min(scores):.1f} to {100 * max(scores):.1f} %, median "
                f"{100 * np.median(scores):.1f}; the best by the rows that choose"
            )
    elif beside is not None:
        lines.append(f"Beside it:       {', '.join(f'{name} {value:.1f}' for name, value in beside.items())}")
        if is_no_better(best.score, beside["random"]):
            lines.append(
                "No better than random actions: it has learned nothing yet. Give it more --steps, or try --policy mlp; "
                "where rewards are rare, PPO and SAC seldom find any."
            )
    if len(members) > 1 and scores and not config.is_classifier:
        lines.append(
            f"All {len(members)}:           {sum(each.solved for each in members)} solved; mean returns from "
            f"{min(scores):.1f} to {max(scores):.1f}, median {np.median(scores):.1f}"
        )
    actor = best.agent.actor
    if isinstance(actor, LogicActor):
        read, kept = actor.thermometer.bits - actor.memory, f", {actor.memory} bits of memory" * bool(actor.memory)
        lines.append(f"Circuit:         {actor.circuit.gates} gates, {read} thresholds{kept}")
    return "\n".join(lines) + "\n"


def is_no_better(score: Score | None, random: float) -> bool:
    """Return whether the mean return is within what chance makes of so many episodes of random actions."""
    return score is not None and score.mean - 2 * score.spread / math.sqrt(len(score.returns)) <= random


def _result(config: PolicyConfig, best: Member, count: int, has_ended: bool) -> str:
    least = config.evaluation.threshold
    whose = f" (seed {best.seed})" if count > 1 else ""
    if best.score is None:
        return f"not evaluated yet{whose}"
    score = best.score
    if config.is_classifier:
        share, which = (config.table.held_out, "held out") if has_ended else (config.table.validation, "not learned")
        which = which if share else "learned"
        return f"{classifier.accuracy(int(sum(score.returns)), len(score.returns), which)}{whose}"
    text = f"mean return {score.mean:.1f} +- {score.spread:.1f} over {len(score.returns)} episodes{whose}"
    if least == -np.inf:
        return text
    verdict = "solved" if best.solved else "not solved"
    return f"{verdict}, {text}; {score.reached(least)} of {len(score.returns)} reached {least:g}"


def _evaluation(
    config: PolicyConfig, members: Sequence[Member], best: Member, beside: dict[str, float]
) -> dict[str, object]:
    least = config.evaluation.threshold
    return {
        "environment": config.environment.id,
        "threshold": None if least == -np.inf else least,
        "solved": sum(each.solved for each in members),
        "best": best.seed,
        "baselines": beside,
        "members": [
            {"seed": each.seed, **(each.score.to_dict() if each.score is not None else {})} for each in members
        ],
    }
