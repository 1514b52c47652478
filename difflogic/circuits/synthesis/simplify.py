"""Simplification of a circuit: passes are applied until none makes it smaller, then the result is proved equivalent.

Only *two-input gates* count: gates that depend on two inputs. Constants, pass-throughs and NOT are free, since a NOT
becomes part of the type of a neighbouring gate, and all sixteen types cost the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import cycle
from typing import Generic, TypeVar

from difflogic.circuits.synthesis.cell import BareGraph, Cell
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.circuits.synthesis.prove import Equivalence, prove
from difflogic.circuits.synthesis.resynthesis import by_channel, in_windows, resynthesised
from difflogic.circuits.synthesis.sweep import swept
from difflogic.circuits.synthesis.xag import XAG, Interrupted, rebuilt
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import Netlist
from difflogic.system.brief import brief

MOST_GATES = 50_000
"""Maximum number of gates after structural passes for which other passes are applied; for more they take hours."""

Pass = Callable[[XAG], XAG]
"""Function from a graph to an equivalent one with the same inputs and outputs and at most as many gates."""

FUNCTIONAL: dict[str, Pass] = {
    "SAT sweeping": swept,
    "resynthesis from truth tables": by_channel,
    "window resubstitution": in_windows,
    "resubstitution": resynthesised,
}
"""Passes by name, repeated in this order until none makes the graph smaller; each runs until it alone saves nothing."""


@dataclass(frozen=True)
class PassReport:
    """Report of a pass: two-input gates, and channels (or thresholds of a function), each before and after it."""

    name: str
    gates: tuple[int, int]
    channels: tuple[int, int]
    seconds: float
    stopped: bool = False
    """True if Ctrl-C stopped the pass, so that its result is intermediate."""

    @property
    def gained(self) -> bool:
        """True if the pass reduced the number of gates or channels."""
        return self.gates[1] < self.gates[0] or self.channels[1] < self.channels[0]


OnPass = Callable[[PassReport], None]
"""Callback after each pass. If Ctrl-C stopped the pass, it may raise KeyboardInterrupt to discard the results."""


def silent(step: PassReport) -> None:
    """Report nothing, and end the simplification on Ctrl-C."""
    if step.stopped:
        raise KeyboardInterrupt


S = TypeVar("S", bound=BareGraph)
N = TypeVar("N", bound=Netlist)


@dataclass(frozen=True, eq=False)
class Simplified(Generic[N]):
    """Simplified netlist, with the reports of all passes and the result of the proof."""

    netlist: N
    steps: tuple[PassReport, ...]
    verdict: Equivalence
    """Result of difflogic's checker on the equivalence of the netlists before and after all passes."""
    note: str = ""
    """Sentence on passes that were omitted and why; otherwise empty."""

    __repr__ = brief

    @property
    def stopped(self) -> bool:
        """True if Ctrl-C ended the search."""
        return self.steps[-1].stopped


class Search(Generic[S]):
    """Cell or function to which passes are applied, and the reports of all passes.

    After Ctrl-C stops a pass, no other pass is applied. `size` is reported as the size before the first pass, by
    default the size of the graph.
    """

    def __init__(self, cell: S, on_pass: OnPass = silent, size: tuple[int, int] | None = None) -> None:
        self.cell = cell
        self.size = size or cell.size
        self.steps: list[PassReport] = []
        self.on_pass = on_pass

    @property
    def stopped(self) -> bool:
        """True if Ctrl-C ended the search."""
        return bool(self.steps) and self.steps[-1].stopped

    def run(self, name: str, change: Callable[[S], S]) -> None:
        """Replace the cell by `change(cell)`, or by an intermediate result if Ctrl-C stops `change`, and report it."""
        if self.stopped:
            return
        # Ctrl-C in a search of hours loses nothing: a pass in small steps returns its graph so far, and any other pass
        # leaves the cell unchanged.
        before, start, stopped = self.cell, time.perf_counter(), True
        try:
            self.cell, stopped = change(before), False
        except Interrupted as interrupted:
            # A pass that was stopped while it searched a part of the graph leaves a graph with fewer inputs or outputs.
            ends = [(graph.inputs, len(graph.outputs)) for graph in (before.graph, interrupted.graph)]
            if ends[0] == ends[1]:
                self.cell = replace(before, graph=interrupted.graph)
        except KeyboardInterrupt:
            pass
        self.report(name, start, stopped)

    def apply(self, name: str, change: Pass) -> None:
        """Apply a pass to the cell's graph only, which leaves the channels unchanged."""
        self.run(name, lambda cell: replace(cell, graph=change(cell.graph)))

    def drop_unseen_channels(self: Search[Cell]) -> None:
        """Remove channels that no visible channel depends on, such as those left by other passes."""
        self.run("unseen channels removed", Cell.without_unseen_channels)

    def drop_structure(self: Search[Cell]) -> None:
        """Apply the structural passes, which need no proof."""
        self.apply("dead gates removed", partial(rebuilt, share=False))
        self.drop_unseen_channels()
        self.apply("structural hashing", rebuilt)

    def to_fixpoint(self, passes: dict[str, Pass], others: Sequence[Callable[[], None]] = ()) -> None:
        """Cycle through `passes` and `others` until none saves gates or channels; the last that did is not repeated."""
        turns: list[Callable[[], None]] = [partial(self.apply, name, change) for name, change in passes.items()]
        turns += others
        idle = 0
        for turn in cycle(turns):
            turn()
            idle = 1 if self.steps[-1].gained else idle + 1
            if idle >= len(turns) or self.stopped:
                break

    def simplify(self: Search[Cell], effort: int = 1) -> str:
        """Apply all passes until none saves gates or channels; return a sentence if any were omitted, otherwise ""."""
        self.drop_structure()
        count = len(self.cell.graph.gates)
        if count > MOST_GATES:
            return f"Only structural passes were applied, since {count} gates remain, more than {MOST_GATES}."
        searches = (in_windows, resynthesised)
        passes = {name: partial(run, effort=effort) if run in searches else run for name, run in FUNCTIONAL.items()}
        self.to_fixpoint(passes, [self.drop_unseen_channels])
        return ""

    def proved(self, before: N, after: N, proof: Callable[[N, N], Equivalence], note: str = "") -> Simplified[N]:
        """Run `proof(before, after)`, and return `after` with the result; Ctrl-C is reported as a stopped pass."""
        # Netlists are compared, not graphs, so that the proof includes the conversions.
        start = time.perf_counter()
        try:
            verdict = proof(before, after)
        except KeyboardInterrupt:
            self.report("proof", start, stopped=True)
            verdict = Equivalence("difflogic", None, "Ctrl-C stopped the proof")
        return Simplified(after, tuple(self.steps), verdict, note)

    def report(self, name: str, start: float, stopped: bool = False) -> None:
        """Record the pass `name` that began at time `start`, and pass its report to `on_pass`."""
        before = (self.steps[-1].gates[1], self.steps[-1].channels[1]) if self.steps else self.size
        gates, channels = zip(before, self.cell.size, strict=True)
        self.steps.append(PassReport(name, gates, channels, time.perf_counter() - start, stopped))
        self.on_pass(self.steps[-1])


def simplified(netlist: CellNetlist, on_pass: OnPass = silent, effort: int = 1) -> Simplified[CellNetlist]:
    """Return the netlist after all passes, with a proof; `effort` multiplies the attempts after which a search ends."""
    start = time.perf_counter()
    search = Search(Cell.of(netlist), on_pass, (gate_count(netlist), netlist.channels))
    search.report("constants, wires and inverters folded", start)
    note = search.simplify(effort)
    after = search.cell.netlist(netlist)
    return search.proved(netlist, after, lambda one, other: prove(one, other, ["difflogic"])[0], note)


@lru_cache(maxsize=1)
def structural(netlist: CellNetlist) -> CellNetlist:
    """Return the netlist after structural passes, which need no proof: folding, hashing, removal of dead parts."""
    search = Search(Cell.of(netlist))
    search.drop_structure()
    return search.cell.netlist(netlist)
