"""A gallery: `index.html`, and for each run a folder of plain files, which any web server can host.

Of a run it shows the living automaton, its film, losses, gates, circuit, and every export that fits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from difflogic.circuits.export import formats
from difflogic.circuits.export.text import Files, identifier
from difflogic.circuits.synthesis.convert import gate_count, gates_once
from difflogic.circuits.synthesis.function import live_gates
from difflogic.circuits.synthesis.simplify import OnPass, Simplified, silent, simplified
from difflogic.errors import DifflogicError, RunFolderError, UsageError
from difflogic.evaluation import evaluate, proof, trained_circuit
from difflogic.evaluation.render import Look, RenderSpec, rollout_picture
from difflogic.evaluation.report import page
from difflogic.evaluation.trained_circuit import TrainedCircuit
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.statistics import active_gates, census
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import manifest, plots, run_list
from difflogic.runs.journal import CSV
from difflogic.system.files import Output, inside
from difflogic.system.words import counted

INDEX = "index.html"
RULE_SIDE, RULE_STEPS = 48, 60
"""A rule is learned on boards of nine cells, where there is little to see: it is shown on so many, for so long."""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A folder `name` with `files`, by their path in it, and what the gallery says of it."""

    name: str
    title: str
    headline: str
    counts: str
    told: str
    """Which circuit of the run it is, in one sentence."""
    files: Files
    cover: str = "film.gif"
    """What the gallery shows of it."""


def exhibit(run: Path, name: str, on_pass: OnPass = silent) -> Exhibit:
    """The exhibit of a run; of a population, of its best model. The circuit is simplified, and proved to be the same,
    before it is shown.

    `on_pass` hears of each pass of that. Raises CheckpointError where there is no trained circuit, RunFolderError where
    the metrics or the evaluation cannot be read.
    """
    trained = trained_circuit.load(run)
    netlist = CellNetlist.of_run(trained.circuit, trained.config)
    # What visitors take home is the simplified circuit. The film is of the trained one, which it is proved equal to.
    found = simplified(netlist, on_pass)
    spec = RenderSpec()
    if (task := trained.config.task).target == "rule":
        spec = RenderSpec(task.on_side(RULE_SIDE), RULE_STEPS)
    files: Files = {"film.gif": rollout_picture(ReferenceEngine(), trained, spec, Look(), "gif")}
    files["gates.png"] = plots.gates_png(census(trained.circuit), "gates by layer")
    if trained.rows:
        files["loss.png"] = plots.loss_png(trained.rows, trained.config, trained.title)
    files |= _downloads(trained, netlist, name)
    left_out = add_exports(files, found.netlist, name)
    counts = _counts(trained, netlist, found)
    heading = manifest.read(trained.path).get("result", "")
    files["index.html"] = page(
        "exhibit.html",
        title=trained.title,
        headline=heading,
        every_start="" if (certain := proof.at_once(trained)) is None else certain.text,
        facts=_facts(trained),
        counts=counts,
        proof=f"{'Proved equal' if found.verdict.equal else 'NOT proved equal'}: {found.verdict.how}.",
        steps=found.steps,
        files=set(files),
        measures=_measures(trained),
        downloads=listed(files),
        left_out=left_out,
        config=trained.config.to_toml(),
    )
    brief = f"{gate_count(found.netlist)} gates, {found.netlist.channels} of {netlist.channels} channels"
    return Exhibit(name, trained.title, heading, brief, trained.told, files)


def add_exports(files: Files, netlist: CellNetlist | FunctionNetlist, name: str) -> list[str]:
    """Add every export that fits, what the page itself shows by its names for them; return what does not, and why."""
    # A circuit may be too large for a drawing, or have too many channels for Golly.
    exports, left_out = formats.exports(netlist, name)
    for form, made in exports.items():
        for file, content in made.items():
            files[formats.SHOWN.get(form, f"files/{file}")] = content
    return [f"{form}: {why}" for form, why in left_out.items()]


def _downloads(trained: TrainedCircuit, netlist: CellNetlist, name: str) -> Files:
    """The run's own: every gate, its configuration, its metrics."""
    files: Files = {
        f"files/{name}_as_trained.json": netlist_json.to_json(netlist),
        "files/config.toml": trained.config.to_toml(),
    }
    if (trained.path / CSV).exists():
        files[f"files/{CSV}"] = (trained.path / CSV).read_bytes()
    return files


def _facts(trained: TrainedCircuit) -> str:
    config = trained.config
    task, train, model = config.task, config.train, config.model
    timing = f"each updated with a chance of {train.fire_rate:g}" if train.asynchronous else "all updated in each step"
    return (
        f"{model.gates} soft gates trained for {trained.epoch} epochs; {task.width}x{task.height} cells of "
        f"{counted(model.channels, 'channel')}, {timing}, compared after {counted(task.steps, 'step')}; the grid "
        f"{'wraps around' if model.periodic else 'is 0 outside'}; start: {task.start}."
    )


def _counts(trained: TrainedCircuit, netlist: CellNetlist, found: Simplified[CellNetlist]) -> list[tuple[str, int]]:
    return [
        ("gates per cell", live_gates(netlist)),
        ("gates per cell, simplified", gate_count(found.netlist)),
        ("soft gates", trained.config.model.gates),
        ("active soft gates: neither A nor B, as the paper counts", active_gates(trained.circuit.flat_logits())),
        ("the same, a gate that sees one channel alone once for all channels", gates_once(found.netlist)),
    ]


def _measures(trained: TrainedCircuit) -> list[dict[str, str]]:
    """Return what `difflogic evaluate` found, where it was asked and the run is still the same."""
    path = None if trained.folder is None else trained.folder / evaluate.NAME
    if path is None or not path.exists():
        return []
    current = (evaluate.FORMAT, evaluate.VERSION, trained.config.seed, trained.epoch)
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        # A run that trained on since has another circuit, of which these figures would be false.
        if tuple(kept[key] for key in ("format", "version", "seed", "epoch")) != current:
            return []
        return [{key: each[key] for key in ("title", "text", "paper")} for each in kept["measures"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunFolderError(f"{path} is not an evaluation: remove it, or ask `difflogic evaluate` again.") from error


def listed(files: Files) -> list[tuple[str, str, str]]:
    """The name of each file to take home, its path, and its size in words."""
    taken = sorted(each for each in files.items() if each[0].startswith("files/"))
    return [(path.partition("/")[2], path, _size(content)) for path, content in taken]


def _size(content: str | bytes) -> str:
    count = len(content if isinstance(content, bytes) else content.encode())
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"


def names_of(runs: list[Path]) -> Iterator[tuple[Path, str]]:
    """Each run with a folder's name of its own, a word in every language."""
    taken: set[str] = set()
    for run in runs:
        stem = word = identifier(run.resolve().name)
        number = 1
        while word in taken:
            number += 1
            word = f"{stem}_{number}"
        taken.add(word)
        yield run, word


def runs_in(paths: Sequence[Path]) -> list[Path]:
    """The run folders that `paths` are or hold, each once, in order.

    Raises RunFolderError for a path that is no folder, UsageError where there is no run.
    """
    # A folder and a run in it may both be named: the run is shown once, where it came first.
    found = list(dict.fromkeys(run for path in paths for run in run_list.find(path)))
    if not found:
        raise UsageError(f"There is no run in {', '.join(map(str, paths))}: expected run folders, or folders of them.")
    return found


def check_out(out: Path, force: bool) -> None:
    """Raises UsageError where `out` is no place for a gallery, before any work is done for it."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: name a folder.")
    if not force and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"The folder {out} is not empty: --force replaces the pages in it, --out names another.")


def write_exhibit(out: Path, exhibit: Exhibit) -> None:
    """Raises DifflogicError where the disk refuses, or a link leads out of the gallery."""
    for file, content in exhibit.files.items():
        _write(inside(out / exhibit.name / file, out), content)


def write_index(out: Path, exhibits: Sequence[Exhibit]) -> None:
    """The page that leads to them; last, so that it never leads nowhere. Raises DifflogicError."""
    _write(inside(out / INDEX, out), page(INDEX, exhibits=exhibits))


def _write(path: Path, content: str | bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DifflogicError(f"Cannot write {path}: {error.strerror or error}.") from error
    Output(path, force=True).write(content if isinstance(content, bytes) else content.encode())
