"""`simplify`: reduce the gates of a cell or function, such as a controller, and prove that the result is equal."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from difflogic.actions.result import ActionResult, Given, ResultTable, opened
from difflogic.circuits.export import formats
from difflogic.circuits.export.text import Files, channel_names
from difflogic.circuits.readers.source import LoadedCircuit
from difflogic.circuits.synthesis import function as functions
from difflogic.circuits.synthesis import pipeline
from difflogic.circuits.synthesis.convert import gates_once
from difflogic.circuits.synthesis.function import live_gates
from difflogic.circuits.synthesis.luts import lut_count
from difflogic.circuits.synthesis.pipeline import PipelineResult
from difflogic.circuits.synthesis.simplify import OnPass, PassReport, silent
from difflogic.config.choices import EFFORTS
from difflogic.errors import UsageError
from difflogic.model import function_json, netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.controller import Controller
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.system.words import counted

CIRCUIT, REPORT = "circuit.json", "simplify.json"
EPISODES = 100
"""Number of episodes for pruning a controller, and number of new episodes for testing it afterwards."""
WORDS = {True: "Proved equal", False: "NOT EQUAL, which is a bug in difflogic", None: "Not proved equal"}
STOPPED = "Stopped by Ctrl-C: this is the smallest circuit found so far."


@dataclass(frozen=True, eq=False, repr=False)
class Simplification(ActionResult):
    """Simplified circuit with the reports of all passes."""

    netlist: CellNetlist | FunctionNetlist
    steps: tuple[PassReport, ...]


def simplify(
    given: Given,
    *,
    from_start: bool = False,
    size: tuple[int, int] | None = None,
    task: bool = False,
    effort: str = "normal",
    periodic: bool | None = None,
    visible: int | None = None,
    on_pass: OnPass = silent,
) -> Simplification:
    """Reduce the number of gates of a circuit without changing its visible channels.

        >>> twice_not = difflogic.CellNetlist.build(1, True, gates=[12, 12], wires=[[4, 4], [9, 9]], outputs=[10])
        >>> len(difflogic.simplify(twice_not).netlist.gates)
        0

    Args:
        given: A run or its folder, a file of a circuit or function, or a circuit or function.
        from_start: Preserve the behaviour only in states that are reachable from the task's initial state.
        size: `(height, width)` of the only grid to consider with `from_start`; None: grids of any size.
        task: Preserve only the behaviour for which the run was trained; this is tested, not proved.
        effort: `normal`, or `high` to search ten times as long.
        periodic: Whether the grid wraps around; None: as stated in the file.
        visible: Number of visible channels; None: as stated in the file.
        on_pass: Callback that receives the report of each pass.

    Returns:
        The simplified circuit and its passes; `ok` is True if the circuit is proved equal. If Ctrl-C stops a pass and
        `on_pass` permits this, the result is the circuit after the previous passes.

    Raises:
        UsageError: The task or the initial state is unknown, or options contradict each other.
        CircuitError: The file is not a circuit.
        LimitError: On a grid of `size`, no state repeats within a million cell updates.
    """
    if effort not in EFFORTS:
        raise UsageError(f"`effort` must be one of {', '.join(EFFORTS)}, got {effort!r}.")
    held = opened(given, periodic, visible)
    if not isinstance(held, FunctionNetlist):
        result = pipeline.simplify(
            held.netlist, from_start, held.task if task else None, on_pass, size, EFFORTS[effort]
        )
        return _of_cell(held, result)
    if from_start or size is not None:
        raise UsageError(f"`from_start` and `size` are for automata, got a {held.kind}.")
    return _of_function(held, task, on_pass, EFFORTS[effort])


def _of_cell(circuit: LoadedCircuit, result: PipelineResult) -> Simplification:
    simplified, netlist = result.simplified, result.netlist
    count, once = live_gates(netlist), gates_once(netlist)
    report: dict[str, Any] = {
        "kind": circuit.kind,
        "gates": {"before": live_gates(circuit.netlist), "after": count, "once": once, "paper": circuit.paper_gates},
        "lut3": lut_count(netlist),
        "channels": list(netlist.origin),
        "equal": simplified.verdict.equal,
        "how": simplified.verdict.how,
        "from_start": result.reachable
        and {"equal": result.reachable.verdict.equal, "how": result.reachable.verdict.how},
        "task_only": result.pruned and {"rollouts": result.pruned.rollouts},
        "note": simplified.note,
    }
    words = [simplified.note, STOPPED if result.stopped else ""]
    words.append(f"{WORDS[simplified.verdict.equal]} in its visible channels: {simplified.verdict.how}.")
    if result.reachable is not None:
        verdict = result.reachable.verdict
        words.append(f"{WORDS[verdict.equal]} only from its own initial state on: {verdict.how}.")
    if result.pruned is not None:
        # A task with one initial state and synchronous updates has only one rollout.
        rollouts = (
            f"{result.pruned.rollouts} rollouts of the task" if result.pruned.rollouts > 1 else "its only rollout"
        )
        words.append(
            f"Pruned for its task: its visible channels are unchanged in {rollouts}. They may differ for other "
            "initial states, sizes, steps or damage."
        )
    channels = channel_names(netlist.origin)
    words.append(f"{report['gates']['before']} gates became {count}, channels {channels}.{_tables(report)}")
    if once < count:
        words.append(f"Counted as in the paper, with the perception gates of all channels counted only once: {once}.")
    title = f"{circuit.name}: {report['gates']['before']} gates per cell"
    return _made(title, words, report, netlist, tuple(result.steps), "channels", result.proved, note=circuit.told)


def _of_function(function: FunctionNetlist, task: bool, on_pass: OnPass, effort: int) -> Simplification:
    if task and not isinstance(function, Controller):
        raise UsageError("`task` requires a controller, since only controllers have a task.")
    smaller, tested = functions.simplified(function, on_pass, effort), None
    if task and isinstance(smaller.netlist, Controller) and not smaller.stopped:
        # This import is local, since only pruning needs gymnasium.
        from difflogic.policies.controllers import pruned

        tested = pruned(smaller.netlist, EPISODES, 0, on_pass)
    netlist = smaller.netlist if tested is None else tested.smaller.netlist
    verdict, stopped = smaller.verdict, smaller.stopped if tested is None else tested.smaller.stopped
    report: dict[str, Any] = {
        "kind": function.kind,
        "gates": {"before": live_gates(function), "after": live_gates(netlist)},
        "lut3": lut_count(netlist),
        "thresholds": {"before": function.inputs, "after": netlist.inputs},
        "equal": verdict.equal,
        "how": verdict.how,
        "task_only": tested
        and {"episodes": EPISODES, "codes": tested.codes, "before": tested.before.mean, "after": tested.after.mean},
        "note": smaller.note,
    }
    proved = f"{WORDS[verdict.equal]}: {verdict.how}; {_size(smaller.netlist)}."
    words = [smaller.note, STOPPED if stopped else "", proved]
    if tested is not None:
        words.append(f"Pruned for its task: {tested.words}")
    thresholds = "" if function.reads_bits else f", {function.inputs} thresholds became {netlist.inputs}"
    words.append(f"{live_gates(function)} gates became {live_gates(netlist)}{thresholds}.{_tables(report)}")
    steps = (*smaller.steps, *(() if tested is None else tested.smaller.steps))
    # A pruned controller must not score worse in new episodes.
    ok = bool(verdict.equal) and not (tested is not None and tested.is_worse)
    called = (function.environment if isinstance(function, Controller) else "") or function.kind.capitalize()
    return _made(f"{called}: {_size(function)}", words, report, netlist, steps, "inputs", ok)


def _tables(report: dict[str, Any]) -> str:
    return f" They fit in {counted(report['lut3'], 'lookup table')} of three inputs."


def _size(function: FunctionNetlist) -> str:
    read = "inputs" if function.reads_bits else "thresholds"
    return f"{live_gates(function)} gates, {function.inputs} {read}"


def _made(
    title: str,
    words: list[str],
    report: dict[str, Any],
    netlist: CellNetlist | FunctionNetlist,
    steps: tuple[PassReport, ...],
    inputs: str,
    ok: bool,
    note: str = "",
) -> Simplification:
    """Return the result for a cell or function; `inputs` heads the column of changed numbers of channels or inputs."""
    stopped = any(step.stopped for step in steps)
    report |= {"steps": [asdict(step) for step in steps], "stopped": stopped}
    text = netlist_json.to_json(netlist) if isinstance(netlist, CellNetlist) else function_json.to_json(netlist)
    name = CIRCUIT if isinstance(netlist, CellNetlist) else f"{netlist.kind}.json"
    files: Files = {name: text, REPORT: json.dumps(report) + "\n"}
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
    return Simplification(title, lines, report, files, netlist, steps, ok=ok, told=note, table=table, stopped=stopped)


def drawings(netlist: CellNetlist | FunctionNetlist, name: str) -> Files:
    """Return the contents of a circuit's drawings by file name, without drawings that would be too large."""
    exported, _ = formats.exports(netlist, name, formats.SHOWN)
    return {formats.SHOWN[form]: content for form, files in exported.items() for content in files.values()}
