"""`evaluate`: test a run beyond its training: automata by the tests for their task, agents in new episodes."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from difflogic.actions import accuracy
from difflogic.actions.result import ActionResult, ResultTable
from difflogic.circuits.export.text import Files
from difflogic.circuits.readers import source
from difflogic.config.dataset import Dataset
from difflogic.config.table import LabelledTable
from difflogic.engine.api import Engine
from difflogic.errors import UsageError
from difflogic.evaluation import evaluate as automata
from difflogic.evaluation.evaluate import FORMAT, NAME, VERSION, RunEvaluation
from difflogic.evaluation.measure import Measure
from difflogic.evaluation.report import to_html
from difflogic.evaluation.suite import Test
from difflogic.model.statistics import Layer
from difflogic.policies import controllers
from difflogic.policies.automaton import ZeroedCells
from difflogic.policies.environments import limit_notice, spaces_of, threshold
from difflogic.policies.evaluate import Score, baselines
from difflogic.policies.member import restored
from difflogic.runs import checkpoint, chosen, plots
from difflogic.runs.chosen import Source, path_of
from difflogic.version import __version__

REPORT, ROBUSTNESS = "report.html", "robustness.png"
EPISODES, QUICK_EPISODES = 100, 20
COMPARED = {None: "", True: "as good", False: "not as good"}


@dataclass(frozen=True, eq=False, repr=False)
class RunResults(ActionResult):
    """Results of all tests, indexed by the key of a test, as in `evaluation["accuracy"].values`."""

    measures: tuple[Measure, ...]
    layers: tuple[Layer, ...] = ()
    """Gate statistics of each layer of an automaton."""

    def __getitem__(self, key: str) -> Measure:
        """Return the result of the test `key`. Raises KeyError if the test does not apply to the run."""
        return {measure.key: measure for measure in self.measures}[key]


def evaluate(
    run: Source,
    engine: Engine | None = None,
    *,
    starts: int | None = None,
    quick: bool = False,
    member: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
    data: Dataset | LabelledTable | None = None,
    settings: Mapping[str, Any] | None = None,
    faults: Iterable[Test] = (),
    damage: int | None = None,
    html: bool = False,
    called: str | None = None,
) -> RunResults:
    """Test the discrete circuit of a run with every test for its task, or agents in new episodes.

        >>> evaluation = difflogic.evaluate(folder, engine, starts=1)
        >>> evaluation["accuracy"].values["samples"]
        1

    Args:
        run: A run, its folder or a checkpoint file; or the file of a controller or classifier.
        engine: Engine for rollouts; None: the GPU of the run, or the CPU engine.
        starts: Number of new initial states (default 64, `quick` 8) or of episodes (default 100, `quick` 20).
        quick: Use fewer initial states, and a tenth of the steps of long tests.
        member: Number of a model in a population, from 1; None: the best model, or all agents.
        tell: Callback that receives each result as text.
        data: Samples, or a table for a classifier, instead of the held-out samples of the run.
        settings: Settings with which a task in Python generates new samples; None: the settings of the run.
        faults: Additional tests, such as `difflogic.evaluation.faults.FaultTests`.
        damage: Number of cells set to 0 while an agent's automaton chooses an action; adds scores for this damage.
        html: Whether to add an HTML report with animations.
        called: Name of the run in the results; None: its path.

    Returns:
        The results of all tests, by key.

    Raises:
        UsageError: An argument does not apply to the run.
        CheckpointError: There is no usable, trained checkpoint.
    """
    path = path_of(run)
    if starts is not None and starts < 1:
        raise UsageError(f"`starts` must be at least 1, got {starts}.")
    automata_alone = {"--set": settings, "--html": html, "a test of faults": list(faults)}
    if accuracy.is_classifier(path):
        others = {"--starts": starts, "--quick": quick, "--member": member, "--damage": damage}
        _refuse(others | automata_alone, f"does not apply to the classifier {path}")
        return _of_classifier(path, data, called)
    if isinstance(data, LabelledTable):
        raise UsageError(f"A table requires a classifier, but {path} is not one: omit --label.")
    if source.is_of_agents(path):
        _refuse({"--data": data} | automata_alone, f"is for automata, but {path} contains agents")
        return _of_agents(path, starts or (QUICK_EPISODES if quick else EPISODES), quick, member, damage, called, tell)
    if damage is not None:
        raise UsageError("--damage is for agents: automata that grow an image are always tested with damage.")
    evaluation = automata.evaluate(
        path, engine, starts=starts, quick=quick, member=member, tell=tell, data=data, settings=settings, faults=faults
    )
    if called is not None:
        evaluation = replace(evaluation, trained=replace(evaluation.trained, path=Path(called)))
    return _of_automaton(evaluation, html)


def _refuse(options: Mapping[str, Any], why: str) -> None:
    if unused := [name for name, value in options.items() if value]:
        raise UsageError(f"{unused[0]} {why}: omit it.")


def _of_automaton(evaluation: RunEvaluation, html: bool) -> RunResults:
    rows = [(each.title, each.text, each.paper, COMPARED[each.met]) for each in evaluation.measures]
    gates = evaluation.gates
    paper = "" if gates["paper_active"] is None else str(gates["paper_active"])
    rows.append(("gates per cell", str(evaluation.live_gates), "", ""))
    rows.append(("active soft gates: neither A nor B", f"{gates['active']} of {gates['gates']}", paper, ""))
    rows.append(("unconverged soft gates: below 90 %", str(gates["undecided"]), "", ""))
    table = ResultTable(("test", "result", "the paper's circuit", "comparison"), rows, prose=True)
    where = [f"{layer.name}: {layer.undecided}" for layer in evaluation.layers if layer.undecided]
    words = (f"Unconverged by layer: {', '.join(where)}",) if where else ()
    files = evaluation.files()
    if html:
        files[REPORT] = to_html(evaluation)
    trained, measures, layers = evaluation.trained, evaluation.measures, evaluation.layers
    title, report, told = f"{trained.title}, on {evaluation.engine}", evaluation.to_dict(), trained.told
    return RunResults(title, words, report, files, measures, layers, told=told, table=table, folder=trained.folder)


def _of_agents(
    path: Path,
    count: int,
    quick: bool,
    member: int | None,
    damage: int | None,
    called: str | None,
    tell: Callable[[str], None],
) -> RunResults:
    identifier, least, scores = _scores(path, count, member, damage)
    if (notice := limit_notice(identifier)) is not None:
        tell(notice)
    measures = []
    for name, score in scores:
        measures.append(_measure(name, score, least))
        tell(f"{name}: {measures[-1].text}")
    for name, mean in baselines(identifier, spaces_of(identifier), count, controllers.FRESH).items():
        measures.append(Measure(name.replace(" ", "-"), name, f"mean return {mean:.1f}", {"mean": mean}))
    title = f"{identifier}, {count} new episodes"
    about = {"run": called or str(path), "name": identifier, "starts": count, "quick": quick}
    return _of_measures(title, "policy", measures, about)


def _of_classifier(path: Path, data: Dataset | LabelledTable | None, called: str | None) -> RunResults:
    if data is not None and not isinstance(data, LabelledTable):
        raise UsageError(f"The classifier {path} requires a difflogic.LabelledTable, got {type(data).__name__}.")
    measures = [*accuracy.measures(path, data)]
    rows = int(measures[0].values["rows"])
    about = {"run": called or str(path), "name": path.name, "starts": rows, "quick": False}
    return _of_measures(f"{path.name}: {rows} rows", "class", measures, about)


def _of_measures(title: str, header: str, measures: Sequence[Measure], about: Mapping[str, Any]) -> RunResults:
    """Return the results of agents or a classifier; `header` heads the first column, `about` extends the report."""
    head = {"format": FORMAT, "version": VERSION, "difflogic": __version__}
    report = {**head, **about, "measures": [measure.to_dict() for measure in measures]}
    table = ResultTable((header, "result"), [(each.title, each.text) for each in measures], prose=True)
    files: Files = {NAME: json.dumps(report, allow_nan=False) + "\n"}
    return RunResults(title, (), report, files, tuple(measures), table=table)


def _measure(name: str, score: Score, least: float) -> Measure:
    values: dict[str, float] = {"mean": score.mean, "spread": score.spread, "least": min(score.returns)}
    values |= {"mean_length": score.mean_length, "episodes": len(score.returns)}
    text = f"mean return {score.mean:.1f} +- {score.spread:.1f}, least {values['least']:.1f}, "
    text += f"mean length {score.mean_length:.1f}"
    if math.isfinite(least):
        values |= {"threshold": least, "reached": score.reached(least)}
        text += f"; {score.reached(least)} of {len(score.returns)} reached {least:g}"
    return Measure(name.replace(" ", "-"), name, text, values)


def _scores(
    path: Path, count: int, member: int | None, damage: int | None
) -> tuple[str, float, Iterator[tuple[str, Score]]]:
    """Return the environment, its threshold, and an iterator over scores of a controller or agents, by name.

    `count` is the number of episodes, `member` the number of an agent from 1, or None for all agents.
    """
    if path.is_dir():
        saved = checkpoint.read_agents(chosen.run_folder(path))
        numbers = range(1, len(saved.members) + 1) if member is None else [member]
        scores = (each for number in numbers for each in _scores_of_agent(path, number, count, damage))
        config = saved.members[0].config
        return config.subject, config.evaluation.threshold, scores
    if damage is not None:
        raise UsageError(f"--damage requires the run of a policy automaton, got the file {path}.")
    controller = source.controller(path)
    if controller is None:
        raise UsageError(f"{path} does not contain a controller.")
    identifier = controller.environment
    played = ((path.name, controllers.score(each, count, controllers.FRESH)) for each in [controller])
    return identifier, threshold(identifier), played


def _scores_of_agent(path: Path, number: int, count: int, damage: int | None) -> Iterator[tuple[str, Score]]:
    member = restored(path, number)
    yield f"seed {member.seed}", member.evaluate(count, controllers.FRESH)
    for damaged in [] if damage is None else [ZeroedCells(damage, every_step) for every_step in (False, True)]:
        damaged.on(member.agent.actor)
        yield f"seed {member.seed}, {damaged}", member.evaluate(count, controllers.FRESH)
    member.environments.close()


def beside(evaluations: Mapping[str, RunResults]) -> ActionResult:
    """Compare evaluations (by run name) in a table with a row per test and a column per run.

    All robustness curves are drawn in one image. Raises UsageError if the runs have no test in common.
    """
    titles = {measure.key: measure.title for each in evaluations.values() for measure in each.measures}
    texts = [{measure.key: measure.text for measure in each.measures} for each in evaluations.values()]
    shared = [key for key in titles if sum(key in each for each in texts) > 1]
    if not shared:
        raise UsageError("The runs have no test in common: compare runs of similar tasks.")
    rows = [(title, *(each.get(key, "") for each in texts)) for key, title in titles.items()]
    curves = {
        name: (measure.curve, int(measure.values["values"] / measure.values["samples"]))
        for name, each in evaluations.items()
        for measure in each.measures
        if measure.key == "robustness"
    }
    files: Files = {ROBUSTNESS: plots.errors_png(curves)} if curves else {}
    table = ResultTable(("test", *evaluations), rows, prose=True)
    report = {"runs": {name: each.report for name, each in evaluations.items()}}
    notes = "\n".join(each.told for each in evaluations.values() if each.told)
    return ActionResult("", (), report, files, told=notes, table=table)
