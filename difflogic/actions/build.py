"""`build`: build a circuit without training, from a rule, a recording, samples, an image or the task of a run.

The circuit is simplified, and then proved correct for its task or tested on its samples.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from difflogic.actions.result import ActionResult
from difflogic.actions.simplify import Simplification, simplify
from difflogic.circuits import recorded
from difflogic.circuits.export.text import Files
from difflogic.circuits.readers import rule as rules_of
from difflogic.circuits.readers import zoo
from difflogic.circuits.synthesis.convert import lean, to_xag
from difflogic.circuits.synthesis.function import live_gates
from difflogic.circuits.synthesis.layered import layered
from difflogic.circuits.synthesis.observed import observed
from difflogic.circuits.synthesis.placed import MOST_CELLS, placed, registers
from difflogic.circuits.synthesis.simplify import OnPass, silent
from difflogic.config import customise, dataset, presets
from difflogic.config.dataset import Dataset
from difflogic.config.fields import hint, in_tables, merged
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.values import Size, coerced
from difflogic.core import patterns, rules
from difflogic.core.neighbourhoods import contradiction
from difflogic.engine import job
from difflogic.errors import ConfigError, UsageError
from difflogic.evaluation import proof, proof_file
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import attempts, checkpoint, chosen, manifest
from difflogic.runs.checkpoint import Checkpoint, ModelState
from difflogic.runs.folder import RunFolder
from difflogic.system.files import quoted
from difflogic.system.words import counted
from difflogic.train import finishing
from difflogic.train.run import AgentRun, Run

CIRCUIT = "circuit.json"
HELD_OUT = 0.2
"""Share of the pairs of states that is held out to test a rule induced from the other pairs."""
OPTIONS: dict[str, tuple[str, ...]] = {
    "a run": (),
    "a recording": ("film_frames", "set"),
    "a pattern": ("film_rule", "film_frames", "size", "set"),
    "an image": ("start", "colors", "size", "threshold", "invert", "padding", "set"),
}
"""Mapping from kinds of targets to the supported options; for other kinds, only `set` is supported."""
LEARNED: dict[str, Any] = {"data": {"held_out": 0.0}}
"""Configuration overrides for sample-based tasks, so that the circuit is built from all samples."""
KINDS = {".npz": "samples", ".gif": "a recording", ".npy": "a recording"}


@dataclass(frozen=True, eq=False, repr=False)
class Build(ActionResult):
    """Circuit built without training, and its proof or test."""

    netlist: CellNetlist
    circuit: Circuit
    """Gates of `netlist` arranged in layers, like the circuit of a run."""
    config: Config
    """Configuration with the circuit's task, and with a `model` section that describes the circuit's shape."""
    samples: Dataset | None = None

    def save(self, path: Path | str) -> Path:
        """Write a run folder that commands accept like the folder of a trained run, and return its path.

        Raises:
            RunFolderError: The folder is not empty or not writable.
        """
        state = job.TrainState.initial(job.make_job(self.config, self.circuit, self.samples))
        saved = Checkpoint((ModelState(self.config, self.circuit, state, best=0),))
        record = manifest.begin(self.config, ReferenceEngine().info, "built without training", None)
        contents = {name: text if isinstance(text, bytes) else text.encode() for name, text in self.files.items()}
        if self.samples is not None:
            contents[dataset.NAME] = self.samples.encode()
        text = manifest.to_json(manifest.end(record, manifest.BUILT, 0, self.title))
        folder = RunFolder.create(Path(path), saved, text, contents)
        folder.keep_best(saved)
        folder.close()
        return Path(path)


def build(what: str | Path | Dataset, *, effort: str = "normal", on_pass: OnPass = silent, **options: Any) -> Build:
    """Build a circuit without training, simplify it, and prove or test it.

        >>> len(difflogic.build("B3/S23").netlist.gates)
        24

    A rule is synthesized from its table. For samples or a recording, a rule is found by induction. For an image, cells
    determine their row and column by counting, and look up their colour.

    Args:
        what: A rule, such as `B36/S23`; a file with the table of a rule; a recording or samples (`.gif`, `.npy`,
            `.npz`); a pattern file, such as RLE; an image; a preset; or a run folder, for the task of the run.
        effort: Search effort, as in `simplify`.
        on_pass: Callback that receives the report of each simplification pass, as in `simplify`.
        options: Fields of `TrainRequest`: `set`, and those that describe a target, such as `size`, `colors` and
            `invert`; for a recording or pattern also `film_frames`, for a pattern also `film_rule`.

    Returns:
        The circuit and its proof or test; `ok` is True if the proof succeeds or no cell is wrong in the test.

    Raises:
        UsageError: No circuit is found, or an option is unsupported for this kind of target.
        DataError: The file cannot be read.
    """
    what = what if isinstance(what, Dataset) else chosen.path_of(what)
    config, samples, rule = _task(what, {name: value for name, value in options.items() if value not in (None, False)})
    if samples is not None and rule:
        small = simplify(rules_of.rule_netlist(rule, config.model.periodic), effort=effort, on_pass=on_pass)
        return _proved(small, config, samples, Path(rule) if rule.endswith(rules_of.SUFFIX) else None)
    if (netlist := _synthesized(config, samples)) is not None:
        return _proved(simplify(netlist, effort=effort, on_pass=on_pass), config, samples)
    if samples is not None and (known := _of_zoo(samples, config.model.periodic)) is not None:
        return _proved(known, config, samples)
    if not can_build(config) and (config.train.asynchronous or config.task.target == "rule"):
        why = "a rule requires single steps in which all cells are updated"
    elif samples is None:
        why = f"a lookup circuit requires an image of at most {MOST_CELLS} cells with eight neighbours, no damage, and "
        why += "enough steps to grow from one cell or a border"
    elif (pairs := samples.single_steps()) is None:
        why = "samples must contain every channel of each cell after the first step"
    else:
        why = contradiction(pairs.x, pairs.y[:, 0], config.model.periodic, config.model.neighbourhood)
        why = why or "no simple rule explains all samples"
    raise UsageError(f"Cannot build a circuit for {config.name} without training: {why}. Train one instead.")


def can_build(config: Config) -> bool:
    """Return whether `build` supports the task of `config`. For samples, it may still find no rule."""
    if config.train.asynchronous or config.task.target == "rule":
        return not config.train.asynchronous and config.task.steps == 1
    is_image = config.task.target == "picture" and registers(config) is not None
    return config.can_be_searched and (is_image or config.task.target == "data")


def command_for(run: Run | AgentRun) -> str | None:
    """Return a `build` command to suggest for the task of an unsolved run, or None if `build` does not support it."""
    if run.solved or not isinstance(run.config, Config) or not can_build(run.config):
        return None
    what = run.config.task.rule or (None if run.path is None else quoted(run.path))
    return what and f"difflogic build {what} -o built"


def _task(what: str | Path | Dataset, options: dict[str, Any]) -> tuple[Config, Dataset | None, str | None]:
    """Return the configuration, samples and rule of the target `what`. Raises UsageError, ConfigError or DataError."""
    kind, path = ("samples", Path("data")) if isinstance(what, Dataset) else (_kind(Path(what)), Path(what))
    if refused := [name for name in options if name not in OPTIONS.get(kind, ("set",))]:
        raise UsageError(f"`{refused[0]}` does not apply to {kind}: omit it.")
    if kind == "a run":
        return _of_run(path)
    rule, samples, notation = rules_of.named(path), None, ""
    file = Path(rule) if rule is not None and rule.endswith(rules_of.SUFFIX) else path
    name = customise.named(file) if rule is None or file.exists() else rule.replace("/", "")[:100]
    fields = merged({} if kind == "a preset" else {"name": name}, in_tables(options.pop("set", {})))
    if rule is not None and (samples := rules_of.samples(rule, str(path))) is not None:
        notation = (file.stem if file.exists() else rule) + rules.grid(str(path))
    elif kind in ("a rule", "a preset"):
        stated = rule if rule is None or path.exists() else str(path)  # a notation may include a grid size
        request = TrainRequest(str(path) if rule is None else None, rule=stated, set=fields)
    elif kind == "an image":
        # Cells store their row and column, so the image is stable without a clock and a latch.
        request = TrainRequest.of(target=path, set=merged({"task": {"stays": False}}, fields), **options)
    else:
        samples, rule, notation = _recorded(what, kind, options)
    if samples is not None:
        own = {"task": {"rule": notation}, "model": {"periodic": rules.bounds(notation)[1]}} if rule else {}
        request = TrainRequest(data=samples, set=merged(LEARNED | own, fields))
    config = customise.configure(request).config
    if kind == "an image" and "steps" not in fields.get("task", {}):
        # Row and column numbers spread one cell per step, from the middle or from both borders.
        config = config.with_(task={"steps": (max(config.task.height, config.task.width) + 1) // 2 + 2})
    return config, samples, rule


def _of_run(path: Path) -> tuple[Config, Dataset | None, str | None]:
    """Return the configuration, samples and rule of a run's task. Raises UsageError or DataError."""
    model = chosen.load(path)
    config = attempts.read(path).config if attempts.is_in(path) else model.config
    if not isinstance(config, Config):
        raise UsageError(f"The run in {path} trains agents: expected a run of automata.")
    config, samples = config if config.task.target != "data" else config.with_(**LEARNED), model.data()
    return config, samples, rules_of.located(config.task.rule, model.path)


def _recorded(what: str | Path | Dataset, kind: str, options: dict[str, Any]) -> tuple[Dataset, str | None, str]:
    """Return samples, and their rule and its notation (None or "" if unknown). Raises UsageError or DataError."""
    if "size" in options:
        options["size"] = coerced("size", Size, options["size"])[::-1]
    arguments = {name.removeprefix("film_"): value for name, value in options.items()}
    if isinstance(what, Dataset):
        return what, None, ""
    if kind == "samples":
        return dataset.load(Path(what)), None, ""
    samples = recorded.samples(Path(what), **arguments)
    notation = recorded.notation(Path(what), arguments.get("rule")) if kind == "a pattern" else ""
    if rule := notation and rules_of.named(Path(notation)):
        # A pattern may not contain all states of its rule.
        unseen = (0, rules_of.rule_netlist(rule, periodic=True).channels - samples.x.shape[-1])
        x, y = np.pad(samples.x, [(0, 0)] * 3 + [unseen]), np.pad(samples.y, [(0, 0)] * 4 + [unseen])
        samples = Dataset(x, y, samples.steps)
    return samples, rule, notation


def _kind(path: Path) -> str:
    """Return the kind of a target, such as `a rule`. Raises UsageError if it is not a rule, preset or file."""
    if rules_of.named(path) is not None:
        return "a rule"
    if checkpoint.is_in(path) or attempts.is_in(path):
        return "a run"
    if str(path) in presets.PRESETS:
        return "a preset"
    if not path.exists() and not path.suffix:
        try:
            rules.table(str(path))
        except ConfigError as error:
            meant = hint(str(path), presets.PRESETS)
            raise UsageError(f"Unknown file or preset {path}{meant}, and {error}") from error
    if patterns.is_pattern(path):
        return "a pattern"
    if path.suffix == ".txt":
        customise.load_rule(path)  # raises an error that says what is wrong with the table
    return "samples" if path.is_dir() else KINDS.get(path.suffix.lower(), "an image")


def _synthesized(config: Config, samples: Dataset | None) -> CellNetlist | None:
    """Synthesize the circuit of a rule, of samples (by induction) or of an image; None if no circuit is found."""
    model = config.model
    if not can_build(config):
        return None
    if config.task.target == "rule":
        return rules_of.rule_netlist(config.task.rule, model.periodic)
    graph = placed(config) if samples is None else observed(samples, model.periodic, model.neighbourhood)
    if graph is None:
        return None
    return lean(CellNetlist.of_run(layered(graph, model.periodic, model.neighbourhood), config))


def _of_zoo(samples: Dataset, periodic: bool) -> Simplification | None:
    """Return a circuit of the zoo (such as a self-replicating loop) that reproduces all pairs of states, or None."""
    if (pairs := samples.single_steps()) is None:
        return None
    for name in zoo.names():
        entry = zoo.entry(name)
        if (data := entry.get("circuit", entry)).get("channels") == pairs.x.shape[-1]:
            netlist = replace(netlist_json.from_data(data), periodic=periodic, scenario=None)
            if not _wrong(netlist, pairs):
                text = f"No simple rule explains the pairs, but {name} of the zoo does."
                return Simplification("", (text,), {}, {}, netlist, ())
    return None


def _proved(small: Simplification, task: Config, samples: Dataset | None, file: Path | None = None) -> Build:
    """Prove that a simplified circuit is correct for its task or rule, or test it on all samples."""
    netlist = cast("CellNetlist", small.netlist)
    circuit = layered(to_xag(netlist), netlist.periodic, netlist.neighbourhood)
    config = finishing.fitted(task.with_(model={"neighbourhood": netlist.neighbourhood}), circuit)
    files: Files = {CIRCUIT: netlist_json.to_json(netlist)}
    facts: dict[str, Any]
    if samples is None or config.task.rule:
        evidence = proof.decide(proof.of_circuit(netlist, config, file or Path(config.name)))
        files |= proof_file.files_of(evidence)
        words, facts, is_right = [evidence.text], {"proved": evidence.proved}, bool(evidence.proved)
        if file is not None:
            files[rules_of.FILE] = netlist_json.read_text(file)
    else:
        words, facts = _tested(netlist, config, samples.single_steps() or samples)
        is_right = not facts["wrong"]
    name, rule = config.name, config.task.rule
    name = rule if name == rule.replace("/", "") else name
    title = f"{name}: {counted(live_gates(netlist), 'gate')} per cell, built without training"
    report = {name: value for name, value in small.report.items() if name not in ("kind", "steps")} | facts
    lines, ok = (*words, *small.words), small.ok and is_right
    return Build(title, lines, report, files, netlist, circuit, config, samples, ok=ok, stopped=small.stopped)


def _tested(netlist: CellNetlist, config: Config, pairs: Dataset) -> tuple[list[str], dict[str, Any]]:
    """Count wrong cells of a circuit in all pairs, and of a rule induced from some pairs in the held-out pairs."""
    facts: dict[str, Any] = {"pairs": len(pairs), "wrong": _wrong(netlist, pairs), "held_out": None}
    right = f"It has {counted(facts['wrong'], 'wrong cell')} in all {counted(len(pairs), 'pair')} of states."
    few, rest = pairs.split(HELD_OUT)
    text = "There is only one pair of states, so none is held out for a test."
    if rest is not few:
        induced = _synthesized(config, few)
        wrong = None if induced is None else _wrong(induced, rest)
        facts["held_out"] = {"pairs": len(rest), "wrong": wrong}
        held_out = counted(len(rest), "held-out pair")
        text = f"No rule was found from {len(few)} of them, so {held_out} could not be tested."
        if wrong is not None:
            text = f"A rule induced from {len(few)} of them has {counted(wrong, 'wrong cell')} in {held_out}."
    return [right, text], facts


def _wrong(netlist: CellNetlist, pairs: Dataset) -> int:
    """Return the number of cells that differ from the targets in `pairs` after one step."""
    wrong = (netlist.rollout(pairs.x, 1)[-1] != pairs.y[:, 0]) & (pairs.y[:, 0] >= 0)
    return int(wrong.any(axis=-1).sum())
