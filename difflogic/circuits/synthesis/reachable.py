"""A smaller circuit that does the same from its own start: for ever, on any grid, whichever cells fire.

Used is what holds in every state that the start leads to (`invariant`): channels that are constant, equal or opposite
become one, and gates only have to be correct where it holds. From other starts, and after damage, the circuit may
differ.
"""

from __future__ import annotations

from difflogic.circuits.synthesis import invariant
from difflogic.circuits.synthesis.cell import Cell
from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.invariant import Invariant
from difflogic.circuits.synthesis.miter import inputs_of, make_miter
from difflogic.circuits.synthesis.prove import CONFLICTS, Equivalence
from difflogic.circuits.synthesis.resynthesis import resynthesised_where
from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.simplify import OnPass, Pass, Search, Simplified, silent
from difflogic.circuits.synthesis.sweep import swept_by_proof
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, embedded, input_literal, mapped, rebuilt
from difflogic.model.cell_netlist import CellNetlist


def on_reachable_states(netlist: CellNetlist, on_pass: OnPass = silent) -> Simplified[CellNetlist]:
    """The smaller netlist with the proof, from nothing, that it shows the same; `on_pass` hears of each pass.

    Raises UsageError without a start that is always the same.
    """
    found = invariant.find(netlist)
    search = Search(Cell.of(netlist), on_pass)
    given, samples = found.on_inputs(len(search.cell.cells)), found.samples[search.cell.inputs]
    # The invariant speaks of channels by their place, so that none is dropped before the last of these passes. Samples
    # are states that do occur: what differs on one of them is never asked of the solver.
    passes: dict[str, Pass] = {
        "channels that are the same from the start on merged": lambda graph: _replaced(
            graph, found, len(search.cell.cells)
        ),
        "nodes that agree in all states it reaches merged": lambda graph: swept_by_proof(graph, samples, given),
        "resynthesis for these states": lambda graph: resynthesised_where(graph, samples, given),
    }
    search.to_fixpoint(search.turns(passes))
    search.drop_unseen_channels()
    made = search.cell.netlist(netlist)
    return search.proved(netlist, made, lambda one, other: proved(one, other, found))


def _replaced(graph: XAG, found: Invariant, cells: int) -> XAG:
    """Inputs of a channel read from the one that it always is; all channels stay."""
    # If channel 2 is always the opposite of channel 1, its nine inputs are the inverted ones of channel 1. No gate
    # reads channel 2 then; its own output stays until channels that nobody sees are dropped.
    inputs = [input_literal(index) for index in range(graph.inputs)]
    for channel, same in found.replacements().items():
        for cell in range(cells):
            value = (FALSE, TRUE)[same + 2] if same < 0 else invariant.in_cell(same, cell, cells)
            inputs[cells * channel + cell] = value
    return rebuilt(embedded(graph, inputs, graph.inputs))


def proved(netlist: CellNetlist, smaller: CellNetlist, found: Invariant) -> Equivalence:
    """Prove that `smaller` shows the same as `netlist` from its start on, with the clauses `found`, which are proved
    again here.
    """
    # Nothing of the search is believed. The base: each clause holds in the start. The step: where all hold, each holds
    # after a step too. With both they hold for ever, on any grid, since the step looks at one cell and its neighbours.
    judge = "difflogic"
    if not invariant.hold(found.clauses, invariant.base(netlist, invariant.start_of(netlist))):
        return Equivalence(judge, False, "the start breaks what was to hold")
    given = found.on_inputs()
    graph = rebuilt(to_xag(netlist))
    # The induction step of each clause: under all clauses in the neighbourhood it cannot be false after the step.
    with Solver(graph, CONFLICTS, given) as solver:
        outputs = [solver.variable(output) for output in graph.outputs]
        for clause in found.clauses:
            after = [-outputs[literal >> 1] if literal & 1 else outputs[literal >> 1] for literal in clause]
            if solver.solve([-variable for variable in after]) is not False:
                return Equivalence(judge, None, f"induction of {len(found.clauses)} relations was not shown")
    # Then the two circuits are compared, but only where the clauses hold: they do in all that the start leads to.
    miter = make_miter(netlist, smaller)
    inputs = [FALSE, *inputs_of(netlist, miter.names)]
    moved = [[mapped(literal, inputs) for literal in clause] for clause in given]
    with Solver(miter.joint, CONFLICTS, moved) as solver:
        for name, a, b in miter.pairs():
            answer = False if a == b else solver.differ(a, b)
            if answer is not False:
                return Equivalence(judge, None if answer is None else False, f"{name} was not shown to be equal")
    return Equivalence(
        judge,
        True,
        f"{len(miter.outputs)} channels by SAT, in all states in which {len(found.clauses)} relations between "
        "channels hold, which do so in the start, and by induction after every step",
    )
