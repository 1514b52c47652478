"""Local search over hard circuits, 64 circuits at a time: each bit of a word belongs to a different circuit.

Only the gates that candidates change have coefficients that differ from bit to bit; all other gates are simplified as
in any hard rollout. Cells that are equal for every circuit, because the initial state around them is equal, share a
column and are computed once. Reference: `reference/local_search.py`.
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
    """Data of a search, shared by all threads and rounds."""

    start: Array
    """uint64 `[C, columns]`: initial states; cells that share a column are stored once."""
    targets: Array
    """uint64 `[loss_channels, P*H*W]`: targets of the evaluation grids."""
    gate_of: Array
    """int64 `[I]`: gate of each instance."""
    depth: int
    """Number of layers of the update network."""
    changed: Array
    """int64 `[LANES]`: gate that each candidate changes."""
    new: Array
    """int64 `[LANES]`: new function of that gate."""
    scores: Array
    """int64 `[LANES]`: cost of the mismatches of each circuit."""
    live: Array
    """int64 `[G]`: numbers of the gates that affect the loss."""
    numbers: Array
    """int64 `[4]`: LIVE, LANE, OVER and BEFORE."""
    guide: Array
    """int64 `[n, 2]`: see `difflogic.engine.search.promising`."""


LIVE, LANE, OVER, BEFORE = range(4)
"""Indices in `Searched.numbers`: number of live gates, lane of the current circuit, 1 if there are no mismatches,
and number of mismatches when the epoch began."""


class CpuLocalSearch:
    """Local search on the processor, see `difflogic.engine.search`. Results do not depend on the number of threads."""

    def __init__(self, job: Job) -> None:
        self._job, shape, circuit = job, Shape.training(job.circuit, job.config), job.circuit
        masks = job.probe_masks
        self._hard = HardWorkspace(circuit, shape, len(job.probes), 2, default_threads(), masks is not None)
        start = _spread(job.probes)
        if masks is None:
            # In asynchronous automata equal neighbours soon differ, so that columns cannot be shared.
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
        compiled.compile_now(run_search, "the search", 10, lambda: self._evaluate(nothing))

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
        # With equal probabilities, 4 * INPUT_WISE turns gradients of logits into derivatives by truth table entries.
        work.buffers.probs[:] = 1 / GATE_COUNT
        work.run(phases.forward(work.shape))
        # The total cost grows with a value whose target is 0, and falls with a value whose target is 1, whether these
        # values are mismatches or not.
        signs = 1 - 2 * job.targets(job.probes).astype(np.float32)
        adjoints = np.moveaxis(signs, -1, 0).reshape(costs.shape[1:]) * costs
        width = work.grid.tiles * TILE
        for rows, adjoint in zip((*work.buffers.loss_states, work.buffers.targets[0]), adjoints, strict=True):
            rows[:] = 0
            rows.reshape(-1, width)[: len(adjoint), : adjoint.shape[1]] = adjoint
        work.run(phases.backward(work.shape, work.steps.spread))
        return 4 * work.per_gate(work.buffers.gradients) @ INPUT_WISE

    @cached_property
    def _soft(self) -> SoftWorkspace:
        """Workspace that computes the derivatives for `slopes`; outputs without a loss have the adjoint 0."""
        job, threads, masks = self._job, self._hard.threads, self._job.probe_masks
        shape = replace(self._hard.shape, batch=len(job.probes), loss_channels=job.circuit.outputs)
        start, asynchronous = shared_start(job), masks is not None
        work = SoftWorkspace(job.circuit, shape, threads, None, asynchronous, has_adjoints=True, start=start)
        if masks is not None:
            work.set_masks(masks)
        return work

    def wrong(self, gates: Array) -> Array:
        self._evaluate(gates)
        states = self._hard.buffers.loss_states[..., : self._searched.targets.shape[1]]
        wrong: Array = (states ^ self._searched.targets) & np.uint64(1) != 0
        return wrong

    def _evaluate(self, gates: Array) -> None:
        """Evaluate the circuit without a round of the search."""
        self.search(gates, np.ones((0, 0, 0), dtype=np.uint32), np.zeros((0, LANES, 1), dtype=np.uint32), False)


def _spread(grids: Array) -> Array:
    """Convert bits `[P, H, W, C]` to words uint64 `[C, P*H*W]`, in which all lanes are equal."""
    return np.where(np.ascontiguousarray(grids.reshape(-1, grids.shape[-1]).T) != 0, ONES, np.uint64(0))


def _share_columns(hard: HardWorkspace, start: Array) -> Array:
    """Assign cells that are equal after a step to the same column, and return the columns of the initial states.

    On a grid that is 0 except for one cell, for example, all cells that are too far away to depend on this cell have
    equal states for every circuit. In a state with a loss every cell has its own column.
    """
    cells, columns = start.shape[1], hard.buffers.near.shape[2]
    around = hard.buffers.near[0, :, :cells]
    near = np.full((hard.shape.steps, len(around), columns), columns, dtype=np.int64)
    tiles = np.empty(hard.shape.steps, dtype=np.int64)
    _, firsts, kinds = np.unique(start, axis=1, return_index=True, return_inverse=True)
    start = start[:, firsts]
    for step in range(hard.shape.steps):
        # The next state of a cell depends on its kind and its neighbours' kinds; cells outside are one more kind.
        patches = np.append(kinds.ravel(), columns)[np.minimum(around, cells)]
        firsts, kinds = np.arange(cells), np.arange(cells)
        if step + 1 not in hard.shape.judged_steps:
            _, firsts, kinds = np.unique(patches, axis=1, return_index=True, return_inverse=True)
        near[step, :, : len(firsts)] = patches[:, firsts]
        tiles[step] = -(-len(firsts) // WORDS)
    hard.buffers = hard.buffers._replace(near=near, tiles=tiles)
    return start


@entry_point
def run_search(
    thread: int, program: Program, buffers: HardBuffers, plan: HardPlan, present: HardPlan, searched: Searched,
    gates: Array, costs: Array, words: Array, rises: bool, counters: Array,
) -> None:  # fmt: skip
    """Run this thread's part of an epoch; if `words` contains no rounds, the circuit is only evaluated."""
    steps, items = len(buffers.marks) - 1, buffers.near.shape[2] // WORDS
    # A round is a phase in which only the first item does work, and then a phase for each step of the rollout. One more
    # phase ends the last round.
    rollouts = max(1, len(words))
    total = (rollouts * (steps + 1) + 1) * items
    while True:
        ticket = take(counters, items, total)
        if ticket >= total:
            return
        phase, item = ticket // items, ticket % items
        round_, step = phase // (steps + 1), phase % (steps + 1) - 1
        if step >= 0:
            if item < buffers.tiles[step % len(buffers.tiles)] and not searched.numbers[OVER]:
                hard_forward(program, step, item, buffers, plan, buffers.nodes[thread])
        elif item == 0:
            _between(program, buffers, plan, present, searched, gates, costs, words, rises, round_)
        fetch_add(counters, DONE, 1)


@inlined
def _between(
    program: Program, buffers: HardBuffers, plan: HardPlan, present: HardPlan, searched: Searched, gates: Array,
    costs: Array, words: Array, rises: bool, round_: int,
) -> None:  # fmt: skip
    """End round number `round_ - 1` and begin round number `round_`, if these rounds exist."""
    numbers = searched.numbers
    if round_ == 0:
        numbers[:] = 0
        for gate in range(len(gates)):
            _set(program, gate, gates[gate], buffers.gate_words, present)
    elif len(words) > 0 and not numbers[OVER]:
        if round_ == 1:  # lane 0 is the current circuit, in the first round too
            numbers[BEFORE] = _wrong(buffers.loss_states, searched.targets, 0)
        _take_best(program, buffers, present, searched, gates, costs, words[round_ - 1, 0, WHERE])
    if not numbers[OVER]:
        if round_ == 0 or round_ < len(words):
            _begin(program, buffers, plan, present, searched, gates, words[round_ : round_ + 1])
        elif rises and _stuck(numbers[BEFORE], _wrong(buffers.loss_states, searched.targets, numbers[LANE])):
            _raise(buffers.loss_states, searched.targets, costs, numbers[LANE])


@inlined
def _begin(
    program: Program, buffers: HardBuffers, plan: HardPlan, present: HardPlan, searched: Searched, gates: Array,
    rounds: Array,
) -> None:  # fmt: skip
    """Prepare a rollout and, unless `rounds [0 or 1, LANES, DRAWN]` is empty, choose candidates by its random words."""
    steps, visible = len(buffers.marks) - 1, len(searched.targets)
    for words in rounds:
        # A round tests 63 candidates for the price of one rollout. Bit 0 of every word belongs to the current circuit,
        # and bit 5, for example, to the same circuit with an OR as gate 17: in this gate's words of coefficients, all
        # zeros or ones otherwise, bit 5 differs. Afterwards the words are restored, and the best candidate, if it is
        # accepted, changes all bits.
        searched.numbers[LIVE] = _live(program, visible, steps, present, searched.live)
        _choose(program, searched, gates, words)
        for lane in range(1, LANES):
            _put(buffers.gate_words[searched.changed[lane]], searched.new[lane], lane)
    hard_program(program, buffers.gate_words, visible, steps, plan)
    for channel in range(len(searched.start)):
        for column in range(searched.start.shape[1]):
            buffers.words[0, channel, column] = searched.start[channel, column]


@inlined
def _take_best(
    program: Program, buffers: HardBuffers, present: HardPlan, searched: Searched, gates: Array, costs: Array, word: int
) -> None:
    """Make the round's best candidate the current circuit; `word` chooses among equally good candidates."""
    changed, scores = searched.changed, searched.scores
    _score(buffers.loss_states, searched.targets, costs, scores)
    for candidate in range(1, LANES):
        write_function(buffers.gate_words[changed[candidate]], gates[changed[candidate]])
    lane = 0 if scores[0] == 0 else _best(scores, word)
    if lane > 0:
        gates[changed[lane]] = searched.new[lane]
        _set(program, changed[lane], searched.new[lane], buffers.gate_words, present)
    searched.numbers[LANE], searched.numbers[OVER] = lane, int(scores[lane] == 0)


@inlined
def _set(program: Program, gate: int, function: int, words: Array, present: HardPlan) -> None:
    """Set the function of a gate in all lanes."""
    write_function(words[gate], function)
    for instance in range(program.gate_starts[gate], program.gate_starts[gate + 1]):
        write_function(present.forms[instance], function)


@inlined
def _choose(program: Program, searched: Searched, gates: Array, draws: Array) -> None:
    """Choose the changed gate and its new function for each candidate."""
    guided = len(searched.guide)
    for lane in range(1, LANES):
        words = draws[lane]
        if guided > 0 and lane >= GUIDED:
            place = np.int64(words[WHERE]) % guided
            gate = searched.guide[place, 0]
            searched.changed[lane], searched.new[lane] = gate, gates[gate] ^ searched.guide[place, 1]
            continue
        # Half of the candidates change any live gate, the other half one near an output: the former alone would rarely
        # hit the last layers, and the latter alone never the perception kernels.
        if lane % 2:
            gate = searched.live[np.int64(words[WHERE]) % searched.numbers[LIVE]]
        else:
            output = np.int64(words[WHERE]) % len(searched.targets)
            instance = program.nodes - program.patch_nodes - program.channels + output
            # Follow wires backward from an output with a loss, which favours gates near outputs.
            for step in range(np.int64(words[HOW_FAR]) % searched.depth):
                side = np.int64(words[SIDES]) >> (step % 32) & 1
                instance = np.int64(program.records[RECORD * instance + side] // TILE) - program.patch_nodes
            gate = searched.gate_of[instance]
        searched.changed[lane] = gate
        # One of the fifteen other functions with equal probability: 1 to 15 further, modulo sixteen.
        searched.new[lane] = (gates[gate] + 1 + np.int64(words[FUNCTION]) % (GATE_COUNT - 1)) % GATE_COUNT


@inlined
def _put(words: Array, function: int, lane: int) -> None:
    """Set a gate's function in one lane of its coefficients `words`."""
    bit = np.int64(1) << lane
    for index in range(4):
        words[index] = words[index] | bit if GATE_BITS[function, index] else words[index] & ~bit


@inlined
def _live(program: Program, visible: int, steps: int, present: HardPlan, live: Array) -> int:
    """Write the numbers of the gates that affect the loss to `live`, ascending, and return their count."""
    mark(program, present.aliases, present.forms, visible, steps, present)
    count = 0
    for gate in range(len(program.gate_starts) - 1):
        for instance in range(program.gate_starts[gate], program.gate_starts[gate + 1]):
            if present.marks[program.patch_nodes + instance]:
                live[count] = gate
                count += 1
                break
    return count


@inlined
def _score(states: Array, targets: Array, costs: Array, scores: Array) -> None:
    """Write the cost of the mismatches in each lane to `scores`."""
    scores[:] = 0
    for step in range(states.shape[0]):
        for channel in range(states.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = states[step, channel, cell] ^ targets[channel, cell]
                # Most words have no mismatch in any lane, and take one comparison instead of 64 additions.
                if wrong:
                    cost = np.int64(costs[step, channel, cell])
                    for lane in range(LANES):
                        scores[lane] += cost * np.int64(wrong >> np.uint64(lane) & np.uint64(1))


@inlined
def _wrong(states: Array, targets: Array, lane: int) -> int:
    """Return the number of mismatches in a lane."""
    count = np.int64(0)
    for step in range(states.shape[0]):
        for channel in range(states.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = states[step, channel, cell] ^ targets[channel, cell]
                count += np.int64(wrong >> np.uint64(lane) & np.uint64(1))
    return int(count)


_stuck = inlined(stuck)


@inlined
def _best(scores: Array, word: int) -> int:
    """Return the lane of the best candidate (`word` breaks ties), or 0 if all are worse than the current circuit."""
    # Equal candidates are accepted: the search drifts among equally wrong circuits to one that a further change
    # improves.
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
def _raise(states: Array, targets: Array, costs: Array, lane: int) -> None:
    """Raise the costs of the values that are wrong in a lane."""
    for step in range(states.shape[0]):
        for channel in range(states.shape[1]):
            for cell in range(targets.shape[1]):
                wrong = (states[step, channel, cell] ^ targets[channel, cell]) >> np.uint64(lane)
                # Values that stay wrong cost more and more, until correcting them outweighs new errors elsewhere: so
                # the search leaves local minima (the breakout method, Morris 1993).
                costs[step, channel, cell] += np.uint32(wrong & np.uint64(1))
