"""Schedule of a run: epochs of evaluations, grid changes and the search, and the configuration of each attempt."""

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
"""Factors by which successive attempts extend the training before a search. Small images are learned soon, or need new
wiring; the time that other images need is unknown, so that some attempts train longer."""
STREAM = 0x72657374
"""`fold_in` data of the first restart's seed ("rest" in ASCII); each later restart adds 1."""


def is_evaluated(epoch: int, interval: int) -> bool:
    """Return whether an epoch is evaluated: 1 and multiples of `interval`. Callers also evaluate the last one."""
    return epoch == 1 or epoch % interval == 0


def next_stop(epoch: int, total: int, eval_interval: int) -> int:
    """Return the first epoch after `epoch` that is evaluated, at most `total`."""
    # At an interval of 50: from 0 to 1, from 1 to 50, from 50 to 100.
    return 1 if epoch == 0 else min(total, (epoch // eval_interval + 1) * eval_interval)


def at_stage(config: Config, stage: int) -> Config:
    """Return the configuration of one stage of growth, with the grid and CA steps of this stage in [task]."""
    # For until = (4, 7): stage 0 is epochs 1 to 4, stage 1 is 5 to 7, and stage 2, the task itself, all later ones.
    height, width, steps = _grids(config)[stage]
    return config.with_(growth=GrowthConfig(), task={"height": height, "width": width, "steps": steps})


def _grids(config: Config) -> list[tuple[int, int, int]]:
    """Return height, width and CA steps of each stage; the last one is the task itself."""
    task, growth = config.task, config.growth
    smaller = [(*task.on_side(side), steps) for side, steps in zip(growth.sides, growth.steps, strict=True)]
    return [*smaller, (task.height, task.width, task.steps)]


def marks(config: Config) -> list[tuple[int, str]]:
    """Return the last epoch before each stage and the stage's description; empty if there is a single stage."""
    stages: list[tuple[int, str]] = []
    if config.growth.until:
        words = [f"{width}x{height}, {steps} steps" for height, width, steps in _grids(config)]
        stages += zip((0, *config.growth.until), words, strict=True)
    if config.search.begin:
        stages.append((config.search.begin, "search"))
    return stages


def cells(config: Config, epoch: int) -> int:
    """Return the number of cells of the grid in an epoch, counted from 1."""
    height, width, _ = _grids(config)[bisect_right(config.growth.until, epoch - 1)]
    return height * width


def effort(config: Config | PolicyConfig, epochs: int) -> float:
    """Return the cost of the first `epochs` epochs, in epochs on the task's grid; those on smaller grids cost less.

    Example: an epoch on 8x8 cells with 9 steps counts as 576 / 5120 = 0.1125 of one on 16x16 with 20.
    """
    if isinstance(config, PolicyConfig):
        return epochs
    return sum(share * max(0, min(last, epochs) - first) for first, last, share in _shares(config))


def epochs_within(config: Config | PolicyConfig, limit: float) -> int:
    """Return the maximum number of epochs, from the first of the run, with an `effort` of at most `limit`."""
    if isinstance(config, PolicyConfig):
        return min(int(limit), config.epochs)
    done = 0
    for first, last, share in _shares(config):
        done += min(last - first, int(limit / share + 1e-9))  # a sum of shares may miss an integer by a rounding
        limit -= share * (last - first)
        if limit <= 0:
            break
    return min(done, config.train.epochs)


def _shares(config: Config) -> list[tuple[int, int, float]]:
    """Return, for each stage, the epoch before it, its last epoch, and its epochs' cost relative to the last stage."""
    sizes = [math.prod(grid) for grid in _grids(config)]
    ends = (0, *config.growth.until, max(MOST, config.train.epochs))
    return [(first, last, size / sizes[-1]) for (first, last), size in zip(pairwise(ends), sizes, strict=True)]


def seed_of(seed: int, attempt: int) -> int:
    """Return the seed of an attempt, counted from 0; the first one has the seed of the run."""
    if not attempt:
        return seed
    # The seeds after `seed` belong to the other models of a population, so restarts have distant seeds.
    return int(prng.fold_in(prng.key_from_seed(seed), STREAM + attempt - 1)[1])


def attempt_of(config: Config | PolicyConfig, number: int, epochs: int) -> Config | PolicyConfig:
    """Return the configuration of attempt `number`, counted from 0, with `epochs` epochs, at most those of the run.

    If training ends with a search, the search begins later in some attempts (LENGTHS), and the schedule is scaled to
    `epochs`, to leave time for the search. For a rule with hardening, every second attempt searches after one epoch.
    A parity has no gradient, since no single input is correlated with the result, but a search that accepts equally
    good circuits learns a parity in a second.
    """
    cut = config.with_(seed=seed_of(config.seed, number)).with_epochs(epochs)
    if isinstance(cut, PolicyConfig):
        return cut
    if number % 2 and cut.hardening.share and recipes.is_other_rule(cut.task) and cut.can_be_searched:
        return cut.with_(search={"begin": 1}, hardening={"share": 0.0})
    if not cut.search.begin:
        return cut
    begin, hardening, length = cut.search.begin, cut.hardening, LENGTHS[number % len(LENGTHS)]
    if length > 1 and not hardening.share:
        hardening = replace(hardening, share=recipes.SEARCHED, begin=begin // 10, end=begin // 2 + 1)
    begin = max(begin, min(length * begin, config.epochs // 2))

    def shrunk(span: ScheduleConfig | HardeningConfig) -> dict[str, int]:
        # For example, 101 to 400 of 500 epochs becomes 50 to 200 of 250. Begin is rounded down and end up, so that the
        # span is not empty even in a single epoch.
        return {"begin": span.begin * epochs // config.epochs, "end": math.ceil(span.end * epochs / config.epochs)}

    return cut.with_(
        schedule=shrunk(cut.schedule),
        hardening=shrunk(hardening) | {"share": hardening.share},
        search={"begin": math.ceil(begin * epochs / config.epochs)},
    )
