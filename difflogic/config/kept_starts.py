"""Initial states to train on in addition to the task's own, such as counterexamples of a proof.

These states fill every second place of a constant sample pool (`[pool] starts`); the other grids are random. So a
sample begins with one of these states in half of all epochs. The configuration contains their hash, and each checkpoint
contains the pool, so that a run reads the file only once.
"""

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.config.train import GrowthConfig
from difflogic.errors import ConfigError, DataError
from difflogic.system.array_files import bits_in

Grids = npt.NDArray[np.uint8]

PLACES = 1024
"""Minimum number of grids in the pool, since a circuit would memorise the random grids of a smaller pool."""


def load(path: Path, config: Config) -> Grids:
    """Read grids `[N, H, W, C]` from an `.npy` file. Raises DataError, or ConfigError if starts are not random."""
    task = config.task
    if task.start != "random" or task.target == "rule":
        raise ConfigError(
            f"`starts` requires a task with random initial states and one target, unlike the task of {config.name}."
        )
    grid = (task.height, task.width, config.model.channels)
    array = bits_in(path, "starts", "[H, W, C]", "[N, H, W, C]")
    grids = array[None] if array.ndim == len(grid) else array
    if grids.shape[1:] != grid or not len(grids):
        raise DataError(f"The grids in {path} must have shape {list(grid)} or [N, ...], got {list(array.shape)}.")
    return grids


def digest(grids: Grids) -> str:
    """Return the SHA-256 of the grids' bits, in hexadecimal digits, as stored in `pool.starts`."""
    return hashlib.sha256(np.packbits(grids.reshape(len(grids), -1), axis=1).tobytes()).hexdigest()


def kept(config: Config, grids: Grids) -> Config:
    """Return `config` with a pool of `grids`, without growth. Raises ConfigError if it has a pool of last states."""
    batch = config.train.batch
    if config.pool.size and not config.pool.starts:
        raise ConfigError(f"`starts` creates the pool, but pool.size is already {config.pool.size}: set it to 0.")
    # Each sample of a batch draws from its own part of the pool. A part has a power of two grids, half from the file.
    part = 2
    while part * batch < max(PLACES, 2 * len(grids)):
        part *= 2
    pool = {"size": part * batch, "starts": digest(grids)}
    # Without growth, since the grids have the size of the task.
    return config.with_(pool=pool, growth=GrowthConfig())


def refuse(config: Config, who: str = "a server", has_samples: bool = False) -> None:
    """Raise ConfigError if `config` needs a file that `who` lacks; `has_samples` is True if `who` has the samples."""
    if config.data.sha256 and not config.plugin.name and not has_samples:
        raise ConfigError(
            f"The configuration needs its samples (data.sha256), whose file {who} does not receive: train it on "
            "your own machine with `difflogic train --data FILE`, or upload the file on the page of a server."
        )
    if config.pool.starts:
        raise ConfigError(
            f"The configuration needs its initial states (pool.starts), whose file {who} does not receive: train "
            'it on your own machine with `difflogic train`, or set pool.starts to "" and pool.size to 0.'
        )


def pool_of(random: Grids, grids: Grids) -> Grids:
    """Return a copy of the pool `random [size, H, W, C]`, with every second grid replaced by `grids` in turn."""
    pool = random.copy()
    pool[1::2] = grids[np.arange(len(pool) // 2) % len(grids)]
    return pool
