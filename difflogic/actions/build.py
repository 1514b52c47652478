"""`build`: a circuit made without training, from a rule, a recording or samples, an image, or the task of a run."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from difflogic.actions.result import ActionResult
from difflogic.circuits import recorded
from difflogic.circuits.export.text import Files, about
from difflogic.circuits.readers import rule, source
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.circuits.synthesis.layered import layered
from difflogic.circuits.synthesis.observed import observed
from difflogic.circuits.synthesis.placed import placed
from difflogic.config import dataset, presets
from difflogic.config.customise import configure
from difflogic.config.dataset import Dataset
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.engine import job
from difflogic.errors import UsageError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.runs import attempts, checkpoint, chosen
from difflogic.train import finishing

CIRCUIT = "circuit.json"
OF_TABLE = "It is made from the table of the rule."
RECORDINGS = (".gif", ".npy", ".rle", ".cells")
USUAL = "lizard"
"""The preset whose grid, steps and initial state an image is built for."""


@dataclass(frozen=True, eq=False, repr=False)
class Build(ActionResult):
    """A circuit that was built, and what it was tested on."""

    netlist: CellNetlist


def build(what: str | Path | Dataset, frames: int | None = None) -> Build:
    """Make a circuit without training.

        >>> len(difflogic.build("B3/S23").netlist.gates) > 0
        True

    A rule is built from its table, a rule that samples or a recording show is found by induction, and an image is
    looked up by cells that count their place.

    Args:
        what: A rule, as `B36/S23`; a file with a rule's table; a recording or samples, `.gif`, `.npy`, `.npz`, or a
            pattern, `.rle` or `.cells`; an image; a preset; or a run folder, whose task is built.
        frames: Use only so many first frames of a recording.

    Returns:
        The circuit, and whether it is right on all that it was tested on.

    Raises:
        UsageError: No circuit of this kind is found.
        DataError: The file cannot be read.
    """
    if isinstance(what, str | PathLike) and rule.named(Path(what)) is not None:
        held = source.load(Path(what))
        return _made(held.name, held.netlist, OF_TABLE)
    config, samples = _task(what, frames)
    if config.task.target == "rule":
        return _made(config.name, rule.rule_netlist(config.task.rule, config.model.periodic), OF_TABLE)
    circuit = synthesized(config, samples)
    if circuit is None:
        lookup = "a lookup circuit is for an image that nothing disturbs, from one initial cell or within a border"
        why = "no simple rule explains all samples" if samples is not None else lookup
        raise UsageError(f"No circuit is built without training for the task of {config.name}: {why}. Train it.")
    config = finishing.fitted(config, circuit)
    netlist = CellNetlist.of_run(circuit, config)
    if samples is None:
        states = netlist.rollout(job.probes(config)[:1], config.task.steps)[list(config.task.judged_steps)]
        wrong = int((states[..., : netlist.visible] != job.fixed_target(config.task)).sum())
        return _made(config.name, netlist, f"It shows the image after {config.task.steps} steps.", wrong)
    pairs = samples.single_steps() or samples
    states = netlist.rollout(pairs.x, 1)[-1]
    wrong = int(((states != pairs.y[:, 0]) & (pairs.y[:, 0] >= 0)).sum())
    return _made(config.name, netlist, f"It is right on all {len(pairs.x)} pairs of states.", wrong)


def synthesized(config: Config, samples: Dataset | None) -> Circuit | None:
    """Return a circuit that does what samples show, or that shows the image; None if none is found."""
    model, graph = config.model, None
    if config.train.asynchronous or not config.can_be_searched:
        return None
    if samples is not None:
        graph = observed(samples, model.periodic, model.neighbourhood)
    elif config.task.target == "picture":
        graph = placed(config)
    return None if graph is None else layered(graph, model.periodic, model.neighbourhood)


def _task(what: str | Path | Dataset, frames: int | None) -> tuple[Config, Dataset | None]:
    """Return the configuration of a task, and its samples, if it has any. Raises UsageError, DataError."""
    if isinstance(what, Dataset):
        return _of_samples(what), what
    path = Path(what)
    if checkpoint.is_in(path) or attempts.is_in(path):
        held = chosen.load(path)
        complete = attempts.read(path).config if attempts.is_in(path) else held.config
        if not isinstance(complete, Config):
            raise UsageError(f"The run in {path} trains agents, of which no circuit is built without training.")
        return complete, held.data()
    if str(what) in presets.PRESETS:
        return configure(TrainRequest(str(what))).config, None
    if path.suffix.lower() in RECORDINGS:
        samples = recorded.samples(path, None, frames)
    elif path.is_dir() or path.suffix.lower() == ".npz":
        samples = dataset.load(path)
    else:
        return configure(TrainRequest(USUAL, target=path)).config, None
    return _of_samples(samples), samples


def _of_samples(samples: Dataset) -> Config:
    return configure(TrainRequest(data=samples, set={"data": {"held_out": 0.0}})).config


def _made(name: str, netlist: CellNetlist, right: str, wrong: int = 0) -> Build:
    words = (right if not wrong else f"{wrong} values are WRONG, which is an error in difflogic.", about(netlist))
    report = {"gates": gate_count(netlist), "channels": netlist.channels, "wrong": wrong}
    files: Files = {CIRCUIT: netlist_json.to_json(netlist)}
    title = f"{name}: built without training, {gate_count(netlist)} two-input gates per cell"
    return Build(title, words, report, files, netlist, ok=not wrong)
