"""Between netlists, which are written and simulated, and graphs, which are simplified."""

from typing import TypeVar

import numpy as np

from difflogic.circuits.synthesis.truth_tables import all_patterns
from difflogic.circuits.synthesis.xag import XAG, Builder, Node, input_literal, rebuilt
from difflogic.core import wiring
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import NOT_A, READS

N = TypeVar("N", bound=Netlist)


def gate_count(netlist: Netlist) -> int:
    """Two-input gates: those that truly read two inputs. Constants, pass-throughs and NOT are not counted."""
    # Wires may be the same bit twice, as XOR(x, x): such a gate reads one input, or none.
    reads_two = np.array(READS)[netlist.gates] == 2
    return int((reads_two & (netlist.wires[:, 0] != netlist.wires[:, 1])).sum())


def gates_once(netlist: CellNetlist) -> int:
    """Count gates that see only one channel once for all channels, as the paper counts perception.

    Two such gates are the same where their values are the same function of the nine cells, or opposite ones.
    """
    graph = rebuilt(to_xag(netlist))
    # Every channel's nine cells get the same values, so that equal functions of one channel are equal rows. The row of
    # a gate that reads several channels means nothing then, and is not looked at.
    values = graph.evaluate(np.tile(all_patterns(wiring.PATCH), (netlist.channels, 1)))
    # A function and its opposite are one gate, for NOT is free: that whose first value is 0 stands for both.
    values = np.where(values[:, :1] & np.uint64(1), ~values, values)
    found: set[bytes] = set()
    several = 0
    for node in graph.nodes:
        # The lowest bit of the set, isolated by `x & -x`, is the first input; nothing may lie beyond its channel.
        support = graph.supports[node]
        channel = ((support & -support).bit_length() - 1) // wiring.PATCH
        if support >> wiring.PATCH * (channel + 1):
            several += 1
        else:
            found.add(values[node].tobytes())
    return several + len(found)


def to_xag(netlist: Netlist, share: bool = False) -> XAG:
    """The netlist with constants, pass-throughs and inverters folded away; gates that nothing reads stay."""
    # Bit `i` of the netlist is `literals[i]` of the graph. A pass-through or a NOT makes no node: its literal is that
    # of what it reads, perhaps inverted, and so a chain of them costs nothing whoever reads it.
    builder = Builder(netlist.inputs, share)
    literals = [input_literal(bit) for bit in range(netlist.inputs)]
    for gate, (a, b) in zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True):
        literals.append(builder.gate(gate, literals[a], literals[b]))
    return builder.finish(literals[output] for output in netlist.outputs.tolist())


def lean(netlist: N) -> N:
    """Return the same circuit without what costs time and changes nothing: its gates folded, read, and each once."""
    return to_netlist(rebuilt(to_xag(netlist)), netlist)


def to_netlist(graph: XAG, like: N) -> N:
    """The graph as a netlist between the inputs and outputs of `like`.

    A node is built in the polarity that an output wants, so that an inverter is left only where an output is
    an inverted input, or where two outputs are opposite.
    """
    # A netlist has no inverted edges. An edge that inverts is taken into the type of the gate that reads it; an output
    # that inverts into the gate itself, which then is built as its opposite: for AND(2, 4) and the output 7 that is
    # NAND. Readers of a node that is built inverted see the opposite, so that `^ flipped` stands at every edge. A node
    # that is wanted plain and inverted is built plain: one NOT is needed either way.
    wanted = set(graph.outputs)
    flipped = [
        int(node in graph.nodes and 2 * node + 1 in wanted and 2 * node not in wanted) for node in range(graph.size)
    ]
    types, wires = [], []
    for node, gate in enumerate(graph.gates, graph.first):
        a, b = gate.a ^ flipped[gate.a >> 1], gate.b ^ flipped[gate.b >> 1]
        # All four rows of a table flipped are the opposite gate: 1 (AND) ^ 15 is 14 (NAND).
        types.append(Node(gate.xor, a, b).gate ^ (15 * flipped[node]))
        wires.append(((gate.a >> 1) - 1, (gate.b >> 1) - 1))
    outputs, inverted = [], {}
    for output in graph.outputs:
        node, is_inverted = output >> 1, (output & 1) ^ flipped[output >> 1]
        # What is left needs a gate that is none: a constant, or a NOT, one for all outputs that want it.
        if (node == 0 or is_inverted) and output not in inverted:
            inverted[output] = graph.inputs + len(types)
            types.append(15 * (output & 1) if node == 0 else NOT_A)
            wires.append((max(node - 1, 0),) * 2)
        outputs.append(inverted.get(output, node - 1))
    return like.with_gates(types, wires, outputs)
