"""A smaller circuit that does the same from its own start: for ever, on any grid, whichever cells fire.

Used is what holds in every state that the start leads to (`invariant`): channels that are constant, equal or opposite
become one, and gates need be right only where it holds. From other starts, and after damage, the circuit may differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from difflogic.circuits.synthesis import invariant
from difflogic.circuits.synthesis.convert import on_xag, to_netlist, to_xag
from difflogic.circuits.synthesis.invariant import Invariant
from difflogic.circuits.synthesis.miter import make_miter
from difflogic.circuits.synthesis.prove import CONFLICTS, Verdict
from difflogic.circuits.synthesis.resynthesis import resynthesised_where
from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.simplify import (
    UNSEEN,
    OnPass,
    Pass,
    PassReport,
    silent,
    timed,
    to_fixpoint,
    unless_stopped,
)
from difflogic.circuits.synthesis.sweep import swept_by_proof
from difflogic.circuits.synthesis.unused_channels import without_unseen_channels
from difflogic.circuits.synthesis.xag import FALSE, TRUE, Builder, mapped, rebuilt
from difflogic.core import wiring
from difflogic.model.netlist import Netlist


@dataclass(frozen=True, eq=False)
class ReachableResult:
    """The smaller netlist, how it came about, and the proof, from nothing, that it shows the same."""

    netlist: Netlist
    steps: tuple[PassReport, ...]
    verdict: Verdict


def on_reachable_states(netlist: Netlist, on_pass: OnPass = silent) -> ReachableResult:
    """`tell` hears of each pass. Raises UsageError without a start that is always the same."""
    found = invariant.find(netlist)
    given = found.on_inputs()
    passes: dict[str, Pass] = {
        "channels that are the same from the start on merged": lambda each: _replaced(each, found),
        "nodes that agree in all states it reaches merged": on_xag(
            lambda graph: swept_by_proof(graph, found.samples, given)
        ),
        "resynthesis for these states": on_xag(lambda graph: resynthesised_where(graph, found.samples, given)),
    }
    current, done = to_fixpoint(netlist, passes, on_pass)
    steps = list(done)
    if not steps[-1].stopped:
        current, last = timed(UNSEEN, without_unseen_channels, current)
        steps.append(last)
        on_pass(last)
    verdict = unless_stopped(lambda: proved(netlist, current, found), current, steps, on_pass)
    return ReachableResult(current, tuple(steps), verdict)


def _replaced(netlist: Netlist, found: Invariant) -> Netlist:
    """Inputs of a channel read from the one that it always is; all channels stay."""
    graph = to_xag(netlist)
    builder = Builder(graph.inputs)
    literals = graph.on_same_inputs()
    for channel, literal in found.replacements().items():
        for patch in range(wiring.PATCH):
            place = 1 + wiring.PATCH * channel + patch
            literals[place] = _constant_or_input(literal, patch)
    builder.copy(graph, graph.nodes, literals)
    smaller = rebuilt(builder.finish(mapped(output, literals) for output in graph.outputs))
    return to_netlist(smaller, netlist)


def _constant_or_input(literal: int, patch: int) -> int:
    if literal < 0:
        return TRUE if literal == -1 else FALSE
    return 2 * (1 + wiring.PATCH * (literal >> 1) + patch) + (literal & 1)


def proved(netlist: Netlist, smaller: Netlist, found: Invariant) -> Verdict:
    """That `smaller` shows what `netlist` does from its start on, by `found`, which is proved here anew."""
    judge = "difflogic"
    if not invariant.hold(found.clauses, invariant.base(netlist, invariant.start_of(netlist))):
        return Verdict(judge, False, "the start breaks what was to hold")
    given = found.on_inputs()
    graph = rebuilt(to_xag(netlist))
    with Solver(graph, CONFLICTS, given) as solver:
        outputs = [solver.variable(output) for output in graph.outputs]
        for clause in found.clauses:
            after = [-outputs[literal >> 1] if literal & 1 else outputs[literal >> 1] for literal in clause]
            if solver.solve([-variable for variable in after]) is not False:
                return Verdict(judge, None, f"induction of {len(found.clauses)} relations was not shown")
    miter = make_miter(netlist, smaller)
    places = {name: index for index, name in enumerate(sorted(set(netlist.origin) | set(smaller.origin)))}
    moved = [tuple(_moved(literal, netlist, places) for literal in clause) for clause in given]
    with Solver(miter.joint, CONFLICTS, moved) as solver:
        for channel, a, b in miter.pairs():
            answer = False if a == b else solver.differ(a, b)
            if answer is not False:
                return Verdict(judge, None if answer is None else False, f"channel {channel} was not shown to be equal")
    return Verdict(
        judge,
        True,
        f"{len(miter.channels)} channels by SAT, in all states in which {len(found.clauses)} relations between "
        "channels hold, which do so in the start, and by induction after every step",
    )


def _moved(literal: int, netlist: Netlist, places: dict[int, int]) -> int:
    """A literal of an input of `netlist` as one of the miter's."""
    channel, patch = divmod((literal >> 1) - 1, wiring.PATCH)
    return 2 * (1 + wiring.PATCH * places[netlist.origin[channel]] + patch) + (literal & 1)
