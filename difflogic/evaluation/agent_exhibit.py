"""Create gallery exhibits of agents: an episode of the best agent, returns, gates, controller and exports."""

from pathlib import Path
from typing import Any

from difflogic.circuits.export.text import Files
from difflogic.circuits.synthesis import function as synthesis
from difflogic.circuits.synthesis.function import live_gates
from difflogic.circuits.synthesis.simplify import OnPass, silent
from difflogic.errors import MissingPackagesError, RunFolderError, UsageError
from difflogic.evaluation.gallery import Exhibit, add_exports, listed, title_of
from difflogic.evaluation.report import page
from difflogic.model import function_json
from difflogic.model.statistics import census
from difflogic.policies import controllers, film, results
from difflogic.policies.actors import LogicActor
from difflogic.policies.member import Member, restored
from difflogic.policies.results import RETURNS, SUMMARY, curves
from difflogic.runs import chosen, plots
from difflogic.runs.journal import CSV

STEPS, FRAME_MS = 500, 40
CARD = "card.png"
"""File name of the square image of returns, which the gallery shows if there is no animation."""


def exhibit(run: Path, name: str, on_pass: OnPass = silent) -> Exhibit:
    """Return the exhibit of a completed run's best agent for the folder `name`; call `on_pass` after simplifications.

    Raises CheckpointError, or RunFolderError if the run is incomplete.
    """
    named_run, run = run, chosen.run_folder(run)
    evaluation = results.read(run)
    if not evaluation:
        raise RunFolderError(f"The training of the agents in {run} is incomplete: continue it with --resume.")
    best = next(item for item in evaluation["members"] if item["seed"] == evaluation["best"])
    member = restored(run, evaluation["members"].index(best) + 1)
    config, actor, spaces = member.config.require_episodes(), member.agent.actor, member.environments.spaces
    files: Files = {RETURNS: curves(run)}
    files |= {f"files/{item}": (run / item).read_bytes() for item in ("config.toml", CSV)}
    if isinstance(actor, LogicActor):
        files["gates.png"] = plots.gates_png(census(actor.circuit), "gates by layer")
    controller, counts, proof, gates = None, [], "", "no controller"
    left_out = ["controller: expected agents of logic gates with discrete actions."]
    if isinstance(actor, LogicActor) and not spaces.continuous:
        controller = controllers.of_actor(actor, config.environment.id, spaces)
        simplified = synthesis.simplified(controller, on_pass)
        count = live_gates(simplified.netlist)
        counts = [("gates, the decision included", live_gates(controller)), ("gates, simplified", count)]
        counts += [("thresholds, as trained", controller.inputs), ("thresholds, simplified", simplified.netlist.inputs)]
        proof = f"{'Proved equal' if simplified.verdict.equal else 'NOT proved equal'}: {simplified.verdict.how}."
        gates = f"{count} gates, {config.subject}"
        files[f"files/{function_json.NAME}"] = (run / function_json.NAME).read_bytes()
        left_out = add_exports(files, simplified.netlist, name)
    cover = CARD
    try:
        files["film.gif"] = film.encoded(film.of_agent(member, STEPS, controller), ".gif", FRAME_MS)
        cover = "film.gif"
    except (UsageError, MissingPackagesError) as error:  # environment without images, or missing package
        left_out.append(f"film: {error}")
        files[CARD] = curves(run, card=True)
    title, headline = title_of(named_run), (run / SUMMARY).read_text(encoding="utf-8").partition("\n")[0]
    files["index.html"] = page(
        "agent.html",
        title=title,
        headline=headline,
        facts=_facts(member),
        scores=_scores(evaluation),
        counts=counts,
        proof=proof,
        files=set(files),
        downloads=listed(files),
        left_out=left_out,
        config=config.to_toml(),
    )
    member.environments.close()
    note = f"The agent of seed {evaluation['best']}, the best of {len(evaluation['members'])}."
    return Exhibit(name, title, headline, gates, note, files, cover)


def _facts(member: Member) -> str:
    config, spaces = member.config, member.environments.spaces
    actions = "dimensions of a continuous action" if spaces.continuous else "actions"
    return (
        f"{config.subject}: {spaces.observations} observed numbers, {spaces.actions} {actions}; "
        f"{config.made_of}; {config.algorithm} for {config.steps} steps, seed {config.seed}."
    )


def _scores(evaluation: dict[str, Any]) -> list[tuple[str, str]]:
    members, baselines = evaluation["members"], evaluation["baselines"]
    agents = [(f"seed {member['seed']}", f"{member['mean']:.1f} ± {member['spread']:.1f}") for member in members]
    return agents + [(name, f"{value:.1f}") for name, value in baselines.items()]
