"""Initial states to train on in addition to the task's own, such as counterexamples of a proof.

They are every second grid of a sample pool to which nothing is written back (`[pool] starts`), so that a sample begins
with one of them in half of all epochs, else with one of as many random grids. The configuration holds their hash, and
every checkpoint the pool, so that a run needs their file only once.
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
"""Minimum size of the pool: in a smaller one, a circuit would learn the random grids one by one."""


def load(path: Path, config: Config) -> Grids:
    """Read grids `[N, H, W, C]` from an `.npy` file. Raises DataError, ConfigError for a task without random bits."""
    task = config.task
    if task.start != "random" or task.target == "rule":
        raise ConfigError(
            f"`starts` needs a task with random initial states and one target, and that of {config.name} is another."
        )
    grid = (task.height, task.width, config.model.channels)
    array = bits_in(path, "starts", "[H, W, C]", "[N, H, W, C]")
    grids = array[None] if array.ndim == len(grid) else array
    if grids.shape[1:] != grid or not len(grids):
        raise DataError(f"The grids in {path} must have shape {list(grid)} or [N, ...], got {list(array.shape)}.")
    return grids


def digest(grids: Grids) -> str:
    """Return the SHA-256 of the grids' bits, in hexadecimal digits, as `pool.starts` holds it."""
    return hashlib.sha256(np.packbits(grids.reshape(len(grids), -1), axis=1).tobytes()).hexdigest()


def kept(config: Config, grids: Grids) -> Config:
    """Return the configuration that also trains on these grids. Raises ConfigError if it has another pool."""
    batch = config.train.batch
    if config.pool.size and not config.pool.starts:
        raise ConfigError(f"`starts` needs a pool of its own, but pool.size is {config.pool.size}: set it to 0.")
    # Each sample draws from its part of the pool, a power of two, of which every second grid is one of these states.
    part = 2
    while part * batch < max(PLACES, 2 * len(grids)):
        part *= 2
    pool = {"size": part * batch, "starts": digest(grids)}
    # The grids are of the task's own size.
    return config.with_(pool=pool, growth=GrowthConfig())


def refuse(config: Config, who: str = "a server", has_samples: bool = False) -> None:
    """Raise ConfigError for a configuration that needs a file which another machine does not receive."""
    if config.data.sha256 and not config.plugin.name and not has_samples:
        raise ConfigError(
            f"The configuration is of samples in a file, data.sha256, which {who} does not get: train it on your own "
            "machine with `difflogic train --data FILE`, or drop the file on the page of a server."
        )
    if config.pool.starts:
        raise ConfigError(
            f"The configuration needs the initial states of a file, pool.starts, which {who} does not get: train it on "
            'your own machine with `difflogic train`, or set pool.starts to "" and pool.size to 0.'
        )


def pool_of(random: Grids, grids: Grids) -> Grids:
    """Return the pool `random [size, H, W, C]` with one of the grids at every second place, in turn."""
    pool = random.copy()
    pool[1::2] = grids[np.arange(len(pool) // 2) % len(grids)]
    return pool
