"""A circuit made smaller, pass by pass, until no pass helps; then proved equal to what it was.

The count is of *two-input gates*: those that truly read two inputs. Constants, pass-throughs and NOT are free,
for a NOT disappears in the type of a gate beside it, and all sixteen types cost the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from difflogic.circuits.channels import without_unseen_channels
from difflogic.circuits.convert import gate_count, to_graph, to_netlist
from difflogic.circuits.graph import Graph, rebuilt
from difflogic.circuits.merge import merged
from difflogic.circuits.prove import Verdict, prove
from difflogic.circuits.resynthesis import resynthesised
from difflogic.netlist import Netlist

MOST_GATES = 50_000
"""A circuit that is larger after the structural passes is not searched further: the rest would take hours."""

Pass = Callable[[Netlist], Netlist]


def folded(netlist: Netlist) -> Netlist:
    """Constants, pass-throughs and inverters are folded into the gates that read them."""
    return to_netlist(to_graph(netlist), netlist)


def _on_graph(change: Callable[[Graph], Graph]) -> Pass:
    return lambda netlist: to_netlist(change(to_graph(netlist)), netlist)


UNSEEN = "channels that are never seen dropped"
"""The last step too: resynthesis may have freed some."""

STRUCTURAL: dict[str, Pass] = {
    "constants, wires and NOTs folded": folded,
    "gates that nothing reads dropped": _on_graph(lambda graph: rebuilt(graph, share=False)),
    UNSEEN: without_unseen_channels,
    "equal gates shared": _on_graph(rebuilt),
}
"""By name, in order; each a pure function of a netlist, whose result computes the same in the visible channels."""

FUNCTIONAL: dict[str, Pass] = {
    "nodes that always agree merged": _on_graph(merged),
    "resynthesis": _on_graph(resynthesised),
}
"""As STRUCTURAL; repeated until none helps."""


@dataclass(frozen=True)
class Step:
    """One pass: two-input gates and channels before and after."""

    name: str
    gates: tuple[int, int]
    channels: tuple[int, int]
    seconds: float


@dataclass(frozen=True, eq=False)
class Simplified:
    """The smaller netlist, how it came about, and whether it is proved to be the same automaton."""

    netlist: Netlist
    steps: tuple[Step, ...]
    verdict: Verdict
    """Of difflogic's own judge, on the whole: before against after."""
    note: str = ""
    """What was left out, and why."""


Tell = Callable[[Step], None]
"""Hears of each pass as it ends."""


def silent(step: Step) -> None:
    """Tells nobody."""


def simplified(netlist: Netlist, tell: Tell = silent) -> Simplified:
    """All passes to a fixpoint. The visible channels behave the same in every step from every start."""
    steps: list[Step] = []
    current = netlist
    for name, change in STRUCTURAL.items():
        current, step = timed(name, change, current)
        steps.append(step)
        tell(step)
    note = ""
    if gate_count(current) > MOST_GATES:
        note = f"Only structural passes: they leave {gate_count(current)} gates, and search ends at {MOST_GATES}."
    else:
        current, more = to_fixpoint(current, FUNCTIONAL, tell)
        steps += more
    return Simplified(current, tuple(steps), prove(netlist, current, ["difflogic"])[0], note)


def to_fixpoint(netlist: Netlist, passes: dict[str, Pass], tell: Tell) -> tuple[Netlist, tuple[Step, ...]]:
    """The passes in turns, all of them once, then until one helps no more; at last what no channel shows is dropped."""
    steps: list[Step] = []
    while len(steps) <= len(passes) or steps[-1].gates[0] > steps[-1].gates[1]:
        name = list(passes)[len(steps) % len(passes)]
        netlist, step = timed(name, passes[name], netlist)
        steps.append(step)
        tell(step)
    netlist, step = timed(UNSEEN, without_unseen_channels, netlist)
    tell(step)
    return netlist, (*steps, step)


def timed(name: str, change: Pass, netlist: Netlist) -> tuple[Netlist, Step]:
    """The pass's result, and the row that tells about it."""
    start = time.perf_counter()
    found = change(netlist)
    seconds = time.perf_counter() - start
    gates = gate_count(netlist), gate_count(found)
    return found, Step(name, gates, (netlist.channels, found.channels), seconds)
