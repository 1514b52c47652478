"""Conversion between netlists, which are stored and simulated, and graphs, which are simplified."""

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
    """Return the number of gates that depend on two inputs: not constants, pass-throughs and NOTs."""
    # A gate that reads one bit twice, such as XOR(x, x), depends on at most one input.
    reads_two = np.array(READS)[netlist.gates] == 2
    return int((reads_two & (netlist.wires[:, 0] != netlist.wires[:, 1])).sum())


def gates_once(netlist: CellNetlist) -> int:
    """Return the number of gates as the paper counts them: equal gates that each read a single channel count as one.

    Such gates may read different channels: they are equal if their functions of the nine cells are equal or opposite.
    """
    graph = rebuilt(to_xag(netlist))
    # The nine cells have the same values in every channel, so that equal functions of one channel are equal rows. Rows
    # of gates that read several channels are not used.
    values = graph.evaluate(np.tile(all_patterns(wiring.PATCH), (netlist.channels, 1)))
    # A function and its inverse count as one gate, since NOT is free: the row that begins with 0 represents both.
    values = np.where(values[:, :1] & np.uint64(1), ~values, values)
    functions: set[bytes] = set()
    several = 0
    for node in graph.nodes:
        # The lowest bit of the set, `x & -x`, is the first input; all others must belong to its channel.
        support = graph.supports[node]
        channel = ((support & -support).bit_length() - 1) // wiring.PATCH
        if support >> wiring.PATCH * (channel + 1):
            several += 1
        else:
            functions.add(values[node].tobytes())
    return several + len(functions)


def to_xag(netlist: Netlist, share: bool = False) -> XAG:
    """Return the graph of a netlist with constants, pass-throughs and inverters folded, but with dead gates."""
    # Bit `i` of the netlist is `literals[i]` of the graph. A pass-through or a NOT adds no node: its literal is its
    # operand's, possibly inverted.
    builder = Builder(netlist.inputs, share)
    literals = [input_literal(bit) for bit in range(netlist.inputs)]
    for gate, (a, b) in zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True):
        literals.append(builder.gate(gate, literals[a], literals[b]))
    return builder.finish(literals[output] for output in netlist.outputs.tolist())


def lean(netlist: N) -> N:
    """Return an equivalent netlist with constants folded, dead gates removed and equal gates merged."""
    return to_netlist(rebuilt(to_xag(netlist)), netlist)


def to_netlist(graph: XAG, like: N) -> N:
    """Return the graph as a netlist with the inputs and outputs of `like`.

    A node has the polarity of the output that it drives, so a NOT remains only if an output is an inverted input or two
    outputs are opposite.
    """
    # A netlist has no inverted edges. An inverted edge becomes part of the type of the gate that reads it, an inverted
    # output part of its gate: AND(2, 4) with the output 7 becomes NAND. Readers of such a gate see the inverse, hence
    # `^ flipped` at every edge. If an output needs a node plain and another needs it inverted, a NOT is added.
    ends = set(graph.outputs)
    flipped = [int(node in graph.nodes and 2 * node + 1 in ends and 2 * node not in ends) for node in range(graph.size)]
    types, wires = [], []
    for node, gate in enumerate(graph.gates, graph.first):
        a, b = gate.a ^ flipped[gate.a >> 1], gate.b ^ flipped[gate.b >> 1]
        # The inverse of a gate has all four rows of its table inverted: 1 (AND) ^ 15 is 14 (NAND).
        types.append(Node(gate.xor, a, b).gate ^ (15 * flipped[node]))
        wires.append(((gate.a >> 1) - 1, (gate.b >> 1) - 1))
    outputs, inverted = [], {}
    for output in graph.outputs:
        node, is_inverted = output >> 1, (output & 1) ^ flipped[output >> 1]
        # One constant or NOT serves all outputs that need it.
        if (node == 0 or is_inverted) and output not in inverted:
            inverted[output] = graph.inputs + len(types)
            types.append(15 * (output & 1) if node == 0 else NOT_A)
            wires.append((max(node - 1, 0),) * 2)
        outputs.append(inverted.get(output, node - 1))
    return like.with_gates(types, wires, outputs)
