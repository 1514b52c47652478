"""At which epochs a run stops to look at itself."""

from __future__ import annotations


def is_evaluated(epoch: int, interval: int) -> bool:
    """True at epoch 1 and at multiples of `interval`. The last epoch is evaluated too, beyond the schedule."""
    return epoch == 1 or epoch % interval == 0


def next_stop(epoch: int, total: int, eval_interval: int) -> int:
    """The first epoch after `epoch` that is evaluated: training goes no further at once."""
    return 1 if epoch == 0 else min(total, (epoch // eval_interval + 1) * eval_interval)
