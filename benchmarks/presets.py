"""The paper's five experiments at its own seed, whole: trained, evaluated and simplified, beside the paper's figures.

    python -m benchmarks.presets                             # all five; hours, or what is left of them
    python -m benchmarks.presets lizard --runs there         # one, by a run folder that lies in or below `there`
    python -m benchmarks.presets --report --write            # the tables, into docs/results/presets*

A run is looked for in and below the folders of --runs: one that was configured as the preset is, whatever it is called,
is not trained again, and one that was left is gone on with. What is missing is trained into the first of the folders.
Each preset's line is appended to results/presets.jsonl as soon as it is there; the newest is shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.store import CHECKOUT, Line, append, inserted, load
from difflogic.bench.machine import stamp
from difflogic.circuits.readers import source
from difflogic.circuits.synthesis import own_grid
from difflogic.circuits.synthesis.behaviour import pruned
from difflogic.circuits.synthesis.convert import gate_count, gates_once
from difflogic.circuits.synthesis.pipeline import simplify
from difflogic.circuits.synthesis.simplify import OnPass, PassReport, structural
from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.errors import CheckpointError, DifflogicError, LimitError, UsageError
from difflogic.evaluation.evaluate import RunEvaluation, evaluate
from difflogic.evaluation.paper import published
from difflogic.model.cell_netlist import CellNetlist
from difflogic.runs import manifest, run_list
from difflogic.runs.checkpoint import Checkpoint
from difflogic.runs.checkpoint import read as read_checkpoint
from difflogic.train.trainer import Trainer

NAME = "presets"
PAPER = ("game-of-life", "checkerboard", "checkerboard-async", "lizard", "colored-g")
FIRST_LOSSES = {
    "game-of-life": (105.844, 108),
    "checkerboard": (231.266, 256),
    "checkerboard-async": (87.93, 96),
    "lizard": (109.708, 121),
    "colored-g": (102.129, 109),
}
"""First soft and hard loss of the authors' code at seed 23; for the last two presets with the paper's own images."""

TRAINED = ["first losses, soft and hard", "first epoch with hard loss 0", "hard loss at the end", "active gates"]
TRAINED += ["four times the grid", "self-healing", "robustness"]
COUNTED = ["active gates, as the paper counts", "after the structural passes", "after resynthesis, proved equivalent"]
COUNTED += ["the same, in the paper's count of perception", "`--from-start`, proved"]
COUNTED += ["`--from-start --size` of its own grid, proved", "`--task`"]
Figure = tuple[str, str | int | None]
"""Ours, and the paper's where it has one."""
RESULTS = CHECKOUT / "docs/results"

SHOWN = ("larger-grid-4x", "self-healing")
"""Tests of which the result is shown in words."""


def fitting(config: Config, folders: Sequence[Path]) -> tuple[Path, Checkpoint] | None:
    """The furthest of the runs in and below the folders that are configured so; their names do not matter."""
    found = []
    for folder in folders:
        for path in run_list.find(folder) if folder.is_dir() else ():
            try:
                checkpoint = read_checkpoint(path)
            except CheckpointError:
                continue  # nothing to go on from
            # A run that was renamed is the same run, and one whose configuration differs in anything is not.
            if len(checkpoint.members) == 1 and checkpoint.members[0].config.with_(name=config.name) == config:
                found.append((path, checkpoint))
    return max(found, key=lambda each: each[1].epoch, default=None)


def finished(config: Config, folders: Sequence[Path], engine: str, say: Callable[[str], None]) -> Path:
    """A run folder with all epochs of `config`: as it lies there, gone on with, or new. Raises DifflogicError."""
    kept = fitting(config, folders)
    # A run of these takes hours: it is looked for before it is trained.
    if kept is not None and kept[1].epoch >= config.train.epochs:
        say(f"{config.name}: {kept[0]} is that run")
        return kept[0]
    opened = open_engine(engine)
    if kept is None:
        path = folders[0] / config.name
        say(f"{config.name}: trained into {path}")
        run = Trainer(config, opened).run(out=path)
    else:
        path, checkpoint = kept
        say(f"{config.name}: {path} goes on after epoch {checkpoint.epoch}")
        run = Trainer(checkpoint.members[0].config, opened).run(resume=path)
    # The trainer has saved the run and returned; what is measured is only a run that is whole.
    if run.interrupted is not None:
        raise KeyboardInterrupt
    return path


def measured(name: str, path: Path, engine: str, on_pass: OnPass) -> Line:
    """Return the result of a run: its losses, its evaluations, and its gates after simplification."""
    config = presets.get(name)
    found = evaluate(path, open_engine(engine))
    for file, content in found.files().items():
        (path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    first = found.trained.rows[0]
    circuit = source.load(path)
    fixed = circuit.netlist.scenario is not None and circuit.netlist.scenario.start != "random"
    return {
        "preset": name,
        "seed": config.seed,
        "epochs": found.trained.epoch,
        "first_losses": [first.soft_loss, first.train_hard_loss],
        "first_solved": found.trained.first_solved,
        "last_hard_loss": None if found.trained.last_evaluation is None else found.trained.last_evaluation.hard_loss,
        "active_gates": found.gates["active"],
        "undecided_gates": found.gates["undecided"],
        "measures": {each.key: {"text": each.text, **each.values} for each in found.measures},
        "gates": _gates(circuit, fixed, on_pass),
        "trained_on": _engine_of(path, found),
        **stamp(),
    }


def _gates(circuit: source.LoadedCircuit, fixed: bool, on_pass: OnPass) -> dict[str, int | None]:
    """Two-input gates after each kind of pass; None where there is none of it."""
    found = simplify(circuit.netlist, to_start=fixed, on_pass=on_pass)
    assert found.proved, "what is counted is proved"
    # Each count is of a circuit that was proved equal to the one before it, on all inputs or on those that can occur.
    small = found.simplified.netlist
    smallest = pruned(small, circuit.task, on_pass).netlist
    return {
        "structural": gate_count(structural(circuit.netlist)),
        "simplified": gate_count(small),
        "once": gates_once(small),
        "from_start": gate_count(found.netlist) if fixed else None,
        "own_grid": _on_own_grid(small, on_pass) if fixed else None,
        "task": gate_count(smallest),
    }


def _on_own_grid(netlist: CellNetlist, on_pass: OnPass) -> int | None:
    scenario = netlist.scenario
    assert scenario is not None, "it has a start"
    try:
        found = own_grid.on_own_grid(own_grid.of_size(netlist, (scenario.height, scenario.width)), on_pass)
    except (LimitError, UsageError):
        return None  # its states do not come again, or cells fire at random
    assert found.verdict.equal, "what is counted is proved"
    return gate_count(found.netlist)


def _engine_of(path: Path, found: RunEvaluation) -> str:
    info = manifest.last_engine(manifest.read(path))
    return found.engine if info is None else f"{info.engine}: {info.adapter} ({info.driver})"


def newest() -> list[Line]:
    """The last line of each preset, in the paper's order."""
    # Later lines take the place of earlier ones.
    latest = {line["preset"]: line for line in load(NAME)}
    return [latest[name] for name in PAPER if name in latest]


def training_table(lines: Sequence[Line]) -> str:
    """Losses and tests in Markdown, the paper's figure in brackets."""
    return "\n".join(
        _table(["preset", *TRAINED], 4, ([_linked(line), *map(_beside, _trained(line))] for line in lines))
    )


def gates_table(lines: Sequence[Line]) -> str:
    """Gates in Markdown, the paper's figure in brackets."""
    return "\n".join(_table(["", *COUNTED], 1, ([_linked(line), *map(_beside, _counted(line))] for line in lines)))


def figures_table(line: Line) -> str:
    """Everything that was measured of one preset in Markdown, the paper's figures beside ours."""
    rows = [*zip(TRAINED, _trained(line), strict=True), *zip(COUNTED[1:], _counted(line)[1:], strict=True)]
    cells = [[head, ours, "" if paper is None else str(paper)] for head, (ours, paper) in rows if ours not in ("", "-")]
    return "\n".join(_table(["measure", "difflogic", "paper"], 1, cells))


def _trained(line: Line) -> list[Figure]:
    name, measures, paper = line["preset"], line["measures"], published(presets.get(line["preset"]))
    soft, hard = line["first_losses"]
    robustness = measures.get("robustness")
    return [
        (f"{soft:.3f}, {hard}", "{:.3f}, {}".format(*FIRST_LOSSES[name])),
        ("-" if line["first_solved"] is None else f"{line['first_solved']}", paper.solved_at),
        (str(line["last_hard_loss"]), None),
        (str(line["active_gates"]), paper.active_gates),
        *((measures[key]["text"].partition(" (")[0] if key in measures else "", None) for key in SHOWN),
        ("", None) if robustness is None else (_error(robustness), paper.robustness),
    ]


def _counted(line: Line) -> list[Figure]:
    counts = [line["gates"].get(key) for key in ("structural", "simplified", "once", "from_start", "own_grid", "task")]
    paper = published(presets.get(line["preset"])).active_gates
    return [(str(line["active_gates"]), paper), *(("-" if count is None else str(count), None) for count in counts)]


def _error(robustness: dict[str, Any]) -> str:
    """The mean over the trials, and their standard deviation."""
    return f"{robustness['mean_error']:.0f} ± {robustness['trial_deviation']:.0f}"


def _linked(line: Line) -> str:
    return f"[{line['preset']}](presets/{line['preset']}.md)"


def _beside(figure: Figure) -> str:
    ours, paper = figure
    return ours if paper is None else f"{ours} ({paper})"


def _table(heads: list[str], texts: int, rows: Iterator[list[str]] | list[list[str]]) -> Iterator[str]:
    """Lines of Markdown; the columns after the first `texts` are of numbers."""
    rule = ["---" if index < texts else "---:" for index in range(len(heads))]
    for cells in (heads, rule, *rows):
        yield f"| {' | '.join(cells)} |"


def pages() -> dict[Path, str]:
    """The overview and the page of each preset as they should be, each table rebuilt between its marks."""
    lines = newest()
    tables = {RESULTS / "presets.md": {"training": training_table(lines), "gates": gates_table(lines)}}
    tables |= {RESULTS / f"presets/{line['preset']}.md": {"figures": figures_table(line)} for line in lines}
    texts = {path: path.read_text(encoding="utf-8") for path in tables}
    for path, found in tables.items():
        for mark, table in found.items():
            texts[path] = inserted(texts[path], begin_of(mark), table)
    return texts


def begin_of(mark: str) -> str:
    """Return the comment that begins a generated table."""
    return f"<!-- {mark}: generated by python -m benchmarks.presets --report --write: do not edit -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", metavar="PRESET", help=f"of {', '.join(PAPER)} [all]")
    parser.add_argument(
        "--runs", type=Path, action="append", metavar="DIR", help="where run folders lie [runs/presets]"
    )
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--report", action="store_true", help="print the tables of what is there")
    parser.add_argument("--write", action="store_true", help="and put them into the pages of docs/results")
    options = parser.parse_args()
    if unknown := set(options.presets) - set(PAPER):
        parser.error(f"{min(unknown)} is none of {', '.join(PAPER)}")
    if options.report:
        report(options.write)
        return
    try:
        for name in options.presets or PAPER:
            path = finished(presets.get(name), options.runs or [CHECKOUT / "runs" / "presets"], options.engine, print)
            append(NAME, [measured(name, path, options.engine, _tell)])
    except DifflogicError as error:
        parser.exit(error.exit_code, f"{error}\n")
    except KeyboardInterrupt:
        parser.exit(130, "Stopped: what is there is kept, and the same command goes on from it.\n")


def _tell(step: PassReport) -> None:
    print(f"... {step.name}: {step.gates[1]} gates", flush=True)


def report(write: bool) -> None:
    """Print the tables; `write`: put them into the pages."""
    lines = newest()
    print(training_table(lines), gates_table(lines), sep="\n\n")
    for path, text in pages().items() if write else ():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
