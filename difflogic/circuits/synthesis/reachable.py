"""A smaller circuit that does the same from its own start: for ever, on any grid, whichever cells fire.

Used is what holds in every state that the start leads to (`invariant`): channels that are constant, equal or opposite
become one, and gates need be right only where it holds. From other starts, and after damage, the circuit may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from difflogic import wiring
from difflogic.circuits import invariant
from difflogic.circuits.care import Possible
from difflogic.circuits.convert import to_graph, to_netlist
from difflogic.circuits.graph import FALSE, TRUE, Builder, Graph, rebuilt
from difflogic.circuits.invariant import Invariant
from difflogic.circuits.merge import merged_by_proof
from difflogic.circuits.miter import make_miter
from difflogic.circuits.prove import CONFLICTS, Verdict
from difflogic.circuits.resynthesis import MOST_GATES, window_by_window
from difflogic.circuits.sat import Clause, Solver
from difflogic.circuits.simplify import Pass, Step, Tell, silent, to_fixpoint
from difflogic.netlist import Netlist


@dataclass(frozen=True, eq=False)
class Reached:
    """The smaller netlist, how it came about, and the proof, from nothing, that it shows the same."""

    netlist: Netlist
    steps: tuple[Step, ...]
    verdict: Verdict


def from_start(netlist: Netlist, tell: Tell = silent) -> Reached:
    """`tell` hears of each pass. Raises UsageError without a start that is always the same."""
    found = invariant.find(netlist)
    given = found.on_inputs()
    passes: dict[str, Pass] = {
        "channels that are the same from the start on merged": lambda each: _replaced(each, found),
        "nodes that agree in all states it reaches merged": _on_graph(
            lambda graph: merged_by_proof(graph, found.samples, given)
        ),
        "resynthesis for these states": _on_graph(lambda graph: _resynthesised(graph, found, given)),
    }
    current, steps = to_fixpoint(netlist, passes, tell)
    return Reached(current, steps, proved(netlist, current, found))


def _on_graph(change: Callable[[Graph], Graph]) -> Pass:
    return lambda netlist: to_netlist(change(to_graph(netlist)), netlist)


def _replaced(netlist: Netlist, found: Invariant) -> Netlist:
    """Inputs of a channel read from the one that it always is; all channels stay."""
    graph = to_graph(netlist)
    builder = Builder(graph.inputs)
    literals = [2 * node for node in range(graph.first)]
    for channel, literal in found.replacements().items():
        for patch in range(wiring.PATCH):
            place = 1 + wiring.PATCH * channel + patch
            literals[place] = _constant_or_input(literal, patch)
    for gate in graph.gates:
        literals.append(builder.copy(gate, literals[gate.a >> 1], literals[gate.b >> 1]))
    smaller = rebuilt(builder.finish(literals[output >> 1] ^ (output & 1) for output in graph.outputs))
    return to_netlist(smaller, netlist)


def _constant_or_input(literal: int, patch: int) -> int:
    if literal < 0:
        return TRUE if literal == -1 else FALSE
    return 2 * (1 + wiring.PATCH * (literal >> 1) + patch) + (literal & 1)


def _resynthesised(graph: Graph, found: Invariant, given: list[Clause]) -> Graph:
    graph = rebuilt(graph)
    if len(graph.gates) > MOST_GATES:
        return graph
    care = Possible(found.samples, given)
    try:
        return window_by_window(graph, care)
    finally:
        care.close()


def proved(netlist: Netlist, smaller: Netlist, found: Invariant) -> Verdict:
    """That `smaller` shows what `netlist` does from its start on, by `found`, which is proved here anew."""
    judge = "difflogic"
    if not invariant.hold(found.clauses, invariant.base(netlist, invariant.start_of(netlist))):
        return Verdict(judge, False, "the start breaks what was to hold")
    given = found.on_inputs()
    graph = rebuilt(to_graph(netlist))
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
