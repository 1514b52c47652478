"""Simplification for states that can follow the initial state, on any grid, whichever cells fire.

Channels that an `invariant` proves constant, equal or opposite are merged. Gates must be correct only in states that
satisfy the invariant. After another initial state, or after damage, the circuit may differ.
"""

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
    """Return the netlist simplified for reachable states, with a proof. Raises UsageError without an initial state."""
    clauses = invariant.find(netlist)
    search = Search(Cell.of(netlist), on_pass)
    cells = len(search.cell.cells)
    assumed, samples = clauses.on_inputs(cells), clauses.samples[search.cell.inputs]
    # The invariant refers to channels by number, so none is removed before the last pass. Samples are states that
    # occur, so the solver need not compare nodes that differ on a sample.
    passes: dict[str, Pass] = {
        "equivalent channels merged": lambda graph: _replaced(graph, clauses, cells),
        "SAT sweeping on reachable states": lambda graph: swept_by_proof(graph, samples, assumed),
        "resubstitution on reachable states": lambda graph: resynthesised_where(graph, samples, assumed),
    }
    search.to_fixpoint(passes)
    search.drop_unseen_channels()
    return search.proved(netlist, search.cell.netlist(netlist), lambda one, other: proved(one, other, clauses))


def _replaced(graph: XAG, clauses: Invariant, cells: int) -> XAG:
    """Return the graph with redundant channels replaced at the inputs; the outputs remain."""
    inputs = [input_literal(index) for index in range(graph.inputs)]
    for channel, same in clauses.replacements().items():
        for cell in range(cells):
            value = (FALSE, TRUE)[same + 2] if same < 0 else invariant.in_cell(same, cell, cells)
            inputs[cells * channel + cell] = value
    return rebuilt(embedded(graph, inputs, graph.inputs))


def proved(netlist: CellNetlist, smaller: CellNetlist, inductive: Invariant) -> Equivalence:
    """Prove the invariant again, and that common channels of both circuits are equal from the initial state on."""
    # Induction: all clauses are true in the initial state, and if all are true, each is true after a step.
    judge, clauses = "difflogic", inductive.clauses
    if not invariant.hold(clauses, invariant.base(netlist, invariant.start_of(netlist))):
        return Equivalence(judge, False, "the initial state breaks the invariant")
    assumed = inductive.on_inputs()
    graph = rebuilt(to_xag(netlist))
    with Solver(graph, CONFLICTS, assumed) as solver:
        outputs = [solver.variable(output) for output in graph.outputs]
        for clause in clauses:
            after = [-outputs[literal >> 1] if literal & 1 else outputs[literal >> 1] for literal in clause]
            if solver.solve([-variable for variable in after]) is not False:
                return Equivalence(judge, None, f"induction of {len(clauses)} relations was not proved")
    # Then the two circuits are compared on all inputs that satisfy the clauses.
    miter = make_miter(netlist, smaller)
    inputs = [FALSE, *inputs_of(netlist, miter.names)]
    moved = [[mapped(literal, inputs) for literal in clause] for clause in assumed]
    with Solver(miter.joint, CONFLICTS, moved) as solver:
        for name, a, b in miter.pairs():
            answer = False if a == b else solver.differ(a, b)
            if answer is not False:
                return Equivalence(judge, None if answer is None else False, f"{name} was not proved equal")
    return Equivalence(
        judge,
        True,
        f"{len(miter.outputs)} channels by SAT, in all states in which {len(clauses)} relations between channels hold: "
        "in the initial state, and by induction after every step",
    )
