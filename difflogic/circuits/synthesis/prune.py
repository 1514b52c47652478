"""Pruning of a trained circuit: replace active gates by wires if visible channels do not change.

Many active gates of a trained circuit affect no output or equal one of their inputs. They become pass-throughs of A or
B. From the outputs backward, each active gate is tried as a wire on samples. SAT then proves that the visible channels,
and all channels that affect them (*seen* channels), do not change. Counterexamples and similar inputs join the samples,
and the wires are tried again, many at once.

Example: the output `g2 = g1 AND x` with `g1 = x OR y` equals x, so g2 becomes its input B. Then nothing reads g1, which
becomes A: neither gate is active any more.
"""

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
"""Shares of ones in the samples: with only unbiased bits, a gate that depends on many inputs hardly ever changes."""
SAMPLES = 512
"""Number of samples for each of SHARES."""
NEAR = 128
"""Number of samples per counterexample: itself and similar ones."""
FLIPPED = 0.05
"""Share of inputs that are inverted in a sample similar to a counterexample."""
ROUNDS = 64
"""Maximum number of rounds; if they do not suffice, the circuit remains unchanged."""
CONFLICTS = 20_000
"""Maximum number of conflicts per query, a few seconds; if they do not suffice, the circuit remains unchanged."""

_SEED = 5

Indices = npt.NDArray[np.int64]


def pruned(circuit: Circuit, visible: int) -> Circuit:
    """Return an automaton with at most as many active gates, whose visible channels are equal in all rollouts.

    All channels that affect the visible ones are equal too. A gate that becomes a wire swaps two of its logits.
    """
    logits, layout = circuit.gate_logits, flat_layout(circuit.chosen)
    before = CellNetlist.from_circuit(circuit, visible)
    seen = Cell.of(before).seen_channels()
    random = np.random.default_rng(_SEED)
    samples = pack_bits(_first_samples(before.inputs, random))
    hard = logits.argmax(axis=1)
    wired = _Wired(layout, hard, samples, seen)
    wired.wire(np.flatnonzero(~np.isin(hard, WIRE_GATES))[::-1])
    for _ in range(ROUNDS):
        gates = wired.gates
        candidate = circuit.with_gate_logits(chosen(logits, gates))
        refuted = _refuted(before, CellNetlist.from_circuit(candidate, visible), seen)
        if not refuted:
            return circuit if refuted is None else candidate
        samples = np.concatenate([samples, *(pack_bits(_like(inputs, random)) for inputs in refuted)], axis=1)
        wired, again = _Wired(layout, hard, samples, seen), np.flatnonzero(gates != hard)[::-1]
        wired.wire_again(again, gates[again])
    return circuit


def _first_samples(inputs: int, random: np.random.Generator) -> Bits:
    """Return samples, uint8 `[inputs, N]`: for one channel all neighbourhoods, for several channels random ones."""
    if inputs == wiring.PATCH:
        return (np.arange(1 << inputs) >> np.arange(inputs)[:, None] & 1).astype(np.uint8)
    return np.concatenate([random.random((inputs, SAMPLES)) < share for share in SHARES], axis=1).astype(np.uint8)


def _like(inputs: tuple[int, ...], random: np.random.Generator) -> Bits:
    """Return `inputs` and similar inputs, uint8 `[inputs, NEAR]`, since these refute other wires too."""
    flipped = random.random((len(inputs), NEAR)) < FLIPPED
    flipped[:, 0] = False
    return (np.array(inputs)[:, None] ^ flipped).astype(np.uint8)


def _refuted(before: CellNetlist, after: CellNetlist, seen: list[int]) -> list[tuple[int, ...]] | None:
    """Return a counterexample for each channel in `seen` that differs; None if any channel remains undecided."""
    miter = make_miter(before, after)
    # Both have the same channel names, so that the miter's inputs are those of the netlists, in order.
    with Solver(miter.joint, CONFLICTS) as solver:
        answers = [solver.differ(a, b) for index, (_, a, b) in enumerate(miter.pairs()) if index in seen and a != b]
    return None if None in answers else [answer for answer in answers if isinstance(answer, tuple)]


class _Wired:
    """Gates of a circuit, some replaced by wires, and the values of all nodes on samples."""

    def __init__(self, layout: Layout, hard: Indices, samples: Words, seen: list[int]) -> None:
        self.gates = hard.copy()
        self._layout = layout
        self._a, self._b = np.ascontiguousarray(layout.wires.T)
        self._starts = [level.first_gate for level in layout.levels]
        self._seen = layout.nodes - layout.channels + np.array(seen)
        self._read_until = np.zeros(layout.nodes, dtype=np.int64)
        """Last level that reads each node, `[nodes]`."""
        self._values = np.empty((layout.nodes, samples.shape[1]), dtype=np.uint64)
        self._values[: layout.patch_nodes] = samples
        for depth, level in enumerate(layout.levels):
            instances = np.arange(level.first_instance, level.first_instance + level.count)
            self._values[layout.patch_nodes + instances] = self._evaluated(instances)
            self._read_until[layout.wires[instances]] = depth

    def wire(self, gates: Indices) -> None:
        """Replace `gates`, one after the other, by wires wherever no seen channel changes."""
        for gate in gates[:, None]:
            if not self._becomes(gate, WIRE_GATES[0]):
                self._becomes(gate, WIRE_GATES[1])

    def wire_again(self, gates: Indices, functions: Indices) -> None:
        """Restore the previous round's wires by bisection, since most are still valid: 20 trials if 1 of 700 fails."""
        if self._becomes(gates, functions):
            return
        if len(gates) == 1:
            self._becomes(gates, sum(WIRE_GATES) - functions)
            return
        half = len(gates) // 2
        self.wire_again(gates[:half], functions[:half])
        self.wire_again(gates[half:], functions[half:])

    def _becomes(self, gates: Indices, functions: Indices | int) -> bool:
        """Set `gates` to `functions` if no seen channel changes; return whether they were set."""
        before = self.gates[gates]
        self.gates[gates] = functions
        is_unseen = self._is_unseen(gates)
        if not is_unseen:
            self.gates[gates] = before
        return is_unseen

    def _is_unseen(self, gates: Indices) -> bool:
        """Return True if the new functions of `gates` change no seen channel, and then store the new values."""
        layout, values, undo = self._layout, self._values, []
        is_changed, is_first = np.zeros(layout.nodes, dtype=bool), np.zeros(layout.gates, dtype=bool)
        is_first[gates] = True
        depth, until = (bisect_right(self._starts, gate) - 1 for gate in (gates.min(), gates.max()))
        while depth <= until:
            # Only readers of changed values are evaluated, since most changes end within a few gates.
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
