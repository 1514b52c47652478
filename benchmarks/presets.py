"""Train, evaluate and simplify the paper's five experiments with its seed, and compare them with the paper's numbers.

    python -m benchmarks.presets                             # all five; takes hours, and continues earlier runs
    python -m benchmarks.presets lizard --runs FOLDER        # one preset, with its run in or below FOLDER
    python -m benchmarks.presets --report --write            # write the tables of docs/results/presets*

Runs with the configuration of a preset, under any name, are searched for in and below the folders of --runs. A finished
run is not trained again, an unfinished one is resumed, and a missing one is trained into the first folder. The line of
a preset is appended to results/presets.jsonl as soon as it is complete. The tables show the newest line.
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
"""First soft and hard loss of the authors' code with seed 23; the last two presets have the paper's images."""

TRAINED = ["first losses, soft and hard", "first epoch with hard loss 0", "hard loss at the end", "active gates"]
TRAINED += ["four times the grid", "self-healing", "robustness"]
COUNTED = ["active gates, as the paper counts", "after the structural passes", "after resynthesis, proved equivalent"]
COUNTED += ["the same, in the paper's count of perception", "`--from-start`, proved"]
COUNTED += ["`--from-start --size` of its own grid, proved", "`--task`"]
Figure = tuple[str, str | int | None]
"""Value of difflogic, and value in the paper, or None."""
RESULTS = CHECKOUT / "docs/results"

SHOWN = ("larger-grid-4x", "self-healing")
"""Keys of the tests that the tables show as text."""


def fitting(config: Config, folders: Sequence[Path]) -> tuple[Path, Checkpoint] | None:
    """Return the run with this configuration and the most epochs, under any name, in or below the folders, or None."""
    found = []
    for folder in folders:
        for path in run_list.find(folder) if folder.is_dir() else ():
            try:
                checkpoint = read_checkpoint(path)
            except CheckpointError:
                continue  # the run cannot be resumed
            # The name of a run may differ from that of the preset, but nothing else in the configuration.
            if len(checkpoint.members) == 1 and checkpoint.members[0].config.with_(name=config.name) == config:
                found.append((path, checkpoint))
    return max(found, key=lambda each: each[1].epoch, default=None)


def finished(config: Config, folders: Sequence[Path], engine: str, say: Callable[[str], None]) -> Path:
    """Return a run folder with all epochs of `config`: finished, resumed or newly trained. Raises DifflogicError."""
    kept = fitting(config, folders)
    # Training takes hours, so an existing run is searched for first.
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
    # An interrupted run was saved, but only a complete run is measured.
    if run.interrupted is not None:
        raise KeyboardInterrupt
    return path


def measured(name: str, path: Path, engine: str, on_pass: OnPass) -> Line:
    """Return the line of a run: its losses, its evaluations, and its gates after simplification."""
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
    """Return the number of two-input gates after each kind of simplification; None if it does not apply."""
    found = simplify(circuit.netlist, to_start=fixed, on_pass=on_pass)
    assert found.proved, "what is counted is proved"
    # Each counted circuit was proved equal to the previous one, on all inputs or on those that can occur.
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
        return None  # no state repeats, or cells fire at random
    assert found.verdict.equal, "what is counted is proved"
    return gate_count(found.netlist)


def _engine_of(path: Path, found: RunEvaluation) -> str:
    info = manifest.last_engine(manifest.read(path))
    return found.engine if info is None else f"{info.engine}: {info.adapter} ({info.driver})"


def newest() -> list[Line]:
    """Return the last line of each preset, in the paper's order."""
    # Later lines replace earlier ones.
    latest = {line["preset"]: line for line in load(NAME)}
    return [latest[name] for name in PAPER if name in latest]


def training_table(lines: Sequence[Line]) -> str:
    """Return a Markdown table of losses and tests, with the paper's numbers in brackets."""
    return "\n".join(
        _table(["preset", *TRAINED], 4, ([_linked(line), *map(_beside, _trained(line))] for line in lines))
    )


def gates_table(lines: Sequence[Line]) -> str:
    """Return a Markdown table of gates, with the paper's numbers in brackets."""
    return "\n".join(_table(["", *COUNTED], 1, ([_linked(line), *map(_beside, _counted(line))] for line in lines)))


def figures_table(line: Line) -> str:
    """Return a Markdown table of all measurements of one preset, with the paper's numbers in another column."""
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
    """Return the mean error over the trials, and its standard deviation, as text."""
    return f"{robustness['mean_error']:.0f} ± {robustness['trial_deviation']:.0f}"


def _linked(line: Line) -> str:
    return f"[{line['preset']}](presets/{line['preset']}.md)"


def _beside(figure: Figure) -> str:
    ours, paper = figure
    return ours if paper is None else f"{ours} ({paper})"


def _table(heads: list[str], texts: int, rows: Iterator[list[str]] | list[list[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; all columns after the first `texts` columns have numbers."""
    rule = ["---" if index < texts else "---:" for index in range(len(heads))]
    for cells in (heads, rule, *rows):
        yield f"| {' | '.join(cells)} |"


def pages() -> dict[Path, str]:
    """Return the new text of the overview page and of each preset's page, with rebuilt tables."""
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
    """Print the tables; if `write`, also write them into the pages."""
    lines = newest()
    print(training_table(lines), gates_table(lines), sep="\n\n")
    for path, text in pages().items() if write else ():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
