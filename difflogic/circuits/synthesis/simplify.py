"""A circuit made smaller, pass by pass, until no pass helps; then proved equal to what it was.

The count is of *two-input gates*: those that truly read two inputs. Constants, pass-throughs and NOT are free,
for a NOT disappears in the type of a gate beside it, and all sixteen types cost the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle

from difflogic.circuits.synthesis.convert import gate_count, on_xag, to_netlist, to_xag
from difflogic.circuits.synthesis.prove import Verdict, prove
from difflogic.circuits.synthesis.resynthesis import by_channel, resynthesised
from difflogic.circuits.synthesis.sweep import swept
from difflogic.circuits.synthesis.unused_channels import without_unseen_channels
from difflogic.circuits.synthesis.xag import Interrupted, rebuilt
from difflogic.model.netlist import Netlist

MOST_GATES = 50_000
"""A circuit that is larger after the structural passes is not searched further: the rest would take hours."""

Pass = Callable[[Netlist], Netlist]


def folded(netlist: Netlist) -> Netlist:
    """Constants, pass-throughs and inverters are folded into the gates that read them."""
    return to_netlist(to_xag(netlist), netlist)


UNSEEN = "channels that are never seen dropped"
"""Among the last passes too: resynthesis may have freed some."""

STRUCTURAL: dict[str, Pass] = {
    "constants, wires and NOTs folded": folded,
    "gates that nothing reads dropped": on_xag(lambda graph: rebuilt(graph, share=False)),
    UNSEEN: without_unseen_channels,
    "equal gates shared": on_xag(rebuilt),
}
"""By name, in order; each a pure function of a netlist, whose result computes the same in the visible channels."""


@lru_cache(maxsize=1)
def structural(netlist: Netlist) -> Netlist:
    """The netlist after the structural passes, which prove themselves: what is left has the same structure."""
    for change in STRUCTURAL.values():
        netlist = change(netlist)
    return netlist


FUNCTIONAL: dict[str, Pass] = {
    "nodes that always agree merged": on_xag(swept),
    "channels of few inputs made anew": on_xag(by_channel),
    "resynthesis": on_xag(resynthesised),
    UNSEEN: without_unseen_channels,
}
"""As STRUCTURAL; repeated until none helps. Each ends where it gains nothing by itself."""


@dataclass(frozen=True)
class PassReport:
    """One pass: two-input gates and channels before and after."""

    name: str
    gates: tuple[int, int]
    channels: tuple[int, int]
    seconds: float
    stopped: bool = False
    """By Ctrl-C: the result is what it had reached."""

    @property
    def gained(self) -> bool:
        """Whether there are fewer gates or channels than before."""
        return self.gates[1] < self.gates[0] or self.channels[1] < self.channels[0]


@dataclass(frozen=True, eq=False)
class Simplified:
    """The smaller netlist, how it came about, and whether it is proved to be the same automaton."""

    netlist: Netlist
    steps: tuple[PassReport, ...]
    verdict: Verdict
    """Of difflogic's own judge, on the whole: before against after."""
    note: str = ""
    """What was left out, and why."""

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return self.steps[-1].stopped


OnPass = Callable[[PassReport], None]
"""Hears of each pass as it ends, of one that Ctrl-C stopped too: there it raises KeyboardInterrupt, or what is reached
is kept."""


def silent(step: PassReport) -> None:
    """Tells nobody, and lets Ctrl-C end all."""
    if step.stopped:
        raise KeyboardInterrupt


def simplified(netlist: Netlist, on_pass: OnPass = silent) -> Simplified:
    """All passes to a fixpoint. The visible channels behave the same in every step from every start."""
    steps: list[PassReport] = []
    current = netlist
    for name, change in STRUCTURAL.items():
        current, step = timed(name, change, current)
        steps.append(step)
        on_pass(step)
        if step.stopped:
            break
    note = ""
    if gate_count(current) > MOST_GATES:
        note = f"Only structural passes: they leave {gate_count(current)} gates, and search ends at {MOST_GATES}."
    elif not steps[-1].stopped:
        current, more = to_fixpoint(current, FUNCTIONAL, on_pass)
        steps += more
    verdict = unless_stopped(lambda: prove(netlist, current, ["difflogic"])[0], current, steps, on_pass)
    return Simplified(current, tuple(steps), verdict, note)


def unless_stopped(proof: Callable[[], Verdict], netlist: Netlist, steps: list[PassReport], on_pass: OnPass) -> Verdict:
    """What a proof finds; nothing where Ctrl-C stops it, which is a step more."""
    start = time.perf_counter()
    try:
        return proof()
    except KeyboardInterrupt:
        gates, seconds = gate_count(netlist), time.perf_counter() - start
        steps.append(PassReport("proof", (gates, gates), (netlist.channels,) * 2, seconds, stopped=True))
        on_pass(steps[-1])
        return Verdict("difflogic", None, "Ctrl-C stopped the proof")


def to_fixpoint(netlist: Netlist, passes: dict[str, Pass], on_pass: OnPass) -> tuple[Netlist, tuple[PassReport, ...]]:
    """The passes in turns, until each gains nothing on what the others left.

    A pass goes on by itself until it gains nothing, so that it need not see its own result again.
    """
    steps: list[PassReport] = []
    turns, idle = cycle(passes.items()), 0
    while idle < len(passes) and not (steps and steps[-1].stopped):
        netlist, step = timed(*next(turns), netlist)
        steps.append(step)
        on_pass(step)
        idle = 1 if step.gained else idle + 1
    return netlist, tuple(steps)


def timed(name: str, change: Pass, netlist: Netlist) -> tuple[Netlist, PassReport]:
    """The pass's result, or what it had reached when Ctrl-C stopped it, and the row that tells about it."""
    start, stopped = time.perf_counter(), True
    try:
        found, stopped = change(netlist), False
    except Interrupted as interrupted:
        found = to_netlist(interrupted.graph, netlist)
    except KeyboardInterrupt:
        found = netlist
    seconds = time.perf_counter() - start
    gates = gate_count(netlist), gate_count(found)
    return found, PassReport(name, gates, (netlist.channels, found.channels), seconds, stopped)
