"""Conversion of a graph to a trainable circuit of layers, in which each layer reads only the previous one."""

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.xag import XAG
from difflogic.core import wiring
from difflogic.core.gates import GATE_COUNT, PASS_THROUGH
from difflogic.model.circuit import Circuit
from difflogic.model.straight_line import NOT_A

LOGIT = 10.0
"""Logit of each gate's function; the gate's other fifteen logits are 0."""


def layered(graph: XAG, periodic: bool, neighbourhood: str) -> Circuit:
    """Return a graph, from the 9*C bits of a patch to the C bits of a cell's next state, as a trainable automaton.

    The perception kernel passes all neighbours through. Gates are in the layer of their level, and nodes that later
    layers read are passed through. The last layer contains the outputs. The graph may only read the neighbourhood.
    """
    channels = len(graph.outputs)
    cells = wiring.NEIGHBOURHOODS[neighbourhood]
    passed = np.resize([cell for cell in cells if cell != wiring.CENTRE], wiring.PATCH - 1)
    # The update network reads the cell's own bits, then those of perception, channel by channel.
    places = {1 + wiring.PATCH * channel + wiring.CENTRE: channel for channel in range(channels)}
    for place, cell in reversed(list(enumerate(passed.tolist()))):
        places |= {1 + wiring.PATCH * channel + cell: channels + 8 * channel + place for channel in range(channels)}
    levels = graph.levels
    last = dict.fromkeys((output >> 1 for output in graph.outputs), depth := max(levels))
    for node in reversed(graph.nodes):
        gate = graph.gates[node - graph.first]
        for read in (gate.a >> 1, gate.b >> 1):
            last[read] = max(last.get(read, 0), levels[node] - 1)
    wires, logits = [], []
    for level in range(1, depth + 1):
        nodes = [node for node in sorted(last) if levels[node] <= level <= last[node] and node]
        gates = [graph.gates[node - graph.first] if levels[node] == level else None for node in nodes]
        pairs = [(n, n) if gate is None else (gate.a >> 1, gate.b >> 1) for n, gate in zip(nodes, gates, strict=True)]
        wires.append(np.array([[places[node] for node in pair] for pair in pairs]).T)
        logits.append(_logits([PASS_THROUGH if gate is None else gate.gate for gate in gates]))
        places = {node: place for place, node in enumerate(nodes)}
    ends = [places.get(output >> 1, 0) for output in graph.outputs]
    wires.append(np.array([ends, ends]))
    kinds = [15 * output if output < 2 else NOT_A if output & 1 else PASS_THROUGH for output in graph.outputs]
    logits.append(_logits(kinds))
    perceive = _logits([PASS_THROUGH] * len(passed))[None]
    reads = {"perceive": [np.stack([passed, passed])], "update": wires}
    return Circuit.from_arrays({"perceive": [perceive], "update": logits}, reads, channels, periodic, neighbourhood)


def _logits(kinds: list[int]) -> npt.NDArray[np.float32]:
    """Return the logits, `[gates, 16]`, of gates with the ids `kinds`."""
    return np.float32(LOGIT) * np.eye(GATE_COUNT, dtype=np.float32)[kinds]
