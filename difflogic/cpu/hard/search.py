"""Search over the hard circuit, 64 circuits at a time: in the bits of a word every sample meets another circuit.

Of a gate that candidates change, the coefficients differ from bit to bit; all other gates are simplified as in any hard
rollout. Twin: `reference/local_search.py`.
"""

from __future__ import annotations

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen import compiled
from difflogic.cpu.codegen.compiled import entry_point, inlined
from difflogic.cpu.codegen.vectors import TILE, WORDS
from difflogic.cpu.hard.hard_forward import ONES, HardBuffers, hard_forward, simplify
from difflogic.cpu.hard.hard_program import GATE_BITS
from difflogic.cpu.hard.hard_workspace import HardWorkspace
from difflogic.cpu.program import RECORD, Program
from difflogic.engine.job import Job
from difflogic.engine.search import FUNCTION, HOW_FAR, LANES, SIDES, WHERE
from difflogic.engine.shape import Array, Shape


class CpuLocalSearch:
    """Implements `difflogic.engine.search.LocalSearch`, by one thread."""

    def __init__(self, job: Job) -> None:
        self._hard = HardWorkspace(
            job.circuit, Shape.training(job.circuit, job.config), len(job.probes), 2, 1, job.probe_masks is not None
        )
        if job.probe_masks is not None:
            self._hard.set_masks(job.probe_masks)
        self._start, self._targets = _spread(job.probes), _spread(job.targets(job.probes))
        starts = self._hard.program.gate_starts.astype(np.int64)
        self._gate_of = np.repeat(np.arange(job.circuit.gates), np.diff(starts))
        self._depth = len(job.circuit.update)
        gates = np.zeros(job.circuit.gates, dtype=np.int64)
        compiled.compile_now(run_search, "the search", 20, lambda: self._judge(gates))

    def search(self, gates: Array, costs: Array, words: Array, rises: bool) -> None:
        work = self._hard
        run_search(work.program, work.buffers, self._start, self._targets, self._gate_of, self._depth, gates, costs,
                   words, rises)  # fmt: skip

    def wrong(self, gates: Array) -> Array:
        self._judge(gates)
        judged = self._hard.buffers.judged[..., : self._targets.shape[1]]
        wrong: Array = (judged ^ self._targets) & np.uint64(1) != 0
        return wrong

    def _judge(self, gates: Array) -> None:
        """An epoch without rounds."""
        self.search(gates, np.ones((0, 0, 0), dtype=np.uint32), np.zeros((0, LANES, 1), dtype=np.uint32), False)


def _spread(grids: Array) -> Array:
    """`[P, H, W, C]` of 0 and 1 as words uint64 `[C, P*H*W]`, the same in every lane."""
    return np.where(np.ascontiguousarray(grids.reshape(-1, grids.shape[-1]).T) != 0, ONES, np.uint64(0))


@entry_point
def run_search(
    program: Program, buffers: HardBuffers, start: Array, targets: Array, gate_of: Array, depth: int, gates: Array,
    costs: Array, words: Array, rises: bool,
) -> None:  # fmt: skip
    """An epoch; without rounds the circuit is only judged."""
    changed = np.zeros(LANES, dtype=np.int64)
    new, scores = np.zeros_like(changed), np.zeros_like(changed)
    live, nodes = np.zeros(len(gates), dtype=np.int64), np.zeros(program.nodes, dtype=np.bool_)
    for gate in range(len(gates)):
        buffers.gate_words[gate] = -GATE_BITS[gates[gate]]
    count = _live(program, gate_of, gates, nodes, live)
    lane = 0
    if len(words) == 0:
        _judge(program, buffers, start)
    for round_ in range(len(words)):
        # A round tries 63 circuits at the price of one rollout. In bit 0 of every word is the present circuit; in bit
        # 5, say, the same but for gate 17, which there is an OR: its words of coefficients differ from all zeros
        # or ones in that bit alone. Afterwards the words are put back, and the best candidate, if it is taken, changes
        # all bits.
        _choose(program, gate_of, depth, len(targets), gates, live[:count], words[round_], changed, new)
        for each in range(1, LANES):
            _put(buffers.gate_words[changed[each]], new[each], each)
        _judge(program, buffers, start)
        _score(buffers.judged, targets, costs, scores)
        for each in range(1, LANES):
            buffers.gate_words[changed[each]] = -GATE_BITS[gates[changed[each]]]
        if scores[0] == 0:
            return
        lane = _best(scores, words[round_, 0, WHERE])
        if lane > 0:
            gates[changed[lane]] = new[lane]
            buffers.gate_words[changed[lane]] = -GATE_BITS[new[lane]]
            count = _live(program, gate_of, gates, nodes, live)
            if scores[lane] == 0:
                return
    if rises:
        _raise(buffers.judged, targets, costs, lane)


@inlined
def _judge(program: Program, buffers: HardBuffers, start: Array) -> None:
    """All steps of the circuits in `gate_words`."""
    simplify(program, buffers)
    for channel in range(len(start)):
        buffers.words[0, channel, : start.shape[1]] = start[channel]
    for at in range(len(buffers.marks) - 1):
        for tile in range(buffers.near.shape[1] // WORDS):
            hard_forward(program, at, tile, buffers, buffers.nodes[0])


@inlined
def _choose(
    program: Program, gate_of: Array, depth: int, outputs: int, gates: Array, live: Array, drawn: Array, changed: Array,
    new: Array,
) -> None:  # fmt: skip
    """Of each candidate the gate and its new function."""
    for lane in range(1, LANES):
        words = drawn[lane]
        if lane % 2:
            gate = live[np.int64(words[WHERE]) % len(live)]
        else:
            instance = program.nodes - program.patch_nodes - program.channels + np.int64(words[WHERE]) % outputs
            # Up from an output that is judged: what is near to one is tried more often than chance alone would.
            for step in range(np.int64(words[HOW_FAR]) % depth):
                side = np.int64(words[SIDES]) >> (step % 32) & 1
                instance = np.int64(program.records[RECORD * instance + side] // TILE) - program.patch_nodes
            gate = gate_of[instance]
        changed[lane] = gate
        new[lane] = (gates[gate] + 1 + np.int64(words[FUNCTION]) % (GATE_COUNT - 1)) % GATE_COUNT


@inlined
def _put(words: Array, function: int, lane: int) -> None:
    """The gate with these coefficients becomes another one in a lane."""
    bit = np.int64(1) << lane
    for index in range(4):
        words[index] = words[index] | bit if GATE_BITS[function, index] else words[index] & ~bit


@inlined
def _live(program: Program, gate_of: Array, gates: Array, nodes: Array, live: Array) -> int:
    """`live` becomes the gates that an output depends on, if no input is known, ascending: their number."""
    nodes[:] = False
    nodes[program.nodes - program.channels :] = True
    for instance in range(program.nodes - program.patch_nodes - 1, -1, -1):
        if nodes[program.patch_nodes + instance]:
            bits = GATE_BITS[gates[gate_of[instance]]]
            for side in range(2):
                if bits[1 + side] or bits[3]:
                    nodes[program.records[RECORD * instance + side] // TILE] = True
    count = 0
    for instance in range(len(gate_of)):
        if nodes[program.patch_nodes + instance] and (count == 0 or live[count - 1] != gate_of[instance]):
            live[count] = gate_of[instance]
            count += 1
    return count


@inlined
def _score(judged: Array, targets: Array, costs: Array, scores: Array) -> None:
    """What the wrong values of every lane cost."""
    scores[:] = 0
    for step in range(judged.shape[0]):
        for channel in range(judged.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = judged[step, channel, cell] ^ targets[channel, cell]
                if wrong:
                    cost = np.int64(costs[step, channel, cell])
                    for lane in range(LANES):
                        scores[lane] += cost * np.int64(wrong >> np.uint64(lane) & np.uint64(1))


@inlined
def _best(scores: Array, word: int) -> int:
    """The best candidate, of several one by `word`; 0 where all are worse than the present circuit."""
    # Not worse is good enough: among circuits that are equally wrong the search drifts to where a further change helps.
    best = scores[1:].min()
    if best > scores[0]:
        return 0
    place = np.int64(word) % np.int64((scores[1:] == best).sum())
    for lane in range(1, LANES):
        if scores[lane] == best:
            if place == 0:
                return lane
            place -= 1
    return 0


@inlined
def _raise(judged: Array, targets: Array, costs: Array, lane: int) -> None:
    """What is wrong in this lane costs more."""
    for step in range(judged.shape[0]):
        for channel in range(judged.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = (judged[step, channel, cell] ^ targets[channel, cell]) >> np.uint64(lane)
                costs[step, channel, cell] += np.uint32(wrong & np.uint64(1))
