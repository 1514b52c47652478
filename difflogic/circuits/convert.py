"""Between netlists, which are written and simulated, and graphs, which are simplified."""

from __future__ import annotations

import numpy as np

from difflogic.circuits.graph import Builder, Graph, Node
from difflogic.netlist import Netlist
from difflogic.straight_line import NOT_A, READS


def gate_count(netlist: Netlist) -> int:
    """Two-input gates: those that truly read two inputs. Constants, pass-throughs and NOT are not counted."""
    reads_two = np.array(READS)[netlist.gates] == 2
    return int((reads_two & (netlist.wires[:, 0] != netlist.wires[:, 1])).sum())


def to_graph(netlist: Netlist, share: bool = False) -> Graph:
    """The netlist with constants, pass-throughs and inverters folded away; gates that nothing reads stay."""
    builder = Builder(netlist.inputs, share)
    literals = [2 * (1 + bit) for bit in range(netlist.inputs)]
    for gate, (a, b) in zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True):
        literals.append(builder.gate(gate, literals[a], literals[b]))
    return builder.finish(literals[output] for output in netlist.outputs.tolist())


def to_netlist(graph: Graph, like: Netlist) -> Netlist:
    """The graph as a netlist with the channels of `like`.

    A node is built in the polarity that an output wants, so that an inverter is left only where an output is
    an inverted input, or where two outputs are opposite.
    """
    flipped = _polarities(graph)
    types, wires = [], []
    for node, gate in enumerate(graph.gates, graph.first):
        a, b = gate.a ^ flipped[gate.a >> 1], gate.b ^ flipped[gate.b >> 1]
        types.append(Node(gate.xor, a, b).gate ^ (15 * flipped[node]))
        wires.append(((gate.a >> 1) - 1, (gate.b >> 1) - 1))
    outputs, inverted = [], {}
    for output in graph.outputs:
        node, is_inverted = output >> 1, (output & 1) ^ flipped[output >> 1]
        if (node == 0 or is_inverted) and output not in inverted:
            inverted[output] = graph.inputs + len(types)
            types.append(15 * (output & 1) if node == 0 else NOT_A)
            wires.append((max(node - 1, 0),) * 2)
        outputs.append(inverted.get(output, node - 1))
    return Netlist.build(like.channels, like.periodic, types, wires, outputs, like.visible, like.origin, like.habitat)


def _polarities(graph: Graph) -> list[int]:
    """For each node 1 where it is built inverted: a gate that an output reads inverted, and none reads plain."""
    wanted = set(graph.outputs)
    return [
        int(node >= graph.first and 2 * node + 1 in wanted and 2 * node not in wanted) for node in range(graph.size)
    ]
