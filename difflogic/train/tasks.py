"""What the automaton should do, as arrays: target, probes, and the job an engine gets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic import prng
from difflogic.circuit import Circuit
from difflogic.config import Config, TaskConfig
from difflogic.engine import Floats, Job

PROBE_STREAM = 0x70726F62
"""`fold_in` data of the probe grids ("prob"): far from the small counters that `split` and `bits` use."""
PROBE_MASK_STREAM = 0x6D61736B
"""`fold_in` data of the fire masks of hard evaluation ("mask")."""


def target(task: TaskConfig) -> Floats:
    """`[H, W, loss_channels]` of 0 and 1. The board is in channel 0; further channels should stay 0."""
    rows, columns = np.indices((task.height, task.width))
    grid = np.zeros((task.height, task.width, task.loss_channels), dtype=np.float32)
    grid[..., 0] = (columns // 2 + rows // 2) % 2
    return grid


def probes(config: Config) -> npt.NDArray[np.uint8]:
    """`[P, H, W, C]` of fair bits from a stream of their own: training never sees these grids."""
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_STREAM)
    shape = (config.train.probes, config.task.height, config.task.width, config.model.channels)
    return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def make_job(config: Config, circuit: Circuit) -> Job:
    """The job of training `circuit` by `config`."""
    return Job(config, circuit, target(config.task), probes(config), probe_masks(config))


def probe_masks(config: Config) -> Floats | None:
    """Fire masks `[T, H, W, 1]` of hard evaluation, drawn once; None for a synchronous automaton."""
    task, train = config.task, config.train
    if not train.asynchronous:
        return None
    key, masks = prng.fold_in(prng.key_from_seed(config.seed), PROBE_MASK_STREAM), []
    for _ in range(task.steps):
        key, sub = prng.split(key)
        masks.append(prng.uniform(sub, (task.height, task.width, 1)) <= np.float32(train.fire_rate))
    return np.stack(masks).astype(np.float32)
