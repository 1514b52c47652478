"""Create the final files of a run of agents: scores on new episodes, baselines, curves and circuits."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.config.policy import ClassifierConfig, PolicyConfig
from difflogic.model import function_json, netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.controller import Controller
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.policies import actor_file, classifier, controllers
from difflogic.policies.actors import LogicActor
from difflogic.policies.automaton import AutomatonActor
from difflogic.policies.evaluate import Score, Watch
from difflogic.policies.member import Member
from difflogic.runs import checkpoint, chosen, jsonl, plots
from difflogic.runs.journal import JSONL

SUMMARY, EVALUATION = "summary.txt", "evaluation.json"
RETURNS, ACCURACY = "returns.png", "accuracy.png"
"""Names of the files with the learning curves of agents and of classifiers."""
CELL = "circuit.json"
"""Name of the file with the cell's circuit, if the agent is an automaton."""
FINAL = 1 << 20
"""Seed offset of the final evaluation, whose episodes are used nowhere else."""


def read(run: Path) -> dict[str, Any]:
    """Return the final evaluation of a run of agents, or {} if the run has not ended."""
    try:
        evaluation: dict[str, Any] = json.loads((run / EVALUATION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return evaluation


def final_score(member: Member, watch: Watch) -> Score:
    """Score the agent on episodes that are used nowhere else, calling `watch` after each step."""
    return member.evaluate(member.config.evaluation.final_episodes, FINAL, watch)


def netlist_of(member: Member) -> CellNetlist | FunctionNetlist | None:
    """Return the hard circuit of an agent (a function, a controller or a cell), or None if it has no such circuit."""
    actor, spaces = member.agent.actor, member.environments.spaces
    if isinstance(actor, LogicActor) and isinstance(config := member.config, ClassifierConfig):
        return classifier.function_of(actor, config.table)
    if isinstance(actor, LogicActor) and not spaces.continuous:
        return controllers.of_actor(actor, member.config.subject, spaces)
    return actor.cell if isinstance(actor, AutomatonActor) else None


def files(
    config: PolicyConfig, members: Sequence[Member], best: Member, baselines: dict[str, float] | None,
    netlist: CellNetlist | FunctionNetlist | None,
) -> dict[str, str | bytes]:  # fmt: skip
    """Return the contents of the result files by name, or {} if `baselines` is None (the run has not ended)."""
    if baselines is None:
        return {}
    scores = [member.score.to_dict() if member.score is not None else {} for member in members]
    evaluation = {
        "environment": config.subject,
        "threshold": None if config.evaluation.threshold == -np.inf else config.evaluation.threshold,
        "solved": sum(member.solved for member in members),
        "best": best.seed,
        "baselines": baselines,
        "members": [{"seed": member.seed, **score} for member, score in zip(members, scores, strict=True)],
    }
    contents: dict[str, str | bytes] = {EVALUATION: json.dumps(evaluation, indent=2) + "\n"}
    contents[actor_file.NAME] = actor_file.encode(best.agent)
    if isinstance(actor := best.agent.actor, AutomatonActor):
        contents[CELL] = netlist_json.to_json(actor.cell)
    if isinstance(netlist, FunctionNetlist):
        name = function_json.NAME if isinstance(netlist, Controller) else function_json.FUNCTION
        contents[name] = function_json.to_json(netlist)
    return contents


def curves(run: Path, card: bool = False) -> bytes:
    """Draw a PNG of the agents' returns so far, the best agent in colour; `card` selects a square without a title.

    Raises CheckpointError, ConfigError or OSError.
    """
    run = chosen.run_folder(run)
    saved, config = checkpoint.read_agents(run), PolicyConfig.load(run / "config.toml")
    rows: dict[int, list[dict[str, Any]]] = {config.seed: []}
    for row in jsonl.objects(run / JSONL):
        rows.setdefault(row.get("seed", config.seed), []).append(row)
    title, size = f"{config.name}: {config.subject}, {config.policy}, {config.algorithm}", (8.0, 4.5)
    look: tuple[Any, ...] = ("", (4.5, 4.5)) if card else (title, size)
    if isinstance(config, ClassifierConfig):
        judging = "validation rows" if config.table.validation else "training rows"
        look = (*look, ("training rows processed", f"accuracy on {judging}"))
    return plots.returns_png(rows, saved.seeds[saved.best], config.evaluation.threshold, *look)
