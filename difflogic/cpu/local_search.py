"""Search over the hard circuit, 64 circuits at a time: in the bits of a word every sample meets another circuit.

Of a gate that candidates change, the coefficients differ from bit to bit; all other gates are simplified as in any hard
rollout. Nothing is computed twice: cells that are alike whatever the circuit is, since the start is alike all around
them, share a column. Twin: `reference/local_search.py`.
"""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from difflogic.core.gates import GATE_COUNT, INPUT_WISE, TABLE
from difflogic.cpu import phases
from difflogic.cpu.codegen import compiled
from difflogic.cpu.codegen.atomics import DONE, fetch_add, take
from difflogic.cpu.codegen.compiled import entry_point, inlined
from difflogic.cpu.codegen.threads import default_threads, together
from difflogic.cpu.codegen.vectors import TILE, WORDS
from difflogic.cpu.hard.hard_forward import ONES, HardBuffers, hard_forward
from difflogic.cpu.hard.hard_program import GATE_BITS, HardPlan, hard_program, make_plan, mark, write_function
from difflogic.cpu.hard.hard_workspace import HardWorkspace
from difflogic.cpu.program import RECORD, Program
from difflogic.cpu.tables import aligned
from difflogic.cpu.workspace import SoftWorkspace, shared_start
from difflogic.engine.job import Job
from difflogic.engine.search import FUNCTION, GUIDED, HOW_FAR, LANES, NO_GUIDE, SIDES, WHERE, stuck
from difflogic.engine.shape import Array, Shape


class Searched(NamedTuple):
    """This class holds what is searched, and what the threads of a search share between rounds."""

    start: Array
    """uint64 `[C, columns]`: the columns of the start."""
    targets: Array
    """uint64 `[loss_channels, P*H*W]`."""
    gate_of: Array
    """int64 `[I]`: each instance's gate."""
    depth: int
    """Layers of the update network."""
    changed: Array
    """int64 `[LANES]`: the gate that each candidate changes..."""
    new: Array
    """int64 `[LANES]`: ...and its function there."""
    scores: Array
    """int64 `[LANES]`: what the wrong values of each cost."""
    live: Array
    """int64 `[G]`: the gates that a judged value depends on."""
    numbers: Array
    """int64 `[4]`: LIVE, LANE, OVER and BEFORE."""
    guide: Array
    """int64 `[n, 2]`: see `difflogic.engine.search.promising`."""


LIVE, LANE, OVER, BEFORE = range(4)
"""How many gates are live, the lane of the present circuit, 1 where nothing is wrong any more, and how many values were
wrong when the epoch began."""


class CpuLocalSearch:
    """Implements `difflogic.engine.search.LocalSearch`; what it finds does not depend on the number of threads."""

    def __init__(self, job: Job, threads: int | None = None) -> None:
        self._job, shape, circuit = job, Shape.training(job.circuit, job.config), job.circuit
        threads, masks = threads or default_threads(), job.probe_masks
        self._hard = HardWorkspace(circuit, shape, len(job.probes), 2, threads, masks is not None)
        start = _spread(job.probes)
        if masks is None:
            # Where cells fire by chance, neighbours that were alike part at once: there is nothing to share.
            start = _share_columns(self._hard, start)
        else:
            self._hard.set_masks(masks)
        gates, (lanes, scores, new) = circuit.gates, np.zeros((3, LANES), dtype=np.int64)
        starts = self._hard.program.gate_starts.astype(np.int64)
        gate_of = np.repeat(np.arange(gates), np.diff(starts))
        self._searched = Searched(
            start, _spread(job.targets(job.probes)), gate_of, len(circuit.update), lanes, new, scores,
            np.zeros(gates, dtype=np.int64), np.zeros(4, dtype=np.int64), NO_GUIDE
        )  # fmt: skip
        self._present = make_plan(self._hard.program)
        self._present.aliases[:] = np.arange(self._hard.program.nodes)
        self._counters = aligned(16, dtype=np.int64)
        nothing = np.zeros(gates, dtype=np.int64)
        compiled.compile_now(run_search, "the search", 10, lambda: self._judge(nothing))

    def search(self, gates: Array, costs: Array, words: Array, rises: bool, guide: Array = NO_GUIDE) -> None:
        work, searched = self._hard, self._searched._replace(guide=guide)
        self._counters[:] = 0
        arguments = (work.program, work.buffers, work.plan, self._present, searched, gates, costs, words, rises,
                     self._counters)  # fmt: skip
        together(work.threads, lambda thread: run_search(thread, *arguments))

    def slopes(self, gates: Array, costs: Array) -> Array:
        work, job = self._soft, self._job
        work.set_start(job.probes)
        work.buffers.coefficients[:] = TABLE[gates].astype(np.float32).reshape(-1)
        # With equal shares the gradient of a logit is a sixteenth of what its gate would do, less the mean of all.
        work.buffers.probs[:] = 1 / GATE_COUNT
        work.run(phases.forward(work.shape))
        # A value that should be 0 costs more where it rises, whether it is right or wrong, and one that should be 1
        # where it falls.
        signs = 1 - 2 * job.targets(job.probes).astype(np.float32)
        adjoints = np.moveaxis(signs, -1, 0).reshape(costs.shape[1:]) * costs
        width = work.grid.tiles * TILE
        for rows, adjoint in zip((*work.buffers.judged, work.buffers.targets[0]), adjoints, strict=True):
            rows[:] = 0
            rows.reshape(-1, width)[: len(adjoint), : adjoint.shape[1]] = adjoint
        work.run(phases.backward(work.shape, work.steps.spread))
        return 4 * work.per_gate(work.buffers.gradients) @ INPUT_WISE

    @cached_property
    def _soft(self) -> SoftWorkspace:
        """Where derivatives are taken; outputs that are not judged have none of their own."""
        job, threads, masks = self._job, self._hard.threads, self._job.probe_masks
        shape = replace(self._hard.shape, batch=len(job.probes), loss_channels=job.circuit.outputs)
        start, asynchronous = shared_start(job), masks is not None
        work = SoftWorkspace(job.circuit, shape, threads, asynchronous=asynchronous, given=True, start=start)
        if masks is not None:
            work.set_masks(masks)
        return work

    def wrong(self, gates: Array) -> Array:
        self._judge(gates)
        judged = self._hard.buffers.judged[..., : self._searched.targets.shape[1]]
        wrong: Array = (judged ^ self._searched.targets) & np.uint64(1) != 0
        return wrong

    def _judge(self, gates: Array) -> None:
        """Evaluate without any rounds of search."""
        self.search(gates, np.ones((0, 0, 0), dtype=np.uint32), np.zeros((0, LANES, 1), dtype=np.uint32), False)


def _spread(grids: Array) -> Array:
    """`[P, H, W, C]` of 0 and 1 as words uint64 `[C, P*H*W]`, the same in every lane."""
    return np.where(np.ascontiguousarray(grids.reshape(-1, grids.shape[-1]).T) != 0, ONES, np.uint64(0))


def _share_columns(hard: HardWorkspace, start: Array) -> Array:
    """Gives cells that are alike in a step one column there; returns the columns of the start.

    On a grid that is 0 but for one cell, all cells that this one has not reached yet have the same state, whatever the
    circuit is. In a judged state every cell has the column of its own.
    """
    cells, columns = start.shape[1], hard.buffers.near.shape[2]
    around = hard.buffers.near[0, :, :cells]
    near = np.full((hard.shape.steps, len(around), columns), columns, dtype=np.int64)
    tiles = np.empty(hard.shape.steps, dtype=np.int64)
    _, firsts, kinds = np.unique(start, axis=1, return_index=True, return_inverse=True)
    start = start[:, firsts]
    for at in range(hard.shape.steps):
        # A cell's next state is a function of its kind and its neighbours'; the outside is a kind of its own.
        patches = np.append(kinds.ravel(), columns)[np.minimum(around, cells)]
        firsts, kinds = np.arange(cells), np.arange(cells)
        if at + 1 not in hard.shape.judged_steps:
            _, firsts, kinds = np.unique(patches, axis=1, return_index=True, return_inverse=True)
        near[at, :, : len(firsts)] = patches[:, firsts]
        tiles[at] = -(-len(firsts) // WORDS)
    hard.buffers = hard.buffers._replace(near=near, tiles=tiles)
    return start


@entry_point
def run_search(
    thread: int, program: Program, buffers: HardBuffers, plan: HardPlan, present: HardPlan, searched: Searched,
    gates: Array, costs: Array, words: Array, rises: bool, counters: Array,
) -> None:  # fmt: skip
    """One thread's part of an epoch; without rounds the circuit is only evaluated."""
    steps, items = len(buffers.marks) - 1, buffers.near.shape[2] // WORDS
    # A round is a phase of one item, which whoever takes it does alone, and a phase for each step of the rollout. One
    # more phase ends the last round.
    rollouts = max(1, len(words))
    total = (rollouts * (steps + 1) + 1) * items
    while True:
        ticket = take(counters, items, total)
        if ticket >= total:
            return
        phase, item = ticket // items, ticket % items
        round_, at = phase // (steps + 1), phase % (steps + 1) - 1
        if at >= 0:
            if item < buffers.tiles[at % len(buffers.tiles)] and not searched.numbers[OVER]:
                hard_forward(program, at, item, buffers, plan, buffers.nodes[thread])
        elif item == 0:
            _between(program, buffers, plan, present, searched, gates, costs, words, rises, round_)
        fetch_add(counters, DONE, 1)


@inlined
def _between(
    program: Program, buffers: HardBuffers, plan: HardPlan, present: HardPlan, searched: Searched, gates: Array,
    costs: Array, words: Array, rises: bool, round_: int,
) -> None:  # fmt: skip
    """End the round before this one, and begin this one, if there are any."""
    numbers = searched.numbers
    if round_ == 0:
        numbers[:] = 0
        for gate in range(len(gates)):
            _set(program, gate, gates[gate], buffers.gate_words, present)
    elif len(words) > 0 and not numbers[OVER]:
        if round_ == 1:  # in the first round, too, lane 0 was the present circuit
            numbers[BEFORE] = _wrong(buffers.judged, searched.targets, 0)
        _take_best(program, buffers, present, searched, gates, costs, words[round_ - 1, 0, WHERE])
    if not numbers[OVER]:
        if round_ == 0 or round_ < len(words):
            _begin(program, buffers, plan, present, searched, gates, words[round_ : round_ + 1])
        elif rises and _stuck(numbers[BEFORE], _wrong(buffers.judged, searched.targets, numbers[LANE])):
            _raise(buffers.judged, searched.targets, costs, numbers[LANE])


@inlined
def _begin(
    program: Program, buffers: HardBuffers, plan: HardPlan, present: HardPlan, searched: Searched, gates: Array,
    drawn: Array,
) -> None:  # fmt: skip
    """Candidates by the draws `drawn [1 or 0, LANES, DRAWN]`, and all that their rollout needs."""
    steps, seen = len(buffers.marks) - 1, len(searched.targets)
    for words in drawn:
        # A round tries 63 circuits at the price of one rollout. In bit 0 of every word is the present circuit; in bit
        # 5, say, the same but for gate 17, which there is an OR: its words of coefficients differ from all zeros
        # or ones in that bit alone. Afterwards the words are put back, and the best candidate, if it is taken, changes
        # all bits.
        searched.numbers[LIVE] = _live(program, seen, steps, present, searched.live)
        _choose(program, searched, gates, words)
        for each in range(1, LANES):
            _put(buffers.gate_words[searched.changed[each]], searched.new[each], each)
    hard_program(program, buffers.gate_words, seen, steps, plan)
    for channel in range(len(searched.start)):
        for column in range(searched.start.shape[1]):
            buffers.words[0, channel, column] = searched.start[channel, column]


@inlined
def _take_best(
    program: Program, buffers: HardBuffers, present: HardPlan, searched: Searched, gates: Array, costs: Array, word: int
) -> None:
    """The best candidate that was evaluated becomes the present circuit."""
    changed, scores = searched.changed, searched.scores
    _score(buffers.judged, searched.targets, costs, scores)
    for each in range(1, LANES):
        write_function(buffers.gate_words[changed[each]], gates[changed[each]])
    lane = 0 if scores[0] == 0 else _best(scores, word)
    if lane > 0:
        gates[changed[lane]] = searched.new[lane]
        _set(program, changed[lane], searched.new[lane], buffers.gate_words, present)
    searched.numbers[LANE], searched.numbers[OVER] = lane, int(scores[lane] == 0)


@inlined
def _set(program: Program, gate: int, function: int, words: Array, present: HardPlan) -> None:
    """The gate has this function, in all lanes."""
    write_function(words[gate], function)
    for instance in range(program.gate_starts[gate], program.gate_starts[gate + 1]):
        write_function(present.forms[instance], function)


@inlined
def _choose(program: Program, searched: Searched, gates: Array, drawn: Array) -> None:
    """Choose the gate and its new function for each candidate."""
    guided = len(searched.guide)
    for lane in range(1, LANES):
        words = drawn[lane]
        if guided > 0 and lane >= GUIDED:
            place = np.int64(words[WHERE]) % guided
            gate = searched.guide[place, 0]
            searched.changed[lane], searched.new[lane] = gate, gates[gate] ^ searched.guide[place, 1]
            continue
        # Half of the candidates change any gate that matters, the other half one near an output: alone the first would
        # seldom meet the last layers, and the second never the first.
        if lane % 2:
            gate = searched.live[np.int64(words[WHERE]) % searched.numbers[LIVE]]
        else:
            output = np.int64(words[WHERE]) % len(searched.targets)
            instance = program.nodes - program.patch_nodes - program.channels + output
            # Up from an output that is judged: what is near to one is tried more often than chance alone would.
            for step in range(np.int64(words[HOW_FAR]) % searched.depth):
                side = np.int64(words[SIDES]) >> (step % 32) & 1
                instance = np.int64(program.records[RECORD * instance + side] // TILE) - program.patch_nodes
            gate = searched.gate_of[instance]
        searched.changed[lane] = gate
        # One of the fifteen other functions, each as likely: 1 to 15 places on, around the circle of sixteen.
        searched.new[lane] = (gates[gate] + 1 + np.int64(words[FUNCTION]) % (GATE_COUNT - 1)) % GATE_COUNT


@inlined
def _put(words: Array, function: int, lane: int) -> None:
    """The gate with these coefficients becomes another one in a lane."""
    bit = np.int64(1) << lane
    for index in range(4):
        words[index] = words[index] | bit if GATE_BITS[function, index] else words[index] & ~bit


@inlined
def _live(program: Program, seen: int, steps: int, present: HardPlan, live: Array) -> int:
    """`live` becomes the gates that a judged value depends on, if no input is known, ascending: their number."""
    mark(program, present.aliases, present.forms, seen, steps, present)
    count = 0
    for gate in range(len(program.gate_starts) - 1):
        for instance in range(program.gate_starts[gate], program.gate_starts[gate + 1]):
            if present.marks[program.patch_nodes + instance]:
                live[count] = gate
                count += 1
                break
    return count


@inlined
def _score(judged: Array, targets: Array, costs: Array, scores: Array) -> None:
    """Compute what the wrong values of every lane cost."""
    scores[:] = 0
    for step in range(judged.shape[0]):
        for channel in range(judged.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = judged[step, channel, cell] ^ targets[channel, cell]
                # Most words are right in all lanes, and cost one comparison instead of 64 counts.
                if wrong:
                    cost = np.int64(costs[step, channel, cell])
                    for lane in range(LANES):
                        scores[lane] += cost * np.int64(wrong >> np.uint64(lane) & np.uint64(1))


@inlined
def _wrong(judged: Array, targets: Array, lane: int) -> int:
    """How many values are wrong in this lane."""
    count = np.int64(0)
    for step in range(judged.shape[0]):
        for channel in range(judged.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = judged[step, channel, cell] ^ targets[channel, cell]
                count += np.int64(wrong >> np.uint64(lane) & np.uint64(1))
    return int(count)


_stuck = inlined(stuck)


@inlined
def _best(scores: Array, word: int) -> int:
    """The best candidate, of several one by `word`; 0 where all are worse than the present circuit."""
    # Not worse is good enough: among circuits that are equally wrong the search drifts to where a further change helps.
    best, ties = scores[0], 0
    for lane in range(1, LANES):
        if scores[lane] < best:
            best, ties = scores[lane], 0
        ties += scores[lane] == best
    if ties == 0:
        return 0
    place = np.int64(word) % ties
    for lane in range(1, LANES):
        if scores[lane] == best:
            if place == 0:
                return lane
            place -= 1
    return 0


@inlined
def _raise(judged: Array, targets: Array, costs: Array, lane: int) -> None:
    """Raise the costs of the values that are wrong in this lane."""
    for step in range(judged.shape[0]):
        for channel in range(judged.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = (judged[step, channel, cell] ^ targets[channel, cell]) >> np.uint64(lane)
                # What stays wrong costs more and more, until a change that mends it is worth new errors elsewhere: so
                # the search leaves a place from which no single change helps (the breakout method, Morris 1993).
                costs[step, channel, cell] += np.uint32(wrong & np.uint64(1))
