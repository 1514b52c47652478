"""Predict the memory that training needs, before any memory is allocated."""

from difflogic.config.schema import Config
from difflogic.core.wiring import PATCH
from difflogic.engine.shape import Shape
from difflogic.errors import LimitError, UsageError
from difflogic.system.memory import physical_memory

FLOAT = 4
"""Number of bytes per float32."""
TILE = 32
"""Number of cells per tile of the CPU engine."""
BLOCKS = 64
"""Maximum number of partial sums of gradients per gate in the CPU engine."""
SAVED = 6
"""Number of logits-sized arrays while a checkpoint is written: arrays, their bytes, and the previous state."""
LEAST = 8
"""Minimum number of arrays `[G, 16]` per model on any engine: logits and moments on device and host."""


def training_bytes(config: Config, threads: int) -> int:
    """Return the estimated bytes for training one model on the CPU with `threads` threads, from the buffers' sizes."""
    model, task, train = config.model, config.task, config.train
    grid = task.height * task.width
    cells = grid * train.batch
    # States are rows of complete tiles. On either side a margin of one row of the grid and a tile is for neighbours.
    width = -(-cells // TILE) * TILE + 2 * (task.width + TILE)
    nodes = model.instances + PATCH * model.channels
    # Logits of candidates have moments and gradients too, and inputs then have separate rows.
    wires, inputs = (2 * model.candidates, 2 * model.instances) if model.candidates > 1 else (0, 0)
    # Terms: gates, states, fire masks, targets, patches, partial sums, threads, and the tables of the layout.
    floats = (
        ((16 + wires) * (5 + SAVED) + 4 * 2) * model.gates
        + (task.steps + 1) * model.channels * width
        + (task.steps * width if train.asynchronous else 0)
        + len(task.judged_steps) * task.loss_channels * width
        + 2 * PATCH * model.channels * width
        + min(-(-cells // TILE), BLOCKS) * (4 + wires) * model.gates
        + threads * (3 * nodes + inputs + model.channels) * TILE
        + 16 * nodes
        + 2 * wires * model.instances
    )
    # Bits of grids are stored as bytes, and there are about three copies of the evaluation grids.
    grids = (config.pool.size + 3 * train.probes) * grid * model.channels
    # Memory contains data samples three times: as read, after the split, and in the buffers of the engine.
    samples = 3 * config.data.samples * grid * (config.data.channels + config.data.targets * task.loss_channels)
    return FLOAT * floats + grids + samples


def rollout_bytes(grid: tuple[int, ...], steps: int) -> int:
    """Return the number of bytes of all states of a rollout, float32 `[T+1, B, H, W, C]`."""
    batch, height, width, channels = grid
    return FLOAT * (steps + 1) * batch * height * width * channels


def check_any(config: Config, population: int) -> None:
    """Raise LimitError if a lower bound of the population's memory on any engine exceeds this machine's memory."""
    task, train = config.task, config.train
    grid = task.height * task.width * config.model.channels
    # The engine may still refuse a population that passes this check.
    grids = train.probes + config.pool.size + FLOAT * train.batch
    model_bytes = LEAST * config.model.gates * 16 * FLOAT + grids * grid
    _check(model_bytes, population, "at least {:.1f} GB", "a smaller grid, batch or circuit")


def check_processor(config: Config, population: int, threads: int) -> None:
    """Raise LimitError if training a population on the CPU needs more memory than this machine has."""
    smaller = "a smaller grid, batch or circuit, or fewer steps"
    _check(training_bytes(config, threads), population, "about {:.1f} GB on the processor", smaller)


def _check(model_bytes: int, population: int, amount: str, smaller: str) -> None:
    needed, memory = model_bytes * population, physical_memory()
    # If the size of the memory is unknown, nothing is refused, and the allocation may fail.
    if memory is None or needed <= memory:
        return
    limit = f"but this machine has {memory / 1e9:.1f} GB of memory"
    if model_bytes > memory:
        raise LimitError(f"One model needs {amount.format(model_bytes / 1e9)}, {limit}: use {smaller}.")
    raise LimitError(
        f"A population of {population} needs {amount.format(needed / 1e9)}, {limit}: train at most "
        f"{memory // model_bytes}."
    )


def check_states(shape: Shape, outputs: int) -> None:
    """Raise LimitError if just the states of a rollout of `shape` exceed this machine's memory."""
    needed = rollout_bytes((shape.batch, shape.height, shape.width, max(shape.channels, outputs)), shape.steps)
    memory = physical_memory()
    if memory is not None and needed > memory:
        raise LimitError(
            f"A function on {shape.cells} cells needs at least {needed / 1e9:.1f} GB for its states, but this machine "
            f"has {memory / 1e9:.1f} GB of memory: use a smaller grid or batch, or fewer steps."
        )


def refuse_limit(engine: str, max_memory: int | None) -> None:
    """Raise UsageError if `max_memory` is not None, since `engine` cannot limit its memory."""
    if max_memory is not None:
        raise UsageError(
            f"--max-memory only limits the GPU engine, but the {engine} engine is selected: omit it, or use --gpu."
        )
