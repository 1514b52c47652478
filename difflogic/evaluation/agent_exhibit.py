"""Agents in a gallery: an episode of the best one, returns, gates, controller, and every export that fits."""

from pathlib import Path
from typing import Any

from difflogic.circuits.export.text import Files
from difflogic.circuits.synthesis import function as synthesis
from difflogic.circuits.synthesis.function import live_gates
from difflogic.circuits.synthesis.simplify import OnPass, Simplified, silent
from difflogic.errors import MissingPackagesError, RunFolderError, UsageError
from difflogic.evaluation.gallery import Exhibit, add_exports, listed, title_of
from difflogic.evaluation.report import page
from difflogic.model import function_json
from difflogic.model.controller import Controller
from difflogic.model.statistics import census
from difflogic.policies import controllers, film, results
from difflogic.policies.actors import LogicActor
from difflogic.policies.member import Member, restored
from difflogic.policies.results import RETURNS, SUMMARY, curves
from difflogic.runs import chosen, plots
from difflogic.runs.journal import CSV

STEPS, FRAME_MS = 500, 40
CARD = "card.png"
"""Image in the gallery if there is no film: the returns, square like films."""


def exhibit(run: Path, name: str, on_pass: OnPass = silent) -> Exhibit:
    """Exhibit the best agent of a run that has ended: see `evaluation.gallery.exhibit`.

    Raises CheckpointError, RunFolderError if the run has not ended.
    """
    named, run = run, chosen.run_folder(run)
    scored = results.read(run)
    if not scored:
        raise RunFolderError(f"The training of the agents in {run} has not ended: continue it with --resume.")
    best = next(each for each in scored["members"] if each["seed"] == scored["best"])
    member = restored(run, scored["members"].index(best) + 1)
    config, actor = member.config.require_episodes(), member.agent.actor
    files: Files = {RETURNS: curves(run)}
    given, found = None, None
    if isinstance(actor, LogicActor):
        files["gates.png"] = plots.gates_png(census(actor.circuit), "gates by layer")
        if not member.environments.spaces.continuous:
            given = controllers.of_actor(actor, config.environment.id, member.environments.spaces)
            found = synthesis.simplified(given, on_pass)
    files |= {f"files/{each}": (run / each).read_bytes() for each in ("config.toml", CSV)}
    if found is None:
        left_out = ["a controller: only gates that choose between discrete actions end as one."]
    else:
        files[f"files/{function_json.NAME}"] = (run / function_json.NAME).read_bytes()
        left_out = add_exports(files, found.netlist, name)
    cover = CARD
    try:
        files["film.gif"] = film.encoded(film.of_agent(member, STEPS, given), ".gif", FRAME_MS)
        cover = "film.gif"
    except (UsageError, MissingPackagesError) as error:  # it draws nothing, or its painter is not installed
        left_out.append(f"film: {error}")
        files[CARD] = curves(run, card=True)
    title, headline = title_of(named), (run / SUMMARY).read_text(encoding="utf-8").partition("\n")[0]
    files["index.html"] = page(
        "agent.html",
        title=title,
        headline=headline,
        facts=_facts(member),
        scores=_scores(scored),
        counts=_counts(given, found),
        proof=""
        if found is None
        else f"{'Proved equal' if found.verdict.equal else 'NOT proved equal'}: {found.verdict.how}.",
        files=set(files),
        downloads=listed(files),
        left_out=left_out,
        config=config.to_toml(),
    )
    member.environments.close()
    counts = "no controller" if found is None else f"{live_gates(found.netlist)} gates, {config.environment.id}"
    told = f"The agent of seed {scored['best']}, the best of {len(scored['members'])}."
    return Exhibit(name, title, headline, counts, told, files, cover)


def _facts(member: Member) -> str:
    config, spaces = member.config, member.environments.spaces
    actions = "dimensions of a continuous action" if spaces.continuous else "actions"
    return (
        f"{config.subject}: {spaces.observations} numbers are seen, {spaces.actions} {actions}; "
        f"{config.made_of}; {config.algorithm} for {config.steps} steps, seed {config.seed}."
    )


def _scores(scored: dict[str, Any]) -> list[tuple[str, str]]:
    agents = [(f"seed {each['seed']}", f"{each['mean']:.1f} ± {each['spread']:.1f}") for each in scored["members"]]
    return agents + [(name, f"{value:.1f}") for name, value in scored["baselines"].items()]


def _counts(given: Controller | None, found: Simplified[Controller] | None) -> list[tuple[str, int]]:
    if given is None or found is None:
        return []
    return [
        ("gates, the decision included", live_gates(given)),
        ("gates, simplified", live_gates(found.netlist)),
        ("thresholds, as trained", given.inputs),
        ("thresholds, simplified", found.netlist.inputs),
    ]
