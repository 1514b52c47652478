"""`simplify`: a smaller circuit of a cell, or controller of an agent, proved to be the same."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from difflogic.actions.result import ActionResult, Given, ResultTable, name_of, opened
from difflogic.circuits.export import formats
from difflogic.circuits.export.text import Files, channel_names
from difflogic.circuits.readers.source import LoadedCircuit
from difflogic.circuits.synthesis import function as controllers
from difflogic.circuits.synthesis import pipeline
from difflogic.circuits.synthesis.convert import gate_count, gates_once
from difflogic.circuits.synthesis.simplify import OnPass, PassReport, silent
from difflogic.errors import CircuitError, UsageError
from difflogic.model import function_json, netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.controller import Controller

CIRCUIT, REPORT = "circuit.json", "simplify.json"
EPISODES = 100
"""Episodes that a controller is pruned for, and as many others that it is tested in."""
WORDS = {True: "Proved equal", False: "NOT EQUAL, which is an error in difflogic", None: "Not proved equal"}
STOPPED = "Stopped by Ctrl-C: this is the smallest circuit until then."


@dataclass(frozen=True, eq=False, repr=False)
class Simplification(ActionResult):
    """The smaller circuit, and how it came about."""

    netlist: CellNetlist | Controller
    steps: tuple[PassReport, ...]


def simplify(
    given: Given,
    *,
    from_start: bool = False,
    size: tuple[int, int] | None = None,
    task: bool = False,
    periodic: bool | None = None,
    visible: int | None = None,
    on_pass: OnPass = silent,
    drawn: bool = False,
) -> Simplification:
    """Make a circuit smaller without changing what it shows.

        >>> twice_not = difflogic.CellNetlist.build(1, True, gates=[12, 12], wires=[[4, 4], [9, 9]], outputs=[10])
        >>> len(difflogic.simplify(twice_not).netlist.gates)
        0

    Args:
        given: A run folder, a file that holds a circuit or a controller, or one of these.
        from_start: Whether it only has to stay the same from its own start on.
        size: With `from_start`, `(height, width)` of the only grid on which it has to stay the same; None: any grid.
        task: Whether only what the run was trained for has to stay the same. This is tested, not proved.
        periodic: Whether the grid is a torus, in place of what the file says.
        visible: The first so many channels are the picture, in place of what the file says.
        on_pass: Hears of each pass.
        drawn: Whether drawings and a living page come with it, where it is not too large for them.

    Returns:
        The smaller circuit, its passes, and whether it was proved. Where Ctrl-C stops a pass and `on_pass` allows it,
        the result is that of the passes before.

    Raises:
        UsageError: The task or the start is not known, or options contradict each other.
        CircuitError: The file is no circuit.
        LimitError: On a grid of this `size` no state comes again within a million updates of cells.
    """
    held = opened(given, periodic, visible)
    if isinstance(held, Controller):
        if from_start or size is not None:
            raise UsageError("`from_start` and `size` are for automata: a controller has no start.")
        made = _of_controller(held, task, on_pass)
    else:
        made = _of_cell(held, from_start, task, size, on_pass)
    if drawn:
        made.files.update(_drawings(made.netlist, name_of(given)))
    return made


def _of_cell(
    given: LoadedCircuit, from_start: bool, task: bool, size: tuple[int, int] | None, on_pass: OnPass
) -> Simplification:
    result = pipeline.simplify(given.netlist, from_start, given.task if task else None, on_pass, size)
    found, netlist = result.found, result.netlist
    count, once = gate_count(netlist), gates_once(netlist)
    report: dict[str, Any] = {
        "kind": given.kind,
        # `once` counts the gates that see one channel alone once for all channels, as the paper does perception.
        "gates": {"before": gate_count(given.netlist), "after": count, "once": once, "paper": given.paper_gates},
        "channels": list(netlist.origin),
        "equal": found.verdict.equal,
        "how": found.verdict.how,
        "from_start": result.reachable
        and {"equal": result.reachable.verdict.equal, "how": result.reachable.verdict.how},
        "task_only": result.pruned and {"rollouts": result.pruned.rollouts},
        "note": found.note,
    }
    paper = "" if given.paper_gates is None else f"; active gates as the paper counts them: {given.paper_gates}"
    words = [found.note, STOPPED if result.stopped else ""]
    words.append(f"{WORDS[found.verdict.equal]} in its visible channels: {found.verdict.how}.")
    if result.reachable is not None:
        verdict = result.reachable.verdict
        words.append(f"{WORDS[verdict.equal]} from its own start on, and there alone: {verdict.how}.")
    if result.pruned is not None:
        # One rollout is what a task with one start has, if all cells are updated in each step.
        rollouts = (
            f"{result.pruned.rollouts} rollouts of the task" if result.pruned.rollouts > 1 else "its only rollout"
        )
        words.append(
            f"Pruned to its task: it shows the same as before on {rollouts}. Elsewhere it differs: other starts, "
            "sizes, steps or damage."
        )
    words.append(f"{report['gates']['before']} gates became {count}, channels {channel_names(netlist.origin)}.")
    if once < count:
        words.append(f"As the paper counts perception, gates that see one channel alone once for all channels: {once}.")
    title = f"{given.name}: {gate_count(given.netlist)} two-input gates per cell{paper}"
    return _made(title, words, report, netlist, tuple(result.steps), "channels", result.proved, told=given.told)


def _of_controller(given: Controller, task: bool, on_pass: OnPass) -> Simplification:
    # Imported late: an automaton needs none of what plays episodes.
    from difflogic.policies.controllers import pruned

    smaller, tested = controllers.simplified(given, on_pass), None
    if task and not smaller.stopped:
        tested = pruned(smaller.controller, EPISODES, 0, on_pass)
    found = smaller if tested is None else tested.smaller
    made, verdict = found.controller, smaller.verdict
    report: dict[str, Any] = {
        "kind": "controller",
        "gates": {"before": gate_count(given), "after": gate_count(made)},
        "thresholds": {"before": given.inputs, "after": made.inputs},
        "equal": verdict.equal,
        "how": verdict.how,
        "task_only": tested
        and {"episodes": EPISODES, "codes": tested.codes, "before": tested.before.mean, "after": tested.after.mean},
        "note": "",
    }
    words = [STOPPED if found.stopped else "", f"{WORDS[verdict.equal]}: {verdict.how}; {_size(smaller.controller)}."]
    if tested is not None:
        words.append(f"Pruned to its task: {tested.words}")
    words.append(
        f"{gate_count(given)} gates became {gate_count(made)}, {given.inputs} thresholds became {made.inputs}."
    )
    steps = (*smaller.steps, *(() if tested is None else tested.smaller.steps))
    # A pruned controller is not proved: it has to do as well in episodes that it was not pruned for.
    ok = bool(verdict.equal) and not (tested is not None and tested.is_worse)
    return _made(f"{given.environment or 'Controller'}: {_size(given)}", words, report, made, steps, "thresholds", ok)


def _size(controller: Controller) -> str:
    return f"{gate_count(controller)} two-input gates, {controller.inputs} thresholds"


def _made(
    title: str,
    words: list[str],
    report: dict[str, Any],
    netlist: CellNetlist | Controller,
    steps: tuple[PassReport, ...],
    inputs: str,
    ok: bool,
    told: str = "",
) -> Simplification:
    """The parts that are alike; `inputs` is what a pass may leave fewer of."""
    stopped = any(step.stopped for step in steps)
    report |= {"steps": [asdict(step) for step in steps], "stopped": stopped}
    is_cell = isinstance(netlist, CellNetlist)
    text = netlist_json.to_json(netlist) if isinstance(netlist, CellNetlist) else function_json.to_json(netlist)
    files: Files = {CIRCUIT if is_cell else function_json.NAME: text, REPORT: json.dumps(report) + "\n"}
    rows = [
        (
            step.name,
            str(step.gates[0]),
            str(step.gates[1]),
            "" if step.channels[0] == step.channels[1] else f"{step.channels[0]} to {step.channels[1]}",
            f"{step.seconds:.2f} s",
        )
        for step in steps
    ]
    table = ResultTable(("step", "gates before", "after", inputs, "time"), rows)
    lines = tuple(filter(None, words))
    return Simplification(title, lines, report, files, netlist, steps, ok=ok, told=told, table=table, stopped=stopped)


def _drawings(netlist: CellNetlist | Controller, name: str) -> Files:
    """What there is to see of a circuit, without what is too large to be drawn."""
    files: Files = {}
    for form, file in formats.SHOWN.items():
        with suppress(CircuitError):
            [files[file]] = formats.export(netlist, name, form).values()
    return files
