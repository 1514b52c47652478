"""The memory that a training takes on this machine is predicted before anything is made."""

from difflogic.config.schema import Config
from difflogic.core.wiring import PATCH
from difflogic.engine.shape import Shape
from difflogic.errors import LimitError, UsageError
from difflogic.system.memory import physical_memory

FLOAT = 4
TILE = 32
"""Cells whose gradients are summed before they leave a core."""
BLOCKS = 64
"""Partial sums per gate at most."""
SAVED = 6
"""Copies of logits and moments that a checkpoint holds at once: arrays, their bytes, the previous state."""
LEAST = 8
"""Arrays `[G, 16]` that a model takes on any engine: logits and moments in the engine and out of it."""


def training_bytes(config: Config, threads: int) -> int:
    """Bytes of one model in training on the processor, by the CPU engine's buffers."""
    model, task, train = config.model, config.task, config.train
    grid = task.height * task.width
    cells = grid * train.batch
    # States are rows of whole tiles. The margin on either side is a row of the grid and a tile, which is as far as the
    # neighbours of the outermost cells can be.
    width = -(-cells // TILE) * TILE + 2 * (task.width + TILE)
    nodes = model.instances + PATCH * model.channels
    # Logits of candidates have moments and gradients too, and inputs have rows of their own.
    wires, inputs = (2 * model.candidates, 2 * model.instances) if model.candidates > 1 else (0, 0)
    # By gate, by state, by fire mask, by target, by patch, by partial sum, by thread, and the tables of the layout.
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
    # Grids of 0 and 1 are a byte per value, and of the probes there are about three copies.
    grids = (config.pool.size + 3 * train.probes) * grid * model.channels
    # Samples stand here as they came, parted, and as the engine reads them.
    samples = 3 * config.data.samples * grid * (config.data.channels + config.data.targets * task.loss_channels)
    return FLOAT * floats + grids + samples


def rollout_bytes(grid: tuple[int, ...], steps: int) -> int:
    """Bytes of the states `[T+1, B, H, W, C]` that a rollout gives."""
    batch, height, width, channels = grid
    return FLOAT * (steps + 1) * batch * height * width * channels


def check_any(config: Config, population: int) -> None:
    """Raises LimitError for a population that no engine could hold; a bound that is quick to see."""
    task, train = config.task, config.train
    grid = task.height * task.width * config.model.channels
    # It is asked before anything is made, for any engine: what fits by this bound may still be refused later.
    each = LEAST * config.model.gates * 16 * FLOAT + (train.probes + config.pool.size + FLOAT * train.batch) * grid
    _check(each, population, "at least {:.1f} GB", "a smaller grid, batch or circuit")


def check_processor(config: Config, population: int, threads: int) -> None:
    """Raises LimitError where a training on the processor would take more memory than this machine has."""
    each = training_bytes(config, threads)
    _check(each, population, "about {:.1f} GB on the processor", "a smaller grid, batch or circuit, or fewer steps")


def _check(each: int, population: int, amount: str, smaller: str) -> None:
    needed, memory = each * population, physical_memory()
    # Where the system does not tell, nothing is refused; the allocation itself will say so.
    if memory is None or needed <= memory:
        return
    here = f"but this machine has {memory / 1e9:.1f} GB of memory"
    if each > memory:
        raise LimitError(f"One model needs {amount.format(each / 1e9)}, {here}: use {smaller}.")
    raise LimitError(
        f"A population of {population} needs {amount.format(needed / 1e9)}, {here}: at most {memory // each} such "
        "models fit."
    )


def check_states(shape: Shape, outputs: int) -> None:
    """Raises LimitError where the states of a rollout alone would take more memory than this machine has."""
    needed = rollout_bytes((shape.batch, shape.height, shape.width, max(shape.channels, outputs)), shape.steps)
    memory = physical_memory()
    if memory is not None and needed > memory:
        raise LimitError(
            f"A function on {shape.cells} cells needs at least {needed / 1e9:.1f} GB for its states, but this machine "
            f"has {memory / 1e9:.1f} GB of memory: use a smaller grid or batch, or fewer steps."
        )


def refuse_limit(engine: str, max_memory: int | None) -> None:
    """Raises UsageError for a limit of an engine that plans no memory."""
    if max_memory is not None:
        raise UsageError(
            f"--max-memory limits what the GPU engine takes, but the {engine} engine runs: drop it, or ask for --gpu."
        )
