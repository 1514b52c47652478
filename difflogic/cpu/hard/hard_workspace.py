"""Buffers of a hard rollout, and conversions between bits of samples and words of 64 samples."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from difflogic.core import bits, gates
from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.threads import together
from difflogic.cpu.codegen.vectors import LINE, TILE, WORDS
from difflogic.cpu.hard import hard_forward
from difflogic.cpu.hard.hard_forward import HardBuffers
from difflogic.cpu.hard.hard_program import make_plan
from difflogic.cpu.program import RECORD, A, B, make_program
from difflogic.cpu.tables import aligned, make_marks, neighbours
from difflogic.engine.events import Damage
from difflogic.engine.shape import Array, Shape
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout

OUTSIDE_FIRST = LINE // 8
"""Number of words after the last column: the first represents cells outside the grid, the others keep rows aligned."""


class HardWorkspace:
    """Buffers of hard rollouts on the grid of `shape`, with `groups` words of 64 samples per cell and channel.

    Only the last `stored_states` states are stored. The logits are passed to `run`; those of `circuit` are not used.
    """

    def __init__(
        self, circuit: Circuit, shape: Shape, groups: int, stored_states: int, threads: int, asynchronous: bool
    ) -> None:
        self.shape = dataclasses.replace(shape, batch=groups)
        self.program, self._layout = make_program(circuit.chosen), flat_layout(circuit)
        columns = -(-self.shape.cells // WORDS) * WORDS
        # A thread needs at least one vector of columns: more threads than vectors would only wait.
        self.threads = min(threads, columns // WORDS)
        # All cells outside the grid are the column after the last one, which is never written and stays 0.
        near = np.full((9, columns), columns, dtype=np.int64)
        cells = neighbours(self.shape)
        near[:, : self.shape.cells] = np.where(cells < 0, columns, cells)
        program = self.program
        self.buffers = HardBuffers(
            words=aligned(stored_states, program.channels, columns + OUTSIDE_FIRST, dtype=np.uint64),
            near=near[None],
            tiles=np.array([columns // WORDS]),
            masks=aligned(*((shape.steps, columns) if asynchronous else (0, 0)), dtype=np.uint64),
            marks=make_marks(shape),
            undamaged=aligned(len(shape.damage_steps), columns, dtype=np.uint64),
            works=aligned(columns if shape.faults.states else 0, dtype=np.uint64),
            changes=aligned(shape.steps if shape.faults.states else 0, program.channels, columns, dtype=np.uint64),
            loss_states=aligned(len(shape.judged_steps), shape.loss_channels, columns, dtype=np.uint64),
            nodes=aligned(self.threads, program.nodes * WORDS, dtype=np.uint64),
            gate_words=np.zeros((circuit.gates, len(gates.TABLE[0])), dtype=np.int64),
        )
        self.plan = make_plan(program)
        self._counters = aligned(16, dtype=np.int64)

    def serves(self, shape: Shape, asynchronous: bool) -> bool:
        """Return whether these buffers fit rollouts of `shape`, with fire masks if `asynchronous`."""
        packed = dataclasses.replace(shape, batch=groups_of(shape.batch))
        return self.shape == packed and bool(self.buffers.masks.size) == asynchronous

    def set_start(self, words: Array) -> None:
        """Set the initial states, uint32 `[C, g*H*W]` of `pack_grids`, and apply the damage and faults of step 0."""
        start = self.buffers.words[0, :, : self.shape.cells]
        start[:] = _joined(words, self.shape.cells_per_grid)
        if 0 in self.shape.damage_steps:
            start &= self.buffers.undamaged[0, : self.shape.cells]
        if self.shape.faults.states:
            cells = slice(self.shape.cells)
            start[:] = start & self.buffers.works[cells] ^ self.buffers.changes[0, :, cells]

    def set_masks(self, masks: Array) -> None:
        """Set the fire masks, `[T, H, W, 1]`, which all samples share."""
        # All ones or all zeros: the 64 samples of a word share a mask, as a batch does in training.
        rows = np.tile(masks.reshape(len(masks), -1) != 0, (1, self.shape.batch))
        self.buffers.masks[:, : self.shape.cells] = np.where(rows, hard_forward.ONES, np.uint64(0))

    def set_damage(self, parts: Sequence[tuple[int, Damage]]) -> None:
        """Set damage and faults; `parts` are pairs (index of a group of 32 samples, damage from this group on)."""
        height, width, buffers = self.shape.height, self.shape.width, self.buffers
        for index in range(len(self.shape.damage_steps)):
            masks = [(first, damage.undamaged(index, height, width)[..., None]) for first, damage in parts]
            buffers.undamaged[index, : self.shape.cells] = self._packed(masks)[0]
        sizes = height, width, self.program.channels
        faulty = [(first, d.faults, (d.corners.shape[1], *sizes)) for first, d in parts if d.faults is not None]
        if not faulty:
            return
        stuck = [(first, faults.stuck(grids)[..., None]) for first, faults, grids in faulty]
        works = buffers.works[: self.shape.cells]
        # A faulty bit is (bit AND works) XOR changes. Stuck at 0: works 0, changes 0; stuck at 1: works 0, changes 1;
        # flipped: works 1, changes 1. So a step handles all kinds of faults alike.
        works[:] = self._packed([(first, codes == 0) for first, codes in stuck])[0]
        ones = self._packed([(first, codes == 2) for first, codes in stuck])
        for step in range(self.shape.steps):
            flips = self._packed([(first, faults.flips(step, grids)) for first, faults, grids in faulty])
            buffers.changes[step, :, : self.shape.cells] = flips & works | ones

    def _packed(self, parts: Sequence[tuple[int, Array]]) -> Array:
        """Pack `parts` to uint64 `[C, cells]`: pairs (index of the first group of 32 samples, bits `[B, H, W, C]`)."""
        cells, channels = self.shape.cells_per_grid, parts[0][1].shape[-1]
        words = np.zeros((channels, 2 * self.shape.batch, cells), dtype=np.uint32)
        for first, values in parts:
            packed = bits.pack_grids(values.astype(np.uint8)).reshape(channels, -1, cells)
            words[:, first : first + packed.shape[1]] = packed
        return _joined(words.reshape(channels, -1), cells)

    def run(self, logits: Array) -> None:
        """Run all steps of the circuit with the argmax gates and wires of `logits [16*P]`."""
        if self._layout.candidates > 1:
            wires = self._layout.chosen(logits.reshape(-1, GATE_COUNT)).wires
            self.program.records.reshape(-1, RECORD)[:, [A, B]] = wires * TILE
        self._counters[:] = 0
        arguments = (self.shape.steps, self.program, logits, self.buffers, self.plan, self._counters)
        together(self.threads, lambda thread: hard_forward.run_hard(thread, *arguments))

    def state(self, step: int) -> Array:
        """Return the samples' states after `step` steps, uint32 `[C, 2*groups*H*W]` as in `bits.pack_grids`."""
        return self._halves(self.buffers.words[step % len(self.buffers.words), :, : self.shape.cells])

    def loss_states(self) -> Array:
        """Return the loss channels after each step with a loss, uint32 `[J, loss_channels, 2*groups*H*W]`."""
        return np.stack([self._halves(words) for words in self.buffers.loss_states[..., : self.shape.cells]])

    def _halves(self, words: Array) -> Array:
        """Split words of 64 samples, uint64 `[channels, groups*H*W]`, into words of 32 samples."""
        # A word of 64 samples becomes two groups of 32, the low half first, as `bits.pack_grids` numbers them.
        halves = words.reshape(len(words), self.shape.batch, 1, self.shape.cells_per_grid)
        both = np.concatenate([halves & np.uint64(0xFFFFFFFF), halves >> np.uint64(32)], axis=2)
        return both.reshape(len(words), -1).astype(np.uint32)


def groups_of(samples: int) -> int:
    """Return the number of 64-bit words that contain `samples` samples."""
    return -(-samples // (2 * bits.WORD))


def _joined(words: Array, cells_per_grid: int) -> Array:
    """Join pairs of groups of 32 samples into words of 64 samples."""
    halves = words.reshape(len(words), -1, cells_per_grid).astype(np.uint64)
    # With an odd number of groups, the last half is padding: zeros, which are computed and never read.
    if halves.shape[1] % 2:
        halves = np.concatenate([halves, np.zeros_like(halves[:, :1])], axis=1)
    pairs = halves.reshape(len(words), -1, 2, cells_per_grid)
    joined: Array = pairs[:, :, 0] | pairs[:, :, 1] << np.uint64(32)
    return joined.reshape(len(words), -1)
