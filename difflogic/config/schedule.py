"""What happens at which epoch: where a run is evaluated, which grid it trains on, where a search begins."""

from __future__ import annotations

from bisect import bisect_right

from difflogic.config.schema import Config
from difflogic.config.train import TrainConfig


def is_evaluated(epoch: int, interval: int) -> bool:
    """True at epoch 1 and at multiples of `interval`. The last epoch is evaluated too, beyond the schedule."""
    return epoch == 1 or epoch % interval == 0


def next_stop(epoch: int, total: int, eval_interval: int) -> int:
    """The first epoch after `epoch` that is evaluated: training goes no further at once."""
    return 1 if epoch == 0 else min(total, (epoch // eval_interval + 1) * eval_interval)


def stage_of(train: TrainConfig, epochs: int) -> int:
    """The stage, counted from 0, of the epoch that comes after so many; the last one is the task itself."""
    return bisect_right(train.growth_until, epochs)


def at_stage(config: Config, stage: int) -> Config:
    """What is trained in that stage, as a configuration without growth."""
    train = config.train
    whole = config.with_(train={"growth_until": (), "growth_sides": (), "growth_steps": ()})
    if stage == len(train.growth_until):
        return whole
    side = train.growth_sides[stage]
    return whole.with_(task={"height": side, "width": side, "steps": train.growth_steps[stage]})


def marks(config: Config) -> list[tuple[int, str]]:
    """The epochs after which something else is trained, and what: the grids it grows through, then a search.

    Losses before and after are not to be compared. Empty where it is the same throughout.
    """
    train = config.train
    found: list[tuple[int, str]] = []
    if train.growth_until:
        sides = [at_stage(config, stage).task for stage in range(len(train.growth_until) + 1)]
        words = [f"{task.height}x{task.width}, {task.steps} steps" for task in sides]
        found += zip((0, *train.growth_until), words, strict=True)
    if train.settle_from:
        found.append((train.settle_from, "search"))
    return found


def cells(config: Config, epoch: int) -> int:
    """Cells of the grid of an epoch, counted from 1."""
    task = at_stage(config, stage_of(config.train, epoch - 1)).task
    return task.height * task.width
