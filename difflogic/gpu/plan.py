"""Plan of a training or rollout on a device: the sizes of buffers, dispatch grids and scratch memory.

The blocks of partial sums depend only on circuit and grid; the schedule depends on the adapter, too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from difflogic.core.rules import ENTRIES as RULE_ENTRIES
from difflogic.engine.shape import Shape
from difflogic.gpu.launch import HARDWARE, LaunchConfig
from difflogic.gpu.wiring import Wiring
from difflogic.model.layout import Layout

CHUNK = 16
"""Number of cells per chunk, which an invocation processes together."""
MAX_BLOCKS = 128
"""Maximum number of blocks, each with separate partial sums of gradients; on larger grids, blocks are larger."""
MAX_SCRATCH_GROUPS = 256
"""Maximum number of workgroups with scratch memory, which is separate for each; they loop over all tiles."""
SCRATCH_BYTES = 96 << 20
"""Maximum size in bytes of the scratch memory, unless a single workgroup needs more."""
KEEP_BYTES = 1 << 30
"""Default maximum size in bytes of a plan that stores all nodes or all states, used if the user sets no limit."""
HARDWARE_WORK = 1 << 30
"""Maximum number of gate evaluations per dispatch, which take less than 100 ms on a small integrated GPU."""
MAX_WORKGROUPS = 65535
"""Maximum number of workgroups per dispatch dimension that every device supports."""
BACKWARD_WORK = 4
"""Cost of a gate in the backward pass, relative to its evaluation in the forward pass."""
HISTORY = 64
"""Length in epochs of the ring buffer of metrics on the device."""


@dataclass(frozen=True)
class BatchSource:
    """Source of the initial states and targets of a training batch."""

    start: str = "random"
    """Kind of initial states, a value of `start` in TaskConfig."""
    ruled: bool = False
    """True if the targets are computed from the initial states by a rule."""
    pool: int = 0
    """Number of grids in the sample pool, or 0 without a pool."""
    resets: int = 0
    """Number of pool grids per batch that are replaced by new initial states, `reset` in PoolConfig."""
    stays: bool = False
    """True if final states are not written back into the pool."""
    samples: int = 0
    """Number of samples in the data set, or 0 without a data set."""
    given: int = 0
    """Number of channels whose initial values come from a sample of the data set."""


# The paper's checkerboard has 20 steps, 32 chunks and 3,144 nodes of 64 bytes per chunk: stored activations take 129
# MB. Otherwise 21 states are stored, 0.3 MB, and the backward pass recomputes the nodes of each step, bit for bit. With
# `checkpoint_every` 3, nine states are stored, which matters for 1024x1024 cells, where a state has 32 MB.
@dataclass(frozen=True)
class Plan:
    """Sizes of the buffers and dispatches of one or more models under a launch configuration.

    The cells of the complete batch are numbered consecutively and divided into chunks of 16. Consecutive chunks form a
    block, which has four partial sums of gradients per instance. A tile has `chunks_per_workgroup` chunks (blocks in
    the backward pass), and a workgroup processes one tile at a time. The checkerboard's 512 cells are 32 blocks of one
    chunk. With more than 128 chunks, blocks are larger, so the memory of the partial sums does not grow.
    """

    wirings: tuple[Wiring, ...]
    """Wiring of each model; all models have equal levels, and the largest wiring determines buffer sizes."""
    shape: Shape
    launch: LaunchConfig = HARDWARE[0]
    """Schedule, chosen by the planner."""
    probes: int = 0
    """Number of evaluation grids."""
    hard_batch: int = 0
    """Number of training batch samples that an evaluation includes in addition to the evaluation grids."""
    training: bool = True
    """False for a plan of rollouts only, without the buffers of the backward pass."""
    asynchronous: bool = True
    """True if cells are updated asynchronously, by fire masks."""
    given: bool = False
    """True for a CircuitFunction: the caller provides the adjoints, and there is no loss."""
    most_work: int = HARDWARE_WORK
    """Maximum number of gate evaluations per dispatch."""
    batch_source: BatchSource = field(default_factory=BatchSource)
    keep_bytes: int = KEEP_BYTES
    """Size in bytes of a group above which memory is saved at the cost of time, used if the user sets no limit."""
    most_bytes: int = (1 << 31) - 4
    """Maximum size in bytes of a binding."""
    model_groups: int = 1
    """Number of groups into which the models are divided, each with separate buffers."""

    @property
    def models(self) -> int:
        """Number of models in the largest group."""
        return _divided(len(self.wirings), self.model_groups)

    def parts(self) -> list[tuple[slice, Plan]]:
        """Return the slice of models and the plan of each group, the largest group last."""
        ends = [len(self.wirings) * group // self.model_groups for group in range(self.model_groups + 1)]
        models = [slice(first, last) for first, last in itertools.pairwise(ends)]
        return [(each, replace(self, wirings=self.wirings[each], model_groups=1)) for each in models]

    @property
    def layout(self) -> Layout:
        """Layout of the first model, whose levels and sizes are those of all models, except for the number of slots."""
        return self.wirings[0].layout

    @property
    def record(self) -> int:
        """Number of four-value groups per gate in `coefficients` and `partials`, see `common/candidates.wgsl`."""
        return 1 + self.layout.candidates // 2

    @property
    def perceives(self) -> bool:
        """True if cells read their neighbours, so that the patch is larger than the cell."""
        return self.layout.patch > 1

    @property
    def outputs(self) -> int:
        """Number of output gates per cell, equal to the number of channels except in a feed-forward circuit."""
        return self.layout.outputs

    @property
    def nodes(self) -> int:
        """Number of node values per cell and step."""
        return self.wirings[0].nodes

    @property
    def chunks_per_block(self) -> int:
        """Number of chunks per block, a power of two that depends only on the work, so that sums are reproducible."""
        return 1 << (_divided(self.shape.cells, CHUNK * MAX_BLOCKS) - 1).bit_length()

    @property
    def blocks(self) -> int:
        # Rounded up to complete workgroups. Blocks past the last cell contain zeros, which change no sum.
        real = _divided(self.shape.cells, CHUNK * self.chunks_per_block)
        return _divided(real, self.launch.chunks_per_workgroup) * self.launch.chunks_per_workgroup

    @property
    def chunks(self) -> int:
        """Number of chunks of the soft batch, padded to complete blocks and workgroups."""
        return self.blocks * self.chunks_per_block

    @property
    def probe_groups(self) -> int:
        return _divided(self.probes, 32)

    @property
    def groups(self) -> int:
        """Number of groups of 32 samples in hard evaluation: evaluation grids, followed by the batch."""
        return self.probe_groups + _divided(self.hard_batch, 32)

    @property
    def corner_samples(self) -> int:
        """Number of samples with damage squares: evaluation grids and batch, each padded to groups of 32."""
        return 32 * (self.probe_groups + _divided(self.shape.batch, 32))

    @property
    def grid_words(self) -> int:
        """Number of 32-bit words per grid of the sample pool, with one bit per value."""
        return _divided(self.shape.cells_per_grid * self.shape.channels, 32)

    @property
    def sample_words(self) -> tuple[int, int]:
        """Numbers of 32-bit words of a data sample's initial state and of its targets."""
        cells, source = self.shape.cells_per_grid, self.batch_source
        return _divided(cells * source.given, 32), _divided(cells * self.shape.targets * self.shape.loss_channels, 32)

    @property
    def damage_side(self) -> int:
        """Side of the damage squares in cells; a square that is larger than the grid is cut off."""
        return min(self.shape.damage_side, max(self.shape.height, self.shape.width))

    @property
    def hard_cells(self) -> int:
        """Number of cells in hard evaluation, where each channel of a cell is a word of 32 samples."""
        return self.groups * self.shape.cells_per_grid

    @property
    def hard_chunks(self) -> int:
        lanes = self.launch.chunks_per_workgroup
        return _divided(self.hard_cells, CHUNK * lanes) * lanes

    @property
    def slots(self) -> int:
        """Number of scratch slots per chunk: for the patch, and for levels and outputs unless chunks are split."""
        if self.launch.split_chunks:
            return max(wiring.patch_slots for wiring in self.wirings)
        return max(wiring.slot_count for wiring in self.wirings) + self.outputs

    def near(self, kernel: str) -> int:
        """Return the number of four-value groups (nodes or slots) in a fused step's workgroup memory; 1 if unused."""
        if not self.launch.split_chunks:
            return 1
        nodes = self.wirings[0].near_nodes
        if kernel != "gate_backward":
            return self.launch.quarters * nodes
        slots = max(wiring.slot_count - wiring.patch_slots for wiring in self.wirings)
        # The adjoints of the outputs follow the slots that the last level writes.
        last = max(int(wiring.slots[-self.outputs :].max()) + 1 - wiring.patch_slots for wiring in self.wirings)
        kept = self.layout.patch_nodes if self.launch.store_activations else nodes
        return self.launch.quarters * max(slots, last + 4 * self.outputs, kept)

    @property
    def forward_groups(self) -> int:
        """Maximum number of tiles that a forward step processes simultaneously."""
        if self.launch.store_activations:
            return min(self.tiles(self.chunks), MAX_WORKGROUPS // self.launch.groups_per_tile)
        return self._scratch_groups(self.chunks, self.nodes)

    @property
    def backward_groups(self) -> int:
        return self._scratch_groups(self.blocks, self._backward_width)

    @property
    def hard_groups(self) -> int:
        return self._scratch_groups(self.hard_chunks, self.nodes)

    @property
    def _backward_width(self) -> int:
        """Number of scratch values per cell in the backward pass: slots and, if recomputed, nodes."""
        return self.slots + (0 if self.launch.store_activations else self.nodes)

    def tiles(self, chunks: int) -> int:
        """Return the total number of tiles of all models if each model has `chunks` chunks or blocks."""
        return self.models * chunks // self.launch.chunks_per_workgroup

    def _scratch_groups(self, chunks: int, width: int) -> int:
        """Return the number of workgroups for `chunks` chunks per model if a cell needs `width` scratch values."""
        # Memory depends on the number of workgroups, not on the grid: they loop over the tiles.
        affordable = SCRATCH_BYTES // (self.launch.chunks_per_workgroup * width * CHUNK * 4)
        return max(1, min(self.tiles(chunks), MAX_SCRATCH_GROUPS, affordable))

    @property
    def tile_chunks(self) -> int:
        """Number of chunks per tile in the backward pass, whose tiles consist of blocks."""
        return self.launch.chunks_per_workgroup * self.chunks_per_block

    @property
    def window_tiles(self) -> int:
        """Maximum number of tiles (at least one) whose patch adjoints fit into one binding."""
        tiles = self.tiles(self.blocks)
        tile_bytes = self.tile_chunks * self.layout.patch_nodes * CHUNK * 4
        return min(tiles, max(1, self.most_bytes // tile_bytes)) if self.perceives else tiles

    @property
    def adjoints(self) -> int:
        """Adjoints per channel that a backward step returns: one per patch cell, or 1 if these exceed one binding."""
        return self.layout.patch if self.window_tiles == self.tiles(self.blocks) else 1

    @property
    def gathers(self) -> bool:
        """True if patch adjoints exceed one binding and are summed into state adjoints window by window."""
        return self.perceives and self.adjoints == 1

    @property
    def tile_work(self) -> int:
        """Number of gate evaluations per tile of a forward step."""
        return self.launch.chunks_per_workgroup * CHUNK * self.layout.instances

    @property
    def backward_work(self) -> int:
        """Cost in gate evaluations of a backward step for one chunk per lane, including recomputed nodes."""
        return (BACKWARD_WORK + (not self.launch.store_activations)) * self.tile_work

    @property
    def checkpoint_every(self) -> int:
        """Number of steps between checkpointed states; 1 if all states are stored."""
        return self.launch.checkpoint_every if self.training and not self.launch.store_activations else 1

    def state_slot(self, step: int) -> int:
        """Return the index of the `states` buffer for the state of `step`; several steps may share a buffer."""
        # With 20 steps and a distance of 5, steps 0, 5, 10, 15 and 20 have buffers 0 to 4; the steps between them
        # share buffers 5 to 8. The last state may use one of these as well, unless it goes into a sample pool after
        # the optimiser's step: then it has a separate one.
        whole, rest = divmod(step, self.checkpoint_every)
        if rest and step == self.shape.steps and self.batch_source.pool:
            return self.shape.steps // self.checkpoint_every + self.checkpoint_every
        return whole if rest == 0 else self.shape.steps // self.checkpoint_every + rest

    def word_slot(self, step: int) -> int:
        """Return the index of the `words` buffer with a step's hard state; in training, steps after 0 share two."""
        return step if step == 0 or not self.training else 2 - step % 2

    def buffer_counts(self) -> dict[str, int]:
        """Return a mapping from names to numbers of buffers, for all names that may have more than one buffer."""
        steps = self.shape.steps
        last = self.state_slot(steps) + 1
        counts = {"states": max(last, steps // self.checkpoint_every + self.checkpoint_every)}
        if self.training:
            counts["d_patches"] = 2
        if self.launch.store_activations:
            counts["kept"] = steps
        if self.groups:
            counts["words"] = 1 + (min(steps, 2) if self.training else steps)
        return counts

    def buffer_bytes(self) -> dict[str, int]:
        """Return a mapping from names to sizes in bytes of one such buffer; `buffer_counts` returns their numbers."""
        layout, shape, each = self.layout, self.shape, self.models
        # Buffers that contain a part per model, one after another, have the number of models, `each`, as a factor.
        chunk_bytes = CHUNK * 4
        masks = each * shape.steps * shape.cells_per_grid * 4 if self.asynchronous else 4
        sizes = {
            # Per instance two indices of 4 bytes; per gate 16 logits, 4 coefficients and one id, also of 4 bytes each.
            "wires": each * layout.instances * layout.candidates * 8,
            "logits": each * self.layout.parameters * 64,
            "coefficients": each * layout.gates * self.record * 16,
            "gate_ids": each * layout.gates * (1 if layout.candidates == 1 else 3) * 4,
            "masks": masks,
            "states": each * self.chunks * max(shape.channels, self.outputs) * chunk_bytes,
            "scratch": self._scratch_chunks() * chunk_bytes,
        }
        if self.launch.store_activations:
            sizes["kept"] = each * self.chunks * self.nodes * chunk_bytes
        if self.training:
            sizes |= {
                "edges": each * (layout.instances + layout.patch_nodes) * self.record * 32,
                "gradients": each * self.layout.parameters * 64,
                "control": each * 32,
                "d_patches": each * self.chunks * max(shape.channels * self.adjoints, self.outputs) * chunk_bytes,
                "partials": each * self.blocks * layout.instances * self.record * 64,
            }
            sizes |= self._given_bytes() if self.given else self._loss_bytes()
            if self.gathers:
                sizes["d_window"] = self.window_tiles * self.tile_chunks * layout.patch_nodes * chunk_bytes
        if self.groups:
            sizes |= {
                "hard_masks": masks,
                "words": each * self.hard_chunks * shape.channels * chunk_bytes,
                "hard_targets": each * self.groups * shape.cells_per_grid * shape.targets * shape.loss_channels * 8,
                "counts": each * self.groups * 8,
            }
        if shape.damage_steps:
            sizes["corners"] = each * len(shape.damage_steps) * self.corner_samples * 8
        if shape.faults.states:
            sizes |= {"fault_keys": each * 16, "listed": shape.cells_per_grid * 4}
        return sizes

    def _given_bytes(self) -> dict[str, int]:
        """Return the sizes in bytes of a CircuitFunction's buffers: output and input adjoints, hard coefficients."""
        states = self.chunks * CHUNK * 4 * self.shape.channels
        adjoints = {"d_judged": len(self.shape.judged_steps) * states} if self.perceives else {}
        if self.perceives and not self.gathers:
            adjoints["d_start"] = states
        return adjoints | {"one_hot": self.layout.gates * self.record * 16}

    def _loss_bytes(self) -> dict[str, int]:
        """Return the sizes in bytes of the buffers for the optimiser, the loss, and optional features of a task."""
        shape, each, chunk_bytes = self.shape, self.models, CHUNK * 4
        sizes = {
            "mu": each * self.layout.parameters * 64,
            "nu": each * self.layout.parameters * 64,
            "history": each * HISTORY * 8,
            "targets": each * shape.targets * self.chunks * shape.loss_channels * chunk_bytes,
            "loss_partials": each * len(shape.judged_steps) * self.chunks * 4,
        }
        if (judged := len(shape.judged_steps)) > 1:
            sizes["d_judged"] = each * (judged - 1) * self.chunks * shape.loss_channels * chunk_bytes
        if self.batch_source.start not in ("random", "boards"):
            sizes["same"] = shape.cells_per_grid * shape.channels * 4
        if self.batch_source.ruled:
            sizes["rule"] = RULE_ENTRIES * 4
        if self.batch_source.samples:
            # all models share the samples; a target has a second bit, which is 1 if the target counts
            x, y = (4 * self.batch_source.samples * words for words in self.sample_words)
            sizes |= {"x": x, "y": 2 * y}
        if self.batch_source.pool:
            sizes |= {
                "pool": each * self.batch_source.pool * self.grid_words * 4,
                "fresh": each * self.chunks * shape.channels * chunk_bytes,
                "places": each * shape.batch * 4,
                "sample_losses": each * shape.batch * 4,
            }
        return sizes

    def _scratch_chunks(self) -> int:
        """Return the number of chunks that scratch memory must provide for, the maximum of all fused steps."""
        lanes, nodes = self.launch.chunks_per_workgroup, self.nodes
        # Steps use scratch one after another, so their maximum counts. The forward pass needs none if it stores nodes.
        users = [0 if self.launch.store_activations else self.forward_groups * nodes]
        if self.training:
            users.append(self.backward_groups * self._backward_width)
        if self.groups:
            users.append(self.hard_groups * nodes)
        return lanes * max(users)

    def total_bytes(self) -> int:
        """Return the size in bytes of all storage buffers."""
        counts = self.buffer_counts()
        return sum(size * counts.get(name, 1) for name, size in self.buffer_bytes().items())


def _divided(items: int, size: int) -> int:
    return -(-items // size)
