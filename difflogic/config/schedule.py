"""The schedule says at which epochs a run is evaluated, on which grid it trains, where a search begins, and what is
left of it for a further attempt.
"""

import math
from bisect import bisect_right
from dataclasses import replace
from itertools import pairwise

from difflogic.config import recipes
from difflogic.config.limits import MOST
from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.config.train import GrowthConfig, HardeningConfig, ScheduleConfig
from difflogic.core import prng

LENGTHS = 1, 1, 4, 8
"""Attempts that end with a search train so many times as long before it, and so on from the first: a small picture is
learned soon or by other wiring, and how long another one takes nobody knows."""
STREAM = 0x72657374
"""`fold_in` data of the first restart's seed ("rest"); later ones follow."""


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
    height, width, steps = _grids(config)[stage]
    return config.with_(growth=GrowthConfig(), task={"height": height, "width": width, "steps": steps})


def _grids(config: Config) -> list[tuple[int, int, int]]:
    """Height, width and CA steps of each stage, the last of which is the task itself."""
    task, growth = config.task, config.growth
    smaller = [(*task.on_side(side), steps) for side, steps in zip(growth.sides, growth.steps, strict=True)]
    return [*smaller, (task.height, task.width, task.steps)]


def marks(config: Config) -> list[tuple[int, str]]:
    """The epochs after which something else is trained, and what: the grids it grows through, then a search.

    Losses before and after are not to be compared. Empty where it is the same throughout.
    """
    until = config.growth.until
    found: list[tuple[int, str]] = []
    if until:
        words = [f"{width}x{height}, {steps} steps" for height, width, steps in _grids(config)]
        found += zip((0, *until), words, strict=True)
    if config.search.begin:
        found.append((config.search.begin, "search"))
    return found


def cells(config: Config, epoch: int) -> int:
    """Cells of the grid of an epoch, counted from 1."""
    height, width, _ = _grids(config)[bisect_right(config.growth.until, epoch - 1)]
    return height * width


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
    sizes = [math.prod(grid) for grid in _grids(config)]
    ends = (0, *config.growth.until, max(MOST, config.train.epochs))
    return [(first, last, size / sizes[-1]) for (first, last), size in zip(pairwise(ends), sizes, strict=True)]


def seed_of(seed: int, attempt: int) -> int:
    """The seed of an attempt, counted from 0; the first one's is the run's own."""
    if not attempt:
        return seed
    # The seeds beside a run's own belong to its population, so restarts draw theirs from far away.
    return int(prng.fold_in(prng.key_from_seed(seed), STREAM + attempt - 1)[1])


def attempt_of(config: Config | PolicyConfig, number: int, left: int) -> Config | PolicyConfig:
    """The configuration of an attempt, counted from 0, that has `left` epochs: the run's, cut short.

    Where training ends with a search, its whole schedule shrinks instead, so that there is time for that, and it trains
    as long as LENGTHS says. Every second attempt at a rule that gates are hardened for searches from the start: no
    gradient tells anything of a parity, since each value is as often right as wrong whatever else is known, but a
    search that takes equals too finds one in a second.
    """
    cut = config.with_(seed=seed_of(config.seed, number)).with_epochs(left)
    if isinstance(cut, Config) and number % 2 and cut.hardening.share and _is_searched(cut):
        return cut.with_(search={"begin": 1}, hardening={"share": 0.0})
    if isinstance(cut, PolicyConfig) or not cut.search.begin:
        return cut
    begin, hardening, length = cut.search.begin, cut.hardening, LENGTHS[number % len(LENGTHS)]
    if length > 1 and not hardening.share:
        hardening = replace(hardening, share=recipes.SEARCHED, begin=begin // 10, end=begin // 2 + 1)
    begin = max(begin, min(length * begin, config.epochs // 2))

    def shrunk(span: ScheduleConfig | HardeningConfig) -> dict[str, int]:
        # For example from epoch 101 to 400 of 500: from 50 to 200 where 250 are left. A span is rounded to both sides,
        # so that something is left of it even where a single epoch is.
        return {"begin": span.begin * left // config.epochs, "end": math.ceil(span.end * left / config.epochs)}

    return cut.with_(
        schedule=shrunk(cut.schedule),
        hardening=shrunk(hardening) | {"share": hardening.share},
        search={"begin": math.ceil(begin * left / config.epochs)},
    )


def _is_searched(config: Config) -> bool:
    return recipes.is_other_rule(config.task) and config.can_be_searched
