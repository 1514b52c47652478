"""The schedule says at which epochs a run is evaluated, on which grid it trains, and where a search begins."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from difflogic.config.limits import MOST
from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.config.train import GrowthConfig


def is_evaluated(epoch: int, interval: int) -> bool:
    """True at epoch 1 and at multiples of `interval`. The last epoch is evaluated too, beyond the schedule."""
    return epoch == 1 or epoch % interval == 0


def next_stop(epoch: int, total: int, eval_interval: int) -> int:
    """The first epoch after `epoch` that is evaluated: training goes no further at once."""
    # At an interval of 50: from 0 to 1, from 1 to 50, from 50 to 100.
    return 1 if epoch == 0 else min(total, (epoch // eval_interval + 1) * eval_interval)


def at_stage(config: Config, stage: int) -> Config:
    """Return what is trained in that stage, as a configuration without growth."""
    # For until = (4, 7): stage 0 is epochs 1 to 4, stage 1 is 5 to 7, and stage 2, the task itself, all later ones.
    growth, whole = config.growth, config.with_(growth=GrowthConfig())
    if stage == len(growth.until):
        return whole
    height, width = config.task.on_side(growth.sides[stage])
    return whole.with_(task={"height": height, "width": width, "steps": growth.steps[stage]})


def marks(config: Config) -> list[tuple[int, str]]:
    """The epochs after which something else is trained, and what: the grids it grows through, then a search.

    Losses before and after are not to be compared. Empty where it is the same throughout.
    """
    until = config.growth.until
    found: list[tuple[int, str]] = []
    if until:
        sides = [at_stage(config, stage).task for stage in range(len(until) + 1)]
        words = [f"{task.width}x{task.height}, {task.steps} steps" for task in sides]
        found += zip((0, *until), words, strict=True)
    if config.search.begin:
        found.append((config.search.begin, "search"))
    return found


def cells(config: Config, epoch: int) -> int:
    """Cells of the grid of an epoch, counted from 1."""
    task = at_stage(config, bisect_right(config.growth.until, epoch - 1)).task
    return task.height * task.width


def effort(config: Config | PolicyConfig, epochs: int) -> float:
    """Return what so many epochs cost, in epochs of the whole task: one on a smaller grid counts as its share.

    Example: an epoch on 8x8 cells with 9 steps counts as 576 / 5120 = 0.1125 of one on 16x16 with 20.
    """
    if isinstance(config, PolicyConfig):
        return epochs
    return sum(share * max(0, min(last, epochs) - first) for first, last, share in _shares(config))


def epochs_within(config: Config | PolicyConfig, limit: float) -> int:
    """The most epochs that cost no more than `limit` epochs of the whole task; at most the configuration's own."""
    if isinstance(config, PolicyConfig):
        return min(int(limit), config.epochs)
    done = 0
    for first, last, share in _shares(config):
        done += min(last - first, int(limit / share + 1e-9))  # a sum of shares may miss a whole number by a rounding
        limit -= share * (last - first)
        if limit <= 0:
            break
    return min(done, config.train.epochs)


def _shares(config: Config) -> list[tuple[int, int, float]]:
    """The stages: the epochs after which each begins and ends, and what share of the whole task an epoch of it is."""
    tasks = [at_stage(config, stage).task for stage in range(len(config.growth.until) + 1)]
    sizes = [task.height * task.width * task.steps for task in tasks]
    ends = (0, *config.growth.until, max(MOST, config.train.epochs))
    return [(first, last, size / sizes[-1]) for (first, last), size in zip(pairwise(ends), sizes, strict=True)]
