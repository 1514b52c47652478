"""A trained circuit without gates that compute nothing: what no cell can ever tell from a wire becomes one.

Training leaves many gates active that nothing depends on, or that always say what one of their inputs says already. A
layer cannot lose a gate, so such a gate passes A or B on instead, as most gates do. From the outputs up, each active
gate is tried as a wire on samples of the inputs, and stays one where no channel that matters changes. Then each of
these channels is proved to be the same function as before. Inputs on which one differs join the samples, with others
that are like them, and the wires are tried once more from the trained circuit on, many at once.

Example: the output is `g2 = g1 AND x`, where `g1 = x OR y`. It is x whatever y is, so g2 becomes its input B, which is
x. Then nothing reads g1, which becomes A: of two active gates none is left.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.cell import Cell
from difflogic.circuits.synthesis.miter import make_miter
from difflogic.circuits.synthesis.sat import Solver
from difflogic.core import wiring
from difflogic.core.bit_parallel import MASKS, evaluated
from difflogic.core.bits import Bits, Words, pack_bits
from difflogic.engine.search import chosen
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, flat_layout
from difflogic.model.statistics import WIRE_GATES

SHARES = (0.5, 0.25, 0.75, 0.1, 0.9)
"""Of ones among the inputs, in as many kinds of samples: a gate that joins many inputs hardly changes on fair bits."""
SAMPLES = 512
"""Of each kind."""
NEAR = 128
"""Samples around each counterexample."""
FLIPPED = 0.05
"""Share of the inputs that are the other way in samples like a counterexample."""
ROUNDS = 64
"""So often at most the wires are tried, then all stays as it was."""
CONFLICTS = 20_000
"""After so many the solver gives up, and all stays as it was: seconds."""

_SEED = 5

Indices = npt.NDArray[np.int64]


def pruned(circuit: Circuit, visible: int) -> Circuit:
    """Return the automaton with fewer active gates, or as many, and the same picture whatever its cells' state.

    `visible`: its first channels, which are the picture; others count where these depend on them. A gate that becomes a
    wire swaps two of its sixteen logits.
    """
    logits, before, layout = circuit.flat_logits(), CellNetlist.from_circuit(circuit, visible), flat_layout(circuit)
    seen = Cell.of(before).seen_channels()
    random = np.random.default_rng(_SEED)
    samples = pack_bits(_first_samples(before.inputs, random))
    hard = logits.argmax(axis=1)
    wired = _Wired(layout, hard, samples, seen)
    # Gates are numbered level by level: backwards is from the outputs up.
    wired.wire(np.flatnonzero(~np.isin(hard, WIRE_GATES))[::-1])
    for _ in range(ROUNDS):
        gates = wired.gates
        found = circuit.with_logits(chosen(logits, gates))
        refuted = _refuted(before, CellNetlist.from_circuit(found, visible), seen)
        if not refuted:
            return circuit if refuted is None else found
        samples = np.concatenate([samples, *(pack_bits(_like(each, random)) for each in refuted)], axis=1)
        wired, again = _Wired(layout, hard, samples, seen), np.flatnonzero(gates != hard)[::-1]
        wired.wire_again(again, gates[again])
    return circuit


def _first_samples(inputs: int, random: np.random.Generator) -> Bits:
    """Bits `[inputs, N]`: all neighbourhoods of one channel, else random ones."""
    if inputs == wiring.PATCH:
        return (np.arange(1 << inputs) >> np.arange(inputs)[:, None] & 1).astype(np.uint8)
    return np.concatenate([random.random((inputs, SAMPLES)) < share for share in SHARES], axis=1).astype(np.uint8)


def _like(inputs: tuple[int, ...], random: np.random.Generator) -> Bits:
    """Bits `[inputs, NEAR]`: these inputs, and others that are like them but for a few."""
    # Where one wire is wrong, others are too, on inputs near by: so each round teaches of more than one.
    flipped = random.random((len(inputs), NEAR)) < FLIPPED
    flipped[:, 0] = False
    return (np.array(inputs)[:, None] ^ flipped).astype(np.uint8)


def _refuted(before: CellNetlist, after: CellNetlist, seen: list[int]) -> list[tuple[int, ...]] | None:
    """Inputs on which a channel of these differs, one of each that ever does; None where it was not decided."""
    miter = make_miter(before, after)
    # Both have all channels under the same names, so that the miter's inputs are those of the netlists, in order.
    with Solver(miter.joint, CONFLICTS) as solver:
        answers = [solver.differ(a, b) for index, (_, a, b) in enumerate(miter.pairs()) if index in seen and a != b]
    return None if None in answers else [answer for answer in answers if isinstance(answer, tuple)]


class _Wired:
    """A circuit's gates and the values of its nodes on samples; gate after gate is made a wire."""

    def __init__(self, layout: Layout, hard: Indices, samples: Words, seen: list[int]) -> None:
        self.gates = hard.copy()
        self._layout = layout
        self._a, self._b = np.ascontiguousarray(layout.wires.T)
        self._starts = [level.first_gate for level in layout.levels]
        self._seen = layout.nodes - layout.channels + np.array(seen)
        self._read_until = np.zeros(layout.nodes, dtype=np.int64)
        """`[nodes]`: the last level that reads a node."""
        self._values = np.empty((layout.nodes, samples.shape[1]), dtype=np.uint64)
        self._values[: layout.patch_nodes] = samples
        for depth, level in enumerate(layout.levels):
            instances = np.arange(level.first_instance, level.first_instance + level.count)
            self._values[layout.patch_nodes + instances] = self._evaluated(instances)
            self._read_until[layout.wires[instances]] = depth

    def wire(self, gates: Indices) -> None:
        """Make each of these gates a wire, one after the other, where no channel that counts changes."""
        for gate in gates[:, None]:
            if not self._becomes(gate, WIRE_GATES[0]):
                self._becomes(gate, WIRE_GATES[1])

    def wire_again(self, gates: Indices, functions: Indices) -> None:
        """The same for gates that were made these wires on fewer samples: many at once, since most still can be."""
        # Of 8 wires of which the sixth is wrong, all are tried; the first 4, which stay, and the last 4; of these the
        # first 2, and each of them, the sixth with its other input too; and the last 2. Where one of 700 is, that is
        # some 20 trials.
        if self._becomes(gates, functions):
            return
        if len(gates) == 1:
            self._becomes(gates, sum(WIRE_GATES) - functions)
            return
        half = len(gates) // 2
        self.wire_again(gates[:half], functions[:half])
        self.wire_again(gates[half:], functions[half:])

    def _becomes(self, gates: Indices, functions: Indices | int) -> bool:
        """Give gates these functions where no channel that counts changes; return whether they have them now."""
        before = self.gates[gates]
        self.gates[gates] = functions
        is_unseen = self._is_unseen(gates)
        if not is_unseen:
            self.gates[gates] = before
        return is_unseen

    def _is_unseen(self, gates: Indices) -> bool:
        """Return whether no channel that counts changes with these gates, and take the new values only then."""
        layout, values, undo = self._layout, self._values, []
        is_changed, is_first = np.zeros(layout.nodes, dtype=bool), np.zeros(layout.gates, dtype=bool)
        is_first[gates] = True
        depth, until = (bisect_right(self._starts, gate) - 1 for gate in (gates.min(), gates.max()))
        while depth <= until:
            # Only what reads a changed value is evaluated anew: most changes end within a few gates.
            level = layout.levels[depth]
            part = slice(level.first_instance, level.first_instance + level.count)
            is_due = is_changed[self._a[part]] | is_changed[self._b[part]] | is_first[layout.instance_gates[part]]
            instances = level.first_instance + np.flatnonzero(is_due)
            if len(instances):
                nodes, new = layout.patch_nodes + instances, self._evaluated(instances)
                differ = (values[nodes] != new).any(axis=1)
                nodes = nodes[differ]
                undo.append((nodes, values[nodes]))
                values[nodes], is_changed[nodes] = new[differ], True
                until = max(until, self._read_until[nodes].max(initial=0))
            depth += 1
        if not is_changed[self._seen].any():
            return True
        for nodes, old in undo:
            values[nodes] = old
        return False

    def _evaluated(self, instances: Indices) -> Words:
        a, b = self._values[self._a[instances]], self._values[self._b[instances]]
        return evaluated(MASKS[:, self.gates[self._layout.instance_gates[instances]], None], a, b)
