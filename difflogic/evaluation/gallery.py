"""Write galleries: `index.html` and a folder of static files per run, which any web server can host.

An exhibit shows the running automaton, its animation, losses, gates and circuit, and all supported exports.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from difflogic.circuits.export import formats
from difflogic.circuits.export.text import Files, identifier
from difflogic.circuits.synthesis.function import live_gates
from difflogic.circuits.synthesis.simplify import OnPass, silent, simplified
from difflogic.errors import DifflogicError, RunFolderError, UsageError
from difflogic.evaluation import evaluate, proof, trained_circuit
from difflogic.evaluation.render import Look, RenderSpec, rollout_picture
from difflogic.evaluation.report import page
from difflogic.evaluation.trained_circuit import TrainedCircuit
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.statistics import census
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import manifest, plots, run_list
from difflogic.runs.journal import CSV
from difflogic.system.files import Output, inside

INDEX = "index.html"
RULE_SIDE, RULE_STEPS = 48, 60
"""Side of the grid and number of steps for animations of a rule, since training uses boards of only nine cells."""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """Folder `name` of a gallery: `files` maps paths in it to contents; other texts are for the gallery's index."""

    name: str
    title: str
    headline: str
    counts: str
    told: str
    files: Files
    cover: str = "film.gif"


def exhibit(run: Path, name: str, on_pass: OnPass = silent) -> Exhibit:
    """Return the exhibit of a run's trained circuit (the best model of a population), including exports.

    Args:
        run: Run folder.
        name: Name of the exhibit's folder.
        on_pass: Callback after each simplification pass.

    Raises:
        CheckpointError: If there is no trained circuit.
        RunFolderError: If metrics or evaluation cannot be read.
    """
    trained = trained_circuit.load(run)
    netlist = CellNetlist.of_run(trained.circuit, trained.config)
    # Downloads contain the simplified circuit; the animation shows the trained circuit.
    smaller = simplified(netlist, on_pass)
    spec = RenderSpec()
    if (task := trained.config.task).target == "rule":
        spec = RenderSpec(task.on_side(RULE_SIDE), RULE_STEPS)
    files: Files = {"film.gif": rollout_picture(ReferenceEngine(), trained, spec, Look(), "gif")}
    files["gates.png"] = plots.gates_png(census(trained.circuit), "gates by layer")
    if trained.rows:
        files["loss.png"] = plots.loss_png(trained.rows, trained.config, trained.title)
    files[f"files/{name}_as_trained.json"] = netlist_json.to_json(netlist)
    files["files/config.toml"] = trained.config.to_toml()
    if (trained.path / CSV).exists():
        files[f"files/{CSV}"] = (trained.path / CSV).read_bytes()
    left_out = add_exports(files, smaller.netlist, name)
    gates = live_gates(smaller.netlist)
    counts = [("gates per cell", live_gates(netlist)), ("gates per cell, simplified", gates)]
    counts.append(("soft gates", trained.config.model.gates))
    title, certain = title_of(run), proof.at_once(trained)
    heading = manifest.read(trained.path).get("result", "") if certain is None else certain.text
    files["index.html"] = page(
        "exhibit.html",
        title=title,
        headline=heading,
        facts=f"{trained.title}. {trained.facts}",
        counts=counts,
        proof=f"{'Proved equal' if smaller.verdict.equal else 'NOT proved equal'}: {smaller.verdict.how}.",
        steps=smaller.steps,
        files=set(files),
        measures=_measures(trained),
        downloads=listed(files),
        left_out=left_out,
        config=trained.config.to_toml(),
    )
    seconds = f", trained in {trained.rows[-1].elapsed_s:.3g} s" if trained.rows else ""
    return Exhibit(name, title, heading, f"{gates} gates{seconds}", trained.told, files)


def title_of(run: Path) -> str:
    """Return the name of a run's folder, without the date and time at the end of default names."""
    return re.sub(r"-\d{8}-\d{6}$", "", run.resolve().name)


def add_exports(files: Files, netlist: CellNetlist | FunctionNetlist, name: str) -> list[str]:
    """Add all exports that support the netlist to `files`; return a text with the reason for each omitted format."""
    exports, left_out = formats.exports(netlist, name)
    for form, contents in exports.items():
        for file, content in contents.items():
            files[formats.SHOWN.get(form, f"files/{file}")] = content
    return [f"{form}: {why}" for form, why in left_out.items()]


def _measures(trained: TrainedCircuit) -> list[dict[str, str]]:
    path = None if trained.folder is None else trained.folder / evaluate.NAME
    if path is None or not path.exists():
        return []
    current = (evaluate.FORMAT, evaluate.VERSION, trained.config.seed, trained.epoch)
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        # A run that was resumed since the evaluation has another circuit.
        if tuple(saved[key] for key in ("format", "version", "seed", "epoch")) != current:
            return []
        return [{key: measure[key] for key in ("title", "text", "paper")} for measure in saved["measures"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunFolderError(f"{path} is not an evaluation: remove it, or run `difflogic evaluate` again.") from error


def listed(files: Files) -> list[tuple[str, str, str]]:
    """Return `(name, path, size as text)` for each of `files` in the folder `files/`, for download."""
    downloads = []
    for path, content in sorted(item for item in files.items() if item[0].startswith("files/")):
        count = len(content if isinstance(content, bytes) else content.encode())
        size = f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"
        downloads.append((path.partition("/")[2], path, size))
    return downloads


def names_of(runs: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield each run and the unique name of its exhibit's folder, which is an identifier in every export language."""
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
    """Return all run folders at or below `paths`, without repetition. Raises UsageError if there are none."""
    runs = list(dict.fromkeys(run for path in paths for run in run_list.find(path)))
    if not runs:
        raise UsageError(f"No runs in {', '.join(map(str, paths))}: expected run folders or folders that contain runs.")
    return runs


def check_out(out: Path, force: bool) -> None:
    """Raise UsageError if `out` is a file, or a folder that is not empty unless `force` is True."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"Expected a folder, but {out} is a file.")
    if not force and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"The folder {out} is not empty: use --force to replace its pages, or choose another --out.")


def write_exhibit(out: Path, exhibit: Exhibit) -> None:
    """Write an exhibit to the gallery `out`. Raises DifflogicError if writing fails or a link leads out of `out`."""
    for file, content in exhibit.files.items():
        _write(inside(out / exhibit.name / file, out), content)


def write_index(out: Path, exhibits: Sequence[Exhibit]) -> None:
    """Write the index page to the gallery `out`. Raises DifflogicError like `write_exhibit`."""
    _write(inside(out / INDEX, out), page(INDEX, exhibits=exhibits))


def _write(path: Path, content: str | bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DifflogicError(f"Cannot write {path}: {error.strerror or error}.") from error
    Output(path, force=True).write(content if isinstance(content, bytes) else content.encode())
