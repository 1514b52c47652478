"""`difflogic show`: print one run in full."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, json_option
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo
from difflogic.errors import RunFolderError
from difflogic.system.files import quoted
from difflogic.system.words import counted

if TYPE_CHECKING:
    from difflogic.runs.attempts import Attempt
    from difflogic.runs.checkpoint import Checkpoint, ModelState
    from difflogic.runs.journal import Row
    from difflogic.runs.run_list import Entry


@click.command("show")
@click.argument("run", type=PATH)
@json_option
def command(run: Path, as_json: bool) -> int:
    """Print the run in the folder RUN: task, engine, progress, models, files, and how to continue it.

    RUN may also be the file of a circuit, a controller or a function, a rule such as B36/S23, or a name that
    `difflogic zoo` lists.

    Example: difflogic show runs/NAME
    """
    from difflogic.circuits.readers import zoo
    from difflogic.runs import checkpoint, chosen, manifest
    from difflogic.runs.journal import read_rows
    from difflogic.runs.run_list import Broken, read

    run = zoo.path(run)
    if not run.is_dir():
        return _show_file(run, as_json)
    entry = read(run)
    if isinstance(entry, Broken):
        raise RunFolderError(f"Cannot show the run folder {run}: {entry.why}.")
    if manifest.is_policy(manifest.read(chosen.run_folder(run))):
        return _show_agents(entry, as_json)
    # With restarts the folder contains several runs, and commands use the best run.
    best, attempts = chosen.load(run), _attempts(run)
    saved, record = checkpoint.read(best.path), manifest.read(best.path)
    rows = read_rows(best.path, saved.seeds)
    if as_json:
        facts = {
            "manifest": record,
            "best": {"folder": str(best.path), "epoch": best.epoch, "told": best.told},
            "models": list(map(_member, saved.seeds, rows)),
            "files": _files(best.path),
        }
        echo(json.dumps({**entry.to_dict(), **facts, **_tries(attempts)}))
        return 0
    echo("\n".join([*_facts(entry, record, saved), f"Chosen:    {best.told}"]))
    for attempt in attempts:
        echo(f"           {attempt}")
    _show_models(saved, rows)
    _show_files(best.path)
    echo(f"\n{_next(entry, best.path, bool(attempts), max(saved.epoch, best.config.train.epochs))}")
    return 0


def _show_file(path: Path, as_json: bool) -> int:
    from difflogic.actions.result import opened
    from difflogic.circuits.export.text import about
    from difflogic.circuits.readers.source import LoadedCircuit
    from difflogic.circuits.synthesis.convert import gate_count
    from difflogic.circuits.synthesis.function import live_gates

    loaded = opened(path)
    netlist = loaded.netlist if isinstance(loaded, LoadedCircuit) else loaded
    needed = live_gates(netlist)
    facts = {"kind": netlist.kind, "gates": len(netlist.gates), "two_input": gate_count(netlist), "needed": needed}
    facts |= {"inputs": list(netlist.input_names), "outputs": list(netlist.output_names)}
    if as_json:
        echo(json.dumps(facts))
        return 0
    echo(f"{path}: {netlist.kind}. {about(netlist)}")
    echo(f"{counted(needed, 'live gate')}; in total {facts['gates']}, of which {facts['two_input']} read two inputs.")
    return 0


def _attempts(run: Path) -> tuple[Attempt, ...]:
    from difflogic.runs import attempts

    return attempts.read(run).attempts if attempts.is_in(run) else ()


def _tries(attempts: Sequence[Attempt]) -> dict[str, Any]:
    return {"tries": [asdict(attempt) for attempt in attempts]} if attempts else {}


def _facts(entry: Entry, record: dict[str, Any], saved: Checkpoint[ModelState]) -> list[str]:
    from difflogic.circuits.synthesis.function import live_gates
    from difflogic.model.cell_netlist import CellNetlist

    config = saved.members[saved.best].config
    task, train, model = config.task, config.train, config.model
    best = CellNetlist.of_run(saved.members[saved.best].circuit, config)
    engine = [record, *record["resumes"]][-1]["engine"]
    device = ", ".join(filter(None, (engine["adapter"], engine["backend"], engine["driver"])))
    timing = f"fire rate {train.fire_rate:g}" if train.asynchronous else "synchronous"
    last = "" if len(saved.seeds) == 1 else f" to {saved.seeds[-1]}"
    lines = [
        f"Run:       {entry.path}, {entry.name}, {entry.status}",
        f"Task:      {task.target} from {task.start}, {task.width}x{task.height} grid, {counted(task.steps, 'step')}, "
        f"{timing}",
        f"Circuit:   {live_gates(best)} gates per cell, of {model.gates} soft gates; "
        f"{counted(model.channels, 'channel')}, {counted(model.kernels, 'perception kernel')}, "
        f"{'periodic' if model.periodic else 'zero'} boundary"
        f"{'' if model.neighbourhood == 'moore' else f', neighbourhood {model.neighbourhood}'}",
        f"Training:  epoch {saved.epoch} of {train.epochs}, batch {train.batch}, lr {config.optimizer.lr:g}, "
        f"seed {saved.seeds[0]}{last}",
        f"Engine:    {entry.engine}: {device}; {engine['why']}",
    ]
    return [*lines, *_history(record, 11)]


def _history(record: dict[str, Any], width: int) -> list[str]:
    ended, resumed = record["ended"] or "not yet", len(record["resumes"])
    facts = {
        "Times:": f"started {record['started']}, ended {ended}, resumed {resumed} times",
        "Versions:": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        "Result:": record.get("result"),
    }
    return [f"{label:{width}}{text}" for label, text in facts.items() if text]


def _member(seed: int, rows: list[Row]) -> dict[str, Any]:
    from difflogic.runs.journal import last_evaluated

    evaluated = last_evaluated(rows)
    return {
        "seed": seed,
        "last": rows[-1].to_dict() if rows else None,
        "evaluated": None if evaluated is None else evaluated.to_dict(),
        "first_solved": next((row.epoch for row in rows if row.hard_loss == 0), None),
    }


def _show_models(saved: Checkpoint[ModelState], rows: list[list[Row]]) -> None:
    from difflogic.circuits.synthesis.function import live_gates
    from difflogic.model.cell_netlist import CellNetlist
    from difflogic.model.statistics import undecided_gates

    lines = []
    for index, (member, own) in enumerate(zip(saved.members, rows, strict=True)):
        facts = _member(member.config.seed, own)
        evaluated, last = facts["evaluated"], facts["last"]
        soft = None if last is None else last["soft_loss"]
        lines.append(
            (
                f"{index + 1}{' (best)' if index == saved.best and len(rows) > 1 else ''}",
                str(member.config.seed),
                "" if soft is None else f"{soft:.4g}",
                "" if evaluated is None else str(evaluated["hard_loss"]),
                "" if evaluated is None else f"{100 * evaluated['accuracy']:.2f} %",
                str(facts["first_solved"] or ""),
                str(live_gates(CellNetlist.of_run(member.circuit, member.config))),
                str(undecided_gates(member.circuit.gate_logits, member.circuit.wire_logits)),
            )
        )
    headers = ("model", "seed", "soft loss", "hard loss", "accuracy", "first solved", "gates", "unconverged")
    echo()
    table.show(headers, lines)


def _files(run: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(run.iterdir()) if path.is_file() and path.name[0] != "."}


def _show_files(run: Path) -> None:
    echo()
    table.show(("file", "kB"), [(name, f"{size / 1000:.1f}") for name, size in _files(run).items()])


def _show_agents(entry: Entry, as_json: bool) -> int:
    from difflogic.config.policy import ClassifierConfig
    from difflogic.model import function_json
    from difflogic.runs import checkpoint, chosen, manifest

    path, attempts = chosen.run_folder(entry.path), _attempts(entry.path)
    record, saved = manifest.read(path), checkpoint.read_agents(path)
    if as_json:
        echo(json.dumps({**entry.to_dict(), "manifest": record, "files": _files(path), **_tries(attempts)}))
        return 0
    config = saved.members[saved.best].config
    seeds = ", ".join(map(str, saved.seeds[:5])) + (" ..." if len(saved.seeds) > 5 else "")
    lines = [
        f"Run:         {path}, {entry.name}, {entry.status}",
        f"Table:       {config.table.rows} rows, label {config.subject}"
        if isinstance(config, ClassifierConfig)
        else f"Environment: {config.subject}, {config.require_episodes().environment.n_envs} copies",
        f"Agent:       {config.policy}, {config.made_of}",
        f"Training:    {config.algorithm}, {config.unit} {entry.epoch} of {entry.epochs}, seed {seeds}",
        *_history(record, 13),
        *(f"             {attempt}" for attempt in attempts),
    ]
    echo("\n".join(lines))
    _show_files(path)
    if entry.status in ("interrupted", "killed", "failed"):
        echo(f"\nContinue with: difflogic train --resume {quoted(entry.path)}")
    elif (path / function_json.NAME).exists():
        echo(f"\nMake its controller smaller: difflogic simplify {quoted(path)} --task -o small.json")
    return 0


def _next(entry: Entry, chosen: Path, has_attempts: bool, epochs: int) -> str:
    from difflogic.runs import manifest, request_file

    if entry.status in (manifest.BUILT, "running"):
        return "Built without training." if entry.status == manifest.BUILT else "A process is training this run."
    resume = "difflogic train --resume "
    if entry.status == "killed":
        return f"Its process was killed. Continue from the last checkpoint with:  {resume}{quoted(entry.path)}"
    if entry.status != "complete" or (entry.epoch < entry.epochs and not has_attempts):
        return f"Continue with:  {resume}{quoted(entry.path)}"
    request = request_file.read(chosen)
    no_stop = " --stop-when-solved 0" if request is not None and request.solved_models else ""
    return f"The run is complete. Train it further with:  {resume}{quoted(chosen)} --epochs {2 * epochs}{no_stop}"
