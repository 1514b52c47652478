"""Pruning of a circuit to its trained behaviour: visible channels do not change on the rollouts of its task.

The channels are compared after the same steps as in the loss. They may differ for other initial states, grids or steps,
and after damage. Therefore the result is not equivalent, but verified on rollouts, including some not used for pruning.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.cell import Cell
from difflogic.circuits.synthesis.resubstitution import improved
from difflogic.circuits.synthesis.simplify import OnPass, PassReport, Search, silent
from difflogic.circuits.synthesis.sweep import swept_on
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, rebuilt
from difflogic.config.schema import Config
from difflogic.core.bits import Bits, pack_bits
from difflogic.core.neighbourhoods import patches
from difflogic.engine import job
from difflogic.errors import UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.system.brief import brief

FRESH = 256
"""Number of rollouts that are used only for verification, with other random initial states or fire masks."""
MOST_TRIES = 3_000
"""Maximum number of changes that one pass tries on the rollouts."""
REPORT_AFTER = 250
"""Number of tried changes between two progress reports."""
ROUND_GAIN = 20
"""Inverse of the minimum share of gates, 5 %, that a round must remove for another round to follow."""
_SEED = 7


@dataclass(frozen=True, eq=False)
class Pruned:
    """Pruned netlist, the reports of all passes, and the number of rollouts that verified it."""

    netlist: CellNetlist
    steps: tuple[PassReport, ...]
    rollouts: int
    """Number of rollouts on which the visible channels were verified to be unchanged."""

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Rollouts from `starts`, uint8 `[B, H, W, C]`, with fire masks, bool `[T, B, H, W, 1]`, or None if synchronous."""

    netlist: CellNetlist
    """Original netlist, with all channels of `starts`."""
    starts: Bits
    masks: npt.NDArray[np.bool_] | None
    steps: int
    compared: tuple[int, ...]

    def trajectory(self, cell: Cell) -> Iterator[Bits]:
        """Return the states, step by step, in rollouts of `cell`, which may have fewer channels than `starts`."""
        netlist = cell.netlist(self.netlist)
        state = self.starts[..., [self.netlist.origin.index(name) for name in cell.origin]]
        return chain([state], netlist.steps(state, self.steps, self.masks))

    def shown(self, cell: Cell) -> Iterator[Bits]:
        """Return the visible channels in rollouts of `cell` after each compared step, uint8 `[B, H, W, visible]`."""
        states = enumerate(self.trajectory(cell))
        return (state[..., : cell.visible] for step, state in states if step in self.compared)

    def is_shown(self, expected: Sequence[Bits], cell: Cell) -> bool:
        """Return whether rollouts of `cell` show the `expected` visible channels, stopping at the first difference."""
        return all(np.array_equal(a, b) for a, b in zip(self.shown(cell), expected, strict=True))


def pruned(netlist: CellNetlist, config: Config, on_pass: OnPass = silent) -> Pruned:
    """Return the circuit pruned to the rollouts of the task in `config`. Raises UsageError for a task with damage."""
    if config.task.disturbed:
        raise UsageError("`task` does not support tasks with damage: omit it.")
    search = Search(Cell.of(netlist), on_pass)
    # Changes are selected on some rollouts and verified on others, to undo changes that are correct only by chance.
    starts = job.probes(config)
    seen = _rollouts(netlist, config, starts, 0)
    if config.task.start == "random":
        starts = np.random.default_rng(_SEED).integers(0, 2, (FRESH, *starts.shape[1:]), dtype=np.uint8)
    elif config.train.asynchronous:
        starts = np.repeat(starts[:1], FRESH, axis=0)
    fresh = _rollouts(netlist, config, starts, 1)
    expected = [(rollouts, list(rollouts.shown(search.cell))) for rollouts in (seen, fresh)]
    prune(search, seen, lambda cell: all(rollouts.is_shown(shown, cell) for rollouts, shown in expected))
    unseen = len(fresh.starts) if config.task.start == "random" or config.train.asynchronous else 0
    return Pruned(search.cell.netlist(netlist), tuple(search.steps), len(seen.starts) + unseen)


def prune(search: Search[Cell], rollouts: Rollouts, holds: Callable[[Cell], bool]) -> None:
    """Remove gates that do not affect the rollouts; undo each pass after which `holds(cell)` is False."""
    changes: dict[str, Callable[[Cell], XAG]] = {
        "don't cares outside the rollouts used": lambda cell: _simplified_on(rollouts, cell),
        "gates replaced by constants or wires": lambda cell: _tried(rollouts, cell, search.on_pass),
    }
    # Changes of one kind may enable changes of the other.
    stopped, worthwhile = False, True
    while worthwhile and not stopped:
        gates = len(search.cell.graph.gates)
        for name, change in changes.items():
            before, steps = search.cell, len(search.steps)
            search.run(name, partial(_simplified_after, change))
            stopped = search.stopped
            # Undoing a pass also removes its reports.
            if not holds(search.cell):
                search.cell = before
                del search.steps[steps:]
            if stopped:
                break
        worthwhile = (gates - len(search.cell.graph.gates)) * ROUND_GAIN > gates


def _simplified_after(change: Callable[[Cell], XAG], cell: Cell) -> Cell:
    """Return the simplified cell with the graph `change(cell)`."""
    search = Search(replace(cell, graph=change(cell)))
    search.simplify()
    return search.cell


def _rollouts(netlist: CellNetlist, config: Config, starts: Bits, stream: int) -> Rollouts:
    task, train = config.task, config.train
    masks = None
    if train.asynchronous:
        shape = (task.steps, *starts.shape[:3], 1)
        # All candidates use the same masks, so that rollouts differ only because of the change.
        masks = np.random.default_rng((_SEED, stream)).random(shape) <= train.fire_rate
    return Rollouts(netlist, starts, masks, task.steps, task.judged_steps)


def _simplified_on(rollouts: Rollouts, cell: Cell) -> XAG:
    """Return the cell's graph, simplified so that only neighbourhoods in the rollouts count; others are don't cares."""
    # Each distinct neighbourhood is used once. After packing to bytes, equal neighbourhoods are equal columns.
    columns = (
        np.packbits(patches(state, rollouts.netlist.periodic)[cell.inputs], axis=0, bitorder="little")
        for state in islice(rollouts.trajectory(cell), rollouts.steps)
    )
    packed = np.unique(np.concatenate([np.unique(part, axis=1) for part in columns], axis=1), axis=1)
    samples = np.unpackbits(packed, axis=0, count=cell.graph.inputs, bitorder="little")
    # Repeated samples fill the last word (0 1 2 3 4 0 1 2 ... for five), since zeros may not be a valid sample.
    words = pack_bits(samples[:, np.arange(-(-samples.shape[1] // 64) * 64) % samples.shape[1]])
    return improved(swept_on(cell.graph, words), words)


def _tried(rollouts: Rollouts, cell: Cell, on_pass: OnPass) -> XAG:
    """Replace outputs and gates by constants, and gates by wires, if rollouts do not change; return the new graph."""
    expected, began = list(rollouts.shown(cell)), time.perf_counter()
    graph, place, since, tries = rebuilt(cell.graph), 0, 0, 0
    before, changes = len(graph.gates), _changes(graph)
    # The loop cycles through the changes until all have failed since the last success.
    while tries < MOST_TRIES and since < len(changes):
        outputs, replaced = changes[place % len(changes)]
        candidate = rebuilt(XAG(graph.inputs, graph.gates, outputs), replaced=replaced)
        tries += 1
        if tries % REPORT_AFTER == 0:
            gates, channels = (before, len(graph.gates)), (len(cell.origin),) * 2
            seconds = time.perf_counter() - began
            on_pass(PassReport(f"{tries} of at most {MOST_TRIES} changes tried", gates, channels, seconds))
        if rollouts.is_shown(expected, replace(cell, graph=candidate)):
            graph, since, changes = candidate, 0, _changes(candidate)
        else:
            place, since = place + 1, since + 1
    return graph


def _changes(graph: XAG) -> list[tuple[Sequence[int], dict[int, int]]]:
    """Return all changes to try as (outputs, replaced): one output is constant, or one node is mapped to a literal."""
    changes: list[tuple[Sequence[int], dict[int, int]]] = []
    for index, output in enumerate(graph.outputs):
        for constant in (FALSE, TRUE) if output > TRUE else ():
            changes.append(([*graph.outputs[:index], constant, *graph.outputs[index + 1 :]], {}))
    # Gates near the outputs are first, since replacing them makes most other gates dead.
    for node in reversed(graph.nodes):
        _, a, b = graph.gates[node - graph.first]
        changes += [(graph.outputs, {node: literal}) for literal in (FALSE, TRUE, a, b)]
    return changes
