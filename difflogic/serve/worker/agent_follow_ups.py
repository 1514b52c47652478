"""Follow-ups of agents: their controller made smaller, and episodes that were never played before."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from difflogic.circuits.export import formats
from difflogic.circuits.synthesis import controller as synthesis
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.errors import CircuitError
from difflogic.model import controller_json
from difflogic.model.controller import Controller
from difflogic.policies import checkpoint, controllers
from difflogic.policies.evaluate import Score, baselines
from difflogic.policies.member import restored
from difflogic.policies.results import EVALUATION

EPISODES, QUICK = 100, 20
"""So many are played, and so many where it should be quick."""


def simplify(name: str, given: Controller, to_task: bool) -> tuple[dict[str, str | bytes], dict[str, Any]]:
    """Files and the result, as of an automaton; with `to_task` it is right where episodes lead, and not proved."""
    smaller = synthesis.simplified(given)
    judged = controllers.pruned(smaller.controller, EPISODES, 0) if to_task else None
    made = smaller.controller if judged is None else judged.smaller.controller
    result = {
        "gates": {"before": gate_count(given), "after": gate_count(made)},
        "thresholds": {"before": given.inputs, "after": made.inputs},
        "equal": smaller.verdict.equal and judged is None,
        "how": smaller.verdict.how,
        "note": None if judged is None else judged.words,
    }
    files: dict[str, str | bytes] = {
        controller_json.NAME: controller_json.to_json(made),
        "simplify.json": json.dumps(result) + "\n",
    }
    for form in ("svg", "html"):
        with suppress(CircuitError):  # too large to be drawn
            files |= formats.export(made, name, form)
    return files, result


def evaluate(run: Path, quick: bool) -> tuple[dict[str, str | bytes], dict[str, Any]]:
    """Files and the result: each agent's score on episodes of its own, beside agents without a mind."""
    saved, count = checkpoint.read(run), QUICK if quick else EPISODES
    identifier, least = saved.config.environment.id, saved.config.evaluation.threshold
    scores: dict[str, Score] = {}
    beside: dict[str, float] = {}
    for number, seed in enumerate(saved.seeds, 1):
        agent = restored(run, number)
        scores[f"seed {seed}"] = agent.evaluate(count, controllers.FRESH)
        if not beside:
            beside = baselines(identifier, agent.environments.spaces, count, controllers.FRESH)
        agent.environments.close()
    report = {
        "environment": identifier,
        "episodes": count,
        "threshold": least if math.isfinite(least) else None,
        "scores": {name: score.to_dict() for name, score in scores.items()},
        "baselines": beside,
    }
    reached = {name: f", {score.reached(least)} of {count} reached {least:g}" if math.isfinite(least) else ""
               for name, score in scores.items()}  # fmt: skip
    measures = {
        name: f"mean return {score.mean:.1f} +- {score.spread:.1f}{reached[name]}" for name, score in scores.items()
    }
    measures |= {name: f"mean return {value:.1f}" for name, value in beside.items()}
    return {EVALUATION: json.dumps(report, indent=2) + "\n"}, {"measures": measures}
