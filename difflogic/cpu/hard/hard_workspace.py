"""The memory of a hard rollout of one set of samples, and its packing."""

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
"""Words after the last column: the first of them is the outside of the grid, and rows stay aligned."""


class HardWorkspace:
    """Buffers for `groups` words of 64 samples on the grid of `shape`, keeping the last `kept` states."""

    def __init__(
        self, circuit: Circuit, shape: Shape, groups: int, kept: int, threads: int, asynchronous: bool
    ) -> None:
        self.shape = dataclasses.replace(shape, batch=groups)
        self.program, self._layout = make_program(circuit.chosen), flat_layout(circuit)
        columns = -(-self.shape.cells // WORDS) * WORDS
        # A thread needs a column of vectors of its own to work on: more of them would only wait.
        self.threads = min(threads, columns // WORDS)
        # Cells outside the grid are a column behind the last, which is never written and stays 0.
        near = np.full((9, columns), columns, dtype=np.int64)
        found = neighbours(self.shape)
        near[:, : self.shape.cells] = np.where(found < 0, columns, found)
        program = self.program
        self.buffers = HardBuffers(
            words=aligned(kept, program.channels, columns + OUTSIDE_FIRST, dtype=np.uint64),
            near=near[None],
            tiles=np.array([columns // WORDS]),
            masks=aligned(*((shape.steps, columns) if asynchronous else (0, 0)), dtype=np.uint64),
            marks=make_marks(shape),
            kept=aligned(len(shape.damage_steps), columns, dtype=np.uint64),
            works=aligned(columns if shape.faults.states else 0, dtype=np.uint64),
            changes=aligned(shape.steps if shape.faults.states else 0, program.channels, columns, dtype=np.uint64),
            judged=aligned(len(shape.judged_steps), shape.loss_channels, columns, dtype=np.uint64),
            nodes=aligned(self.threads, program.nodes * WORDS, dtype=np.uint64),
            gate_words=np.zeros((circuit.gates, len(gates.TABLE[0])), dtype=np.int64),
        )
        self.plan = make_plan(program)
        self._counters = aligned(16, dtype=np.int64)

    def serves(self, shape: Shape, asynchronous: bool) -> bool:
        """Return whether rollouts of `shape` fit here."""
        packed = dataclasses.replace(shape, batch=groups_of(shape.batch))
        return self.shape == packed and bool(self.buffers.masks.size) == asynchronous

    @property
    def nbytes(self) -> int:
        """Bytes of the states that are kept."""
        return self.buffers.words.nbytes

    def set_start(self, words: Array) -> None:
        """Words of `bits.pack`, uint32 `[C, g*H*W]`; two groups of 32 make one of 64. It is damaged as it comes in."""
        start = self.buffers.words[0, :, : self.shape.cells]
        start[:] = _joined(words, self.shape.cells_per_grid)
        if 0 in self.shape.damage_steps:
            start &= self.buffers.kept[0, : self.shape.cells]
        if self.shape.faults.states:
            cells = slice(self.shape.cells)
            start[:] = start & self.buffers.works[cells] ^ self.buffers.changes[0, :, cells]

    def set_masks(self, masks: Array) -> None:
        """`[T, H, W, 1]`, the same for every sample."""
        # All ones or none: the 64 samples of a word share a mask, as a batch does in training.
        rows = np.tile(masks.reshape(len(masks), -1) != 0, (1, self.shape.batch))
        self.buffers.masks[:, : self.shape.cells] = np.where(rows, hard_forward.ONES, np.uint64(0))

    def set_damage(self, parts: Sequence[tuple[int, Damage]]) -> None:
        """Squares and faults of samples, each part from a group of 32 on."""
        height, width, buffers = self.shape.height, self.shape.width, self.buffers
        for index in range(len(self.shape.damage_steps)):
            kept = [(first, damage.kept(index, height, width)[..., None]) for first, damage in parts]
            buffers.kept[index, : self.shape.cells] = self._packed(kept)[0]
        faulty = [(first, damage.faults, self._grids(damage)) for first, damage in parts if damage.faults is not None]
        if not faulty:
            return
        stuck = [(first, faults.stuck(grids)[..., None]) for first, faults, grids in faulty]
        works = buffers.works[: self.shape.cells]
        # A faulty bit is (bit AND works) XOR changes. Stuck at 0: works 0, changes 0; stuck at 1: works 0, changes 1;
        # flipped: works 1, changes 1. So no step has to ask what kind of fault a cell has.
        works[:] = self._packed([(first, codes == 0) for first, codes in stuck])[0]
        ones = self._packed([(first, codes == 2) for first, codes in stuck])
        for step in range(self.shape.steps):
            flips = self._packed([(first, faults.flips(step, grids)) for first, faults, grids in faulty])
            buffers.changes[step, :, : self.shape.cells] = flips & works | ones

    def _grids(self, damage: Damage) -> tuple[int, ...]:
        """The shape `[B, H, W, C]` of the states of the samples that it happens to."""
        return damage.corners.shape[1], self.shape.height, self.shape.width, self.program.channels

    def _packed(self, parts: Sequence[tuple[int, Array]]) -> Array:
        """Bits `[B, H, W, C]`, each part's from a group of 32 on: uint64 `[C, cells]`."""
        cells, channels = self.shape.cells_per_grid, parts[0][1].shape[-1]
        words = np.zeros((channels, 2 * self.shape.batch, cells), dtype=np.uint32)
        for first, values in parts:
            packed = bits.pack_grids(values.astype(np.uint8)).reshape(channels, -1, cells)
            words[:, first : first + packed.shape[1]] = packed
        return _joined(words.reshape(channels, -1), cells)

    def run(self, logits: Array) -> None:
        """All steps, by the argmax gates and wires of `logits [16*P]`."""
        if self._layout.candidates > 1:
            wires = self._layout.chosen(logits.reshape(-1, GATE_COUNT)).wires
            self.program.records.reshape(-1, RECORD)[:, [A, B]] = wires * TILE
        self._counters[:] = 0
        arguments = (self.shape.steps, self.program, logits, self.buffers, self.plan, self._counters)
        together(self.threads, lambda thread: hard_forward.run_hard(thread, *arguments))

    def state(self, step: int) -> Array:
        """Words of `bits.pack` after `step` steps, uint32 `[C, 2*groups*H*W]`."""
        return self._halves(self.buffers.words[step % len(self.buffers.words), :, : self.shape.cells])

    def judged(self) -> Array:
        """The loss channels after each judged step, uint32 `[J, loss_channels, 2*groups*H*W]`."""
        return np.stack([self._halves(words) for words in self.buffers.judged[..., : self.shape.cells]])

    def _halves(self, words: Array) -> Array:
        """uint64 `[channels, groups*H*W]` as words of 32."""
        # A word of 64 samples becomes two groups of 32, the low half first, as `bits.pack_grids` numbers them.
        halves = words.reshape(len(words), self.shape.batch, 1, self.shape.cells_per_grid)
        both = np.concatenate([halves & np.uint64(0xFFFFFFFF), halves >> np.uint64(32)], axis=2)
        return both.reshape(len(words), -1).astype(np.uint32)


def groups_of(samples: int) -> int:
    """Words of 64 samples."""
    return -(-samples // (2 * bits.WORD))


def _joined(words: Array, cells_per_grid: int) -> Array:
    halves = words.reshape(len(words), -1, cells_per_grid).astype(np.uint64)
    # An odd number of groups of 32 leaves half a word: its samples are zeros, are computed, and are never read.
    if halves.shape[1] % 2:
        halves = np.concatenate([halves, np.zeros_like(halves[:, :1])], axis=1)
    pairs = halves.reshape(len(words), -1, 2, cells_per_grid)
    joined: Array = pairs[:, :, 0] | pairs[:, :, 1] << np.uint64(32)
    return joined.reshape(len(words), -1)
