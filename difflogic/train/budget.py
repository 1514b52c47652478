"""Attempts have a budget: too few epochs for any to be of use are refused, and too little time is reported."""

from __future__ import annotations

import math

from difflogic.config import schedule
from difflogic.config.request import Within
from difflogic.config.schema import Config
from difflogic.devices.cost import cost_of
from difflogic.errors import ConfigError, UsageError
from difflogic.train import stalled


def check(config: Config, restarts: int | None, population: int, within: Within | None = None) -> None:
    """Raises UsageError where the budget is too small for so many attempts to be of use, ConfigError without models.

    `restarts` is None where it goes on until it is solved.
    """
    if population < 1:
        raise ConfigError(f"population must be a whole number of at least 1, got {population}.")
    if restarts is None:
        _check_until_solved(config, population, within)
        return
    if restarts < 0:
        raise UsageError(f"`restarts` must be a whole number of at least 0, got {restarts}.")
    epochs = config.train.epochs
    useful = math.ceil(schedule.effort(config, stalled.first_look(config, epochs)))
    most = stalled.most_restarts(config, epochs)
    if restarts > most:
        raise UsageError(
            f"{restarts} restarts share {epochs} epochs, but no run is given up before epoch {useful}: "
            f"give at most {most} restarts."
        )
    if epochs // population < useful:
        raise UsageError(
            f"With restarts, {epochs} epochs are shared by all {population} models, {epochs // population} each, "
            f"but one useful run takes {useful}: give a smaller population, or more epochs."
        )


def _check_until_solved(config: Config, population: int, within: Within | None) -> None:
    useful = math.ceil(schedule.effort(config, stalled.first_look(config, config.train.epochs)))
    if within is not None and within.epochs is not None and within.epochs // population < useful:
        raise UsageError(
            f"Within {within.epochs} epochs no attempt can be tested: one takes {useful * population}. Give a larger "
            "`within`, or a smaller population."
        )


def notice(config: Config, population: int, within: Within | None) -> str | None:
    """A sentence where no attempt may be tested within a limit of time: a prediction, which is no ground to refuse."""
    if within is None or within.seconds is None:
        return None
    share = schedule.effort(config, stalled.first_look(config, config.train.epochs)) / config.train.epochs
    seconds = share * cost_of(config, population).seconds
    if seconds <= within.seconds:
        return None
    return (
        f"It takes about {math.ceil(seconds)} s on two cores to see whether an attempt makes progress, longer than the "
        "limit of `within`: training may end before anything is solved."
    )
