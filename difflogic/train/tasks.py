"""What the automaton should do, as arrays: target, probes, and the job an engine gets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic import damage, prng, raster, rules, starts
from difflogic.circuit import Circuit
from difflogic.config import Config, TaskConfig
from difflogic.engine import Floats, Job
from difflogic.habitat import Habitat

PROBE_STREAM = 0x70726F62
"""`fold_in` data of the probe grids ("prob"): far from the small counters that `split` and `bits` use."""
PROBE_MASK_STREAM = 0x6D61736B
"""`fold_in` data of the fire masks of hard evaluation ("mask"). Damage folds a stream of its own into the probes'."""


def target(task: TaskConfig) -> Floats | None:
    """`[H, W, loss_channels]` of 0 and 1; None where a rule makes it from the start.

    A board is in channel 0, and further loss channels should stay 0.
    """
    if task.target == "rule":
        return None
    if task.target == "picture":
        return raster.decode(task.picture, task.loss_channels).astype(np.float32)
    rows, columns = np.indices((task.height, task.width))
    grid = np.zeros((task.height, task.width, task.loss_channels), dtype=np.float32)
    grid[..., 0] = (columns // 2 + rows // 2) % 2
    return grid


def start(config: Config) -> npt.NDArray[np.uint8] | None:
    """`[H, W, C]` of 0 and 1, where every start is the same; else None."""
    return Habitat.of(config).grid(range(config.model.channels))


def probes(config: Config) -> npt.NDArray[np.uint8]:
    """`[P, H, W, C]`: all boards, the one start, or fair bits from a stream that training never sees."""
    task, train = config.task, config.train
    same = start(config)
    if task.start == "boards":
        return starts.boards(np.arange(1 << task.height * task.width), task.height, task.width)
    if same is not None:
        return np.repeat(same[None], train.probes if task.damage_steps else 1, axis=0)
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_STREAM)
    shape = (train.probes, task.height, task.width, config.model.channels)
    return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def probe_count(config: Config) -> int:
    """How many `probes` there are."""
    task = config.task
    if task.start == "boards":
        return 1 << task.height * task.width
    return config.train.probes if task.start == "random" or task.damage_steps else 1


def judges(config: Config) -> str:
    """What a circuit is judged on, in words: `all 32 probe grids`, `all 512 boards`, `the one start grid`."""
    count = probe_count(config)
    if count == 1:
        return "the one start grid"
    return f"all {count} {'boards' if config.task.start == 'boards' else 'probe grids'}"


def make_job(config: Config, circuit: Circuit) -> Job:
    """The job of training `circuit` by `config`."""
    task, grids = config.task, probes(config)
    return Job(
        config,
        circuit,
        target(task),
        grids,
        probe_masks(config),
        start(config),
        rules.table(task.rule) if task.target == "rule" else None,
        probe_damage(config, len(grids)),
    )


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


def probe_damage(config: Config, count: int) -> npt.NDArray[np.int64] | None:
    """Corners `[len(damage_steps), count, 2]` of the probes' damage, drawn once; None without damage."""
    task = config.task
    if not task.damage_steps:
        return None
    key = prng.fold_in(prng.key_from_seed(config.seed), PROBE_STREAM)
    return damage.draw_corners(key, len(task.damage_steps), count, task.height, task.width)
