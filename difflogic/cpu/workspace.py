"""Buffers of one batch on one circuit, and conversions between their layout and that of callers.

Callers use grids `[B, H, W, C]`, in which the channels of a cell are adjacent. Compiled code needs the cells of a
channel adjacent, so that a SIMD vector holds `TILE` cells. A state therefore has one row for each channel,

    | guard | cells 0 to B*H*W - 1, padded to complete tiles | guard | padding to an odd number of cache lines |

of `TileGrid.stride` floats. Two grids of 3x3 cells with two channels, for example, are two rows of 18 cells, of which 9
to 17 are the second grid; a row has 16 + 32 + 16 floats, which are four cache lines, and a fifth makes the number odd.
Arrays that need no neighbours (targets, masks, damage) have rows of complete tiles without guards.
"""

import numpy as np
import numpy.typing as npt

from difflogic.core.gates import TABLE
from difflogic.cpu import runner
from difflogic.cpu.codegen.threads import together
from difflogic.cpu.codegen.vectors import TILE
from difflogic.cpu.kernels.buffers import Buffers, Optimizer
from difflogic.cpu.kernels.faults import FaultBuffers
from difflogic.cpu.kernels.seed_grid import BOARDS, RANDOM, SAME
from difflogic.cpu.program import make_program
from difflogic.cpu.tables import aligned, make_grid, step_grids
from difflogic.engine import control as c
from difflogic.engine.events import NO_HARDENING, Damage, Hardening
from difflogic.engine.job import Job
from difflogic.engine.shape import Array, Hyper, Shape
from difflogic.model.circuit import Circuit

_START_KINDS = {"random": RANDOM, "boards": BOARDS}


class SoftWorkspace:
    """Buffers for rollouts and train steps of one shape on one circuit; `run` executes lists of `phases`."""

    def __init__(
        self,
        circuit: Circuit,
        shape: Shape,
        threads: int,
        hyper: Hyper | None = None,
        asynchronous: bool = False,
        job: Job | None = None,
        has_adjoints: bool = False,
        start: Array | None = None,
    ) -> None:
        """Allocate the buffers; `set_logits` sets the logits.

        With a `job`, epochs sample initial states, masks and damage; otherwise the caller sets them. If `has_adjoints`,
        the caller sets adjoints of the states, and no loss is computed. `start` is the initial state of all rollouts,
        from `shared_start`.
        """
        self.shape = shape
        self.program, self.grid = make_program(circuit), make_grid(shape, circuit.patch)
        self.steps, self._first, self._like = step_grids(self.grid, shape, circuit.patch, start)
        self.threads = min(threads, self.grid.blocks)  # other threads would get no work
        self.buffers = self._buffers(circuit, hyper or Hyper(), asynchronous, job, has_adjoints)
        self.buffers.table[:] = TABLE.T.reshape(-1)
        self._counters = aligned(16, dtype=np.int64)

    def _buffers(self, circuit: Circuit, hyper: Hyper, asynchronous: bool, job: Job | None, adjoints: bool) -> Buffers:
        program, grid, shape = self.program, self.grid, self.shape
        channels, width, gates, damages = program.channels, grid.tiles * TILE, circuit.gates, len(shape.damage_steps)
        config, data, pool = (None, None, 0) if job is None else (job.config, job.data, job.config.pool.size)
        return Buffers(
            logits=aligned(16 * circuit.parameters),
            mu=aligned(16 * circuit.parameters),
            nu=aligned(16 * circuit.parameters),
            probs=aligned(16 * circuit.parameters),
            gradients=aligned(16 * circuit.parameters),
            coefficients=aligned(4 * gates),
            moments=aligned(4 * gates),
            shares=aligned(16 * (circuit.parameters - gates)),
            table=aligned(4 * 16),
            states=aligned(shape.steps + 1, max(channels, program.outputs) * grid.stride),
            targets=aligned(shape.targets, shape.loss_channels, width),
            masks=aligned(shape.steps, width) if asynchronous else aligned(0, 0),
            loss_states=aligned(len(shape.judged_steps) - 1, shape.loss_channels * width),
            corners=np.zeros((damages, shape.batch, 2), dtype=np.int64),
            undamaged=aligned(damages, width),
            rule=_bytes(None if job is None else job.rule),
            x=_per_cell(None if data is None else data.x, (0, 0, 0), np.uint8),
            y=_per_cell(None if data is None else data.y, (0, 0, 0, 0), np.int8),
            same=_bytes(None if job is None or job.start is None else job.start.reshape(-1, channels)[self._first]),
            pool=np.zeros((pool, shape.cells_per_grid * channels if pool else 0), dtype=np.uint8),
            fresh=aligned(channels * grid.stride if pool else 0),
            places=np.zeros(shape.batch, dtype=np.int64),
            sample_losses=np.zeros(shape.batch),
            worst=np.zeros(shape.batch, dtype=np.bool_),
            nodes=aligned(self.threads, (program.nodes + program.choices.size // (2 * program.candidates)) * TILE),
            # plus a row per channel for the adjoints of cells that did not fire
            slots=aligned(self.threads, (program.slots + channels) * TILE),
            # double buffering: a step reads the adjoints of the step after it while it writes its own
            d_patches=aligned(2, program.patch_nodes * grid.stride),
            d_state=aligned(channels * width if adjoints or self.steps.spread.any() else 0),
            partials=aligned(grid.blocks, program.wire_moments + 16 * (circuit.parameters - gates)),
            losses=aligned(grid.tiles, dtype=np.float64),
            squares=aligned(grid.blocks if hyper.clip_by == "norm" else 0, dtype=np.float64),
            finite=aligned(grid.blocks, dtype=np.bool_),
            control=aligned(c.WORDS, dtype=np.uint32),
            has_adjoints=adjoints,
            fire_rate=np.float32(1 if config is None else config.train.fire_rate),
            start=RANDOM if job is None else _START_KINDS.get(job.config.task.start, SAME),
            damage_side=shape.damage_side,
            pool_reset=0 if config is None else config.pool.reset,
            pool_stays=config is not None and bool(config.pool.starts),
            optimizer=Optimizer.of(hyper),
            hardening=NO_HARDENING if config is None else Hardening.of(config.hardening),
            faults=self._faults(job),
        )

    def _faults(self, job: Job | None) -> FaultBuffers:
        rates, listed = self.shape.faults, np.zeros(0, dtype=np.uint8)
        if rates.states:
            listed = np.zeros(self.shape.cells_per_grid, dtype=np.uint8) if job is None else job.listed
        return FaultBuffers(rates, np.zeros(2, dtype=np.uint32), listed)

    def run(self, phases: Array, epochs: int = 1) -> Array:
        """Execute `phases` in each epoch; return the loss, and 1 for a skipped epoch, as float32 `[epochs, 2]`."""
        history = np.zeros((epochs, 2), dtype=np.float32)
        self._counters[:] = 0  # no thread runs here now: `together` has joined them
        arguments = (phases, self.program, self.steps, self.buffers, history, self._counters)
        together(self.threads, lambda thread: runner.run(thread, *arguments))
        return history

    def load(self, circuit: Circuit, grids: Array, masks: Array | None, damage: Damage | None) -> None:
        """Set the logits, the initial states, the fire masks, and the damage and faults of a rollout."""
        self.set_logits(circuit.flat_logits())
        self.set_start(grids)
        if masks is not None:
            self.set_masks(masks)
        if damage is not None:
            self._set_damage(damage)

    def set_logits(self, logits: Array, mu: Array | None = None, nu: Array | None = None) -> None:
        """Copy logits and moments, `[P, 16]` each, into the buffers."""
        self.buffers.logits[:] = logits.reshape(-1)
        if mu is not None and nu is not None:
            self.buffers.mu[:], self.buffers.nu[:] = mu.reshape(-1), nu.reshape(-1)

    def per_gate(self, values: Array) -> Array:
        """Return a copy of `values`, one of the buffers `[16*P]`, in the shape `[P, 16]`."""
        return values.reshape(-1, 16).copy()

    def set_start(self, grids: Array) -> None:
        """Set the initial states, `[B, H, W, C]`."""
        read = grids.reshape(self.shape.batch, -1, self.program.channels)[:, self._first]
        self.cells(self.buffers.states[0])[:, : read.size // self.program.channels] = read.reshape(-1, read.shape[-1]).T

    def start(self) -> Array:
        """Return the initial states, `[B, H, W, C]`."""
        shape, cells = self.shape, self.cells(self.buffers.states[0]).T
        grids = cells.reshape(shape.batch, -1, shape.channels)[:, self._like]
        return grids.reshape(shape.batch, shape.height, shape.width, shape.channels)

    def states(self) -> Array:
        """Return all states, float32 `[T+1, B, H, W, C]`."""
        shape = self.shape
        sizes = shape.batch, shape.height, shape.width, shape.channels
        return np.stack([self.cells(state).T.reshape(sizes) for state in self.buffers.states])

    def cells(self, state: Array) -> Array:
        """Return a view of a state as `[C, cells]`."""
        rows: Array = state.reshape(-1, self.grid.stride)
        return rows[:, self.grid.guard : self.grid.guard + self.grid.cells]

    def set_targets(self, targets: Array) -> None:
        """Set the targets, `[J, B, H, W, loss_channels]`."""
        # Stored for each sample, which is little compared with the states, in the layout in which the loss reads
        # states.
        rows = targets.reshape(len(targets), -1, targets.shape[-1])
        self.buffers.targets[..., : self.grid.cells] = rows.swapaxes(1, 2)

    def targets(self) -> Array:
        """Return the targets, `[J, B, H, W, loss_channels]`."""
        shape = self.shape
        rows = self.buffers.targets[..., : self.grid.cells].swapaxes(1, 2)
        return rows.reshape(len(rows), shape.batch, shape.height, shape.width, shape.loss_channels)

    def _set_damage(self, damage: Damage) -> None:
        for index in range(len(damage.steps)):
            undamaged = damage.undamaged(index, self.shape.height, self.shape.width)
            self.buffers.undamaged[index, : self.grid.cells] = undamaged.reshape(-1)
        if damage.faults is not None:
            self.buffers.faults.key[:] = damage.faults.key
            self.buffers.faults.listed[:] = 0 if damage.faults.listed is None else damage.faults.listed

    def set_masks(self, masks: Array) -> None:
        """Set the fire masks, `[T, H, W, 1]`, which all samples share."""
        rows = np.tile(masks.reshape(len(masks), -1), (1, self.shape.batch))
        self.buffers.masks[:, : self.grid.cells] = rows


def shared_start(job: Job) -> Array | None:
    """Return the initial state `[H, W, C]` of a job if cells with equal surroundings stay equal, otherwise None."""
    config, task = job.config, job.config.task
    if job.target is None or config.pool.size or config.train.asynchronous or task.loss_steps or task.disturbed:
        return None
    return job.start


def _bytes(values: Array | None) -> Array:
    """Return a flat uint8 copy of `values`, empty for None; compiled code accepts no read-only arrays."""
    return np.zeros(0, dtype=np.uint8) if values is None else np.array(values, dtype=np.uint8).reshape(-1)


def _per_cell(values: Array | None, empty: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return a copy of `[..., H, W, C]` as `[..., H*W, C]`, or zeros of the shape `empty` for None."""
    if values is None:
        return np.zeros(empty, dtype=dtype)
    return np.array(values, dtype=dtype).reshape(*values.shape[:-3], -1, values.shape[-1])
