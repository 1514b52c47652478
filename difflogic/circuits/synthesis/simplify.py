"""A circuit made smaller, pass by pass, until no pass helps; then proved equal to what it was.

The count is of *two-input gates*: those that truly read two inputs. Constants, pass-throughs and NOT are free,
for a NOT disappears in the type of a gate beside it, and all sixteen types cost the same.
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
"""A circuit that is larger after the structural passes is not searched further: the rest would take hours."""

Pass = Callable[[XAG], XAG]
"""A pure function of a graph, whose result has the same inputs and outputs, computes the same and is no larger."""

FUNCTIONAL: dict[str, Pass] = {
    "nodes that always agree merged": swept,
    "channels of few inputs made anew": by_channel,
    "gates in windows made anew": in_windows,
    "resynthesis": resynthesised,
}
"""By name, in order; repeated until none helps. Each ends where it gains nothing by itself."""


@dataclass(frozen=True)
class PassReport:
    """One pass: two-input gates and channels, of a function thresholds, before and after."""

    name: str
    gates: tuple[int, int]
    channels: tuple[int, int]
    seconds: float
    stopped: bool = False
    """By Ctrl-C: the result is what it had reached."""

    @property
    def gained(self) -> bool:
        """Return whether there are fewer gates or channels than before."""
        return self.gates[1] < self.gates[0] or self.channels[1] < self.channels[0]


OnPass = Callable[[PassReport], None]
"""Hears of each pass as it ends, of one that Ctrl-C stopped too: there it raises KeyboardInterrupt, or what is reached
is kept."""


def silent(step: PassReport) -> None:
    """Tells nobody, and lets Ctrl-C end all."""
    if step.stopped:
        raise KeyboardInterrupt


S = TypeVar("S", bound=BareGraph)
N = TypeVar("N", bound=Netlist)


@dataclass(frozen=True, eq=False)
class Simplified(Generic[N]):
    """The smaller netlist, how it came about, and whether it is proved to do the same."""

    netlist: N
    steps: tuple[PassReport, ...]
    verdict: Equivalence
    """Of difflogic's own judge, on the whole: before against after."""
    note: str = ""
    """What was left out, and why."""

    __repr__ = brief

    @property
    def stopped(self) -> bool:
        """Return whether Ctrl-C ended the search."""
        return self.steps[-1].stopped


class Search(Generic[S]):
    """A cell, or a function, on its way through passes, and a report of each.

    Once Ctrl-C stopped one, no other is begun. The first begins with the size that is given, where it is another than
    that of the graph.
    """

    def __init__(self, cell: S, on_pass: OnPass = silent, size: tuple[int, int] | None = None) -> None:
        self.cell = cell
        self.size = size or cell.size  # before the first pass
        self.steps: list[PassReport] = []
        self.on_pass = on_pass

    @property
    def stopped(self) -> bool:
        """Return whether Ctrl-C ended the search."""
        return bool(self.steps) and self.steps[-1].stopped

    def run(self, name: str, change: Callable[[S], S]) -> None:
        """Go on with what `change` makes of the cell, or had made of it when Ctrl-C stopped it."""
        if self.stopped:
            return
        # Ctrl-C in a search of hours loses nothing: a pass over windows hands over the graph that it had reached, any
        # other the one that it began with.
        before, start, stopped = self.cell, time.perf_counter(), True
        try:
            self.cell, stopped = change(before), False
        except Interrupted as interrupted:
            # A search within a pass may be on some of the outputs or inputs: what it reached is not the cell.
            ends = [(each.inputs, len(each.outputs)) for each in (before.graph, interrupted.graph)]
            if ends[0] == ends[1]:
                self.cell = replace(before, graph=interrupted.graph)
        except KeyboardInterrupt:
            pass  # a pass that is not made of small steps has nothing to show before it ends
        self.report(name, start, stopped)

    def apply(self, name: str, change: Pass) -> None:
        """Apply a pass to the graph only, so that the channels stay as they are."""
        self.run(name, lambda cell: replace(cell, graph=change(cell.graph)))

    def drop_unseen_channels(self: Search[Cell]) -> None:
        """The one pass that changes inputs and outputs. Any other may have freed a channel: it comes after them too."""
        self.run("channels that are never seen dropped", Cell.without_unseen_channels)

    def drop_structure(self: Search[Cell]) -> None:
        """The structural passes, which prove themselves: what is left has the same structure."""
        self.apply("gates that nothing reads dropped", partial(rebuilt, share=False))
        self.drop_unseen_channels()
        self.apply("equal gates shared", rebuilt)

    def to_fixpoint(self, turns: Sequence[Callable[[], None]]) -> None:
        """The passes in turns, until each gains nothing on what the others left.

        A pass goes on by itself until it gains nothing, so that it need not see its own result again.
        """
        idle = 0
        for turn in cycle(turns):
            turn()
            idle = 1 if self.steps[-1].gained else idle + 1
            if idle >= len(turns) or self.stopped:
                break

    def turns(self, passes: dict[str, Pass]) -> list[Callable[[], None]]:
        """The passes by name, as `to_fixpoint` takes them."""
        return [partial(self.apply, name, change) for name, change in passes.items()]

    def simplify(self: Search[Cell], effort: int = 1) -> str:
        """All passes to a fixpoint; returns what was left out, and why."""
        self.drop_structure()
        count = len(self.cell.graph.gates)
        if count > MOST_GATES:
            return f"Only structural passes: they leave {count} gates, and search ends at {MOST_GATES}."
        if not self.stopped:
            searches = (in_windows, resynthesised)
            passes = {
                name: partial(change, effort=effort) if change in searches else change
                for name, change in FUNCTIONAL.items()
            }
            self.to_fixpoint([*self.turns(passes), self.drop_unseen_channels])
        return ""

    def proved(self, given: N, made: N, proof: Callable[[N, N], Equivalence], note: str = "") -> Simplified[N]:
        """What was made, compared with what was given; undecided where Ctrl-C stops the proof, which is a step more."""
        # Two netlists are compared, not two graphs: what is proved is what is written, conversions included.
        start = time.perf_counter()
        try:
            verdict = proof(given, made)
        except KeyboardInterrupt:
            self.report("proof", start, stopped=True)
            verdict = Equivalence("difflogic", None, "Ctrl-C stopped the proof")
        return Simplified(made, tuple(self.steps), verdict, note)

    def report(self, name: str, start: float, stopped: bool = False) -> None:
        """Enter and tell a pass that began at `start`."""
        before = (self.steps[-1].gates[1], self.steps[-1].channels[1]) if self.steps else self.size
        gates, channels = zip(before, self.cell.size, strict=True)
        self.steps.append(PassReport(name, gates, channels, time.perf_counter() - start, stopped))
        self.on_pass(self.steps[-1])


def simplified(netlist: CellNetlist, on_pass: OnPass = silent, effort: int = 1) -> Simplified[CellNetlist]:
    """All passes to a fixpoint; searches go on for `effort` times as long in vain. The visible channels behave the same
    in every step from every start.
    """
    start = time.perf_counter()
    search = Search(Cell.of(netlist), on_pass, (gate_count(netlist), netlist.channels))
    search.report("constants, wires and NOTs folded", start)
    note = search.simplify(effort)
    made = search.cell.netlist(netlist)
    return search.proved(netlist, made, lambda one, other: prove(one, other, ["difflogic"])[0], note)


@lru_cache(maxsize=1)
def structural(netlist: CellNetlist) -> CellNetlist:
    """The netlist after folding and the structural passes, which prove themselves: it has the same structure."""
    search = Search(Cell.of(netlist))
    search.drop_structure()
    return search.cell.netlist(netlist)
