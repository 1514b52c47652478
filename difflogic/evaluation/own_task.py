"""Evaluation of a task in Python, on fresh samples of the run's settings or of others."""

from __future__ import annotations

import numpy as np

from difflogic.config import registered
from difflogic.config.own_task import FRESH, OwnTask
from difflogic.engine import job
from difflogic.errors import ConfigError, UsageError
from difflogic.evaluation.measure import Measure
from difflogic.evaluation.rehearsal import EvaluationContext
from difflogic.evaluation.samples import AT_ONCE, compared_states


def check(context: EvaluationContext) -> None:
    """Refuse wrong settings before the first test. Raises as `own_numbers`."""
    if context.settings:
        _task(context)


def own_numbers(context: EvaluationContext) -> Measure | None:
    """Measure fresh samples, and the task's own numbers.

    Raises ConfigError for settings that the task does not take, UsageError if there is no task, FaultyTaskError.
    """
    own = _task(context)
    if own is None:
        return None
    if isinstance(own, str):
        return Measure("own-task", f"what {context.config.plugin.name} says", f"left out: {own}", {})
    samples = own.drawn(context.starts, FRESH, context.config.seed)
    parts = enumerate(job.in_parts(samples, AT_ONCE))
    states = np.concatenate([compared_states(context, part, number) for number, part in parts], axis=1)
    count = int(np.count_nonzero(job.differing(samples, states).any(axis=(0, 2, 3, 4))))
    numbers = own.judged(states.swapaxes(0, 1), samples)
    told = [
        f"{count} samples are wrong" if count else "exact",
        *(f"{key} {value:.4g}" for key, value in numbers.items()),
    ]
    settings = ", ".join(f"{name} {value}" for name, value in own.settings.items())
    title = f"{len(samples)} fresh samples of {own.name}, {settings}"
    return Measure("own-task", title, "; ".join(told), {"samples": len(samples), "wrong_samples": count, **numbers})


def _task(context: EvaluationContext) -> OwnTask | str | None:
    """Return the task of the run, with the requested settings, or a sentence if it is not installed."""
    plugin, asked = context.config.plugin, context.settings
    if not plugin.name:
        if asked:
            raise UsageError("--set changes settings of a task in Python, and this run has no such task: drop it.")
        return None
    try:
        own = registered.task_of(plugin, asked)
    except ConfigError as error:
        if asked:
            raise
        return str(error)  # the samples of the run are tested all the same
    if unknown := sorted(set(asked) - own.takes):
        raise ConfigError(f"{own.name} has no setting {unknown[0]}: it takes {', '.join(sorted(own.takes))}.")
    return own
