"""Budget of attempts: refuses too few epochs for a useful attempt, and warns of too little time."""

import math

from difflogic.config import schedule
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.values import Within
from difflogic.devices.cost import cost_of
from difflogic.errors import UsageError
from difflogic.train import stalled


def check(request: TrainRequest) -> None:
    """Raise UsageError if the budget is too small for all attempts of a request to be useful."""
    config, population, restarts = request.whole, request.population, request.restarts or 0
    if isinstance(config, PolicyConfig):
        config.require_episodes()
        _check_agents(request)
        return
    if request.until_solved:
        _check_until_solved(config, population, request.within)
        return
    epochs = config.epochs
    useful = math.ceil(schedule.effort(config, stalled.first_look(config, epochs)))
    most = stalled.most_restarts(config, epochs)
    if restarts > most:
        raise UsageError(
            f"{restarts} restarts share {epochs} epochs, but no attempt stops early before epoch {useful}: "
            f"give at most {most} restarts."
        )
    if epochs // population < useful:
        raise UsageError(
            f"With restarts, {epochs} epochs are shared by all {population} models, {epochs // population} each, "
            f"but one useful run takes {useful}: give a smaller population, or more epochs."
        )


def _check_agents(request: TrainRequest) -> None:
    if not request.until_solved:
        raise UsageError("`restarts` is for automata: agents restart with `until_solved`.")
    if request.within is not None and request.within.epochs is not None:
        raise UsageError("`within` of agents is a time, say 60s, 5m or 2h: their steps limit each attempt.")


def _check_until_solved(config: Config, population: int, within: Within | None) -> None:
    useful = math.ceil(schedule.effort(config, stalled.first_look(config, config.train.epochs)))
    if within is not None and within.epochs is not None and within.epochs // population < useful:
        raise UsageError(
            f"Within {within.epochs} epochs no attempt can be tested: one takes {useful * population}. Give a larger "
            "`within`, or a smaller population."
        )


def notice(request: TrainRequest) -> str | None:
    """Return a warning if the limit of time may end training before the first evaluation for early stopping.

    It is an estimate, so that the request is not refused.
    """
    config, within = request.whole, request.within
    if within is None or within.seconds is None or isinstance(config, PolicyConfig):
        return None
    share = schedule.effort(config, stalled.first_look(config, config.train.epochs)) / config.train.epochs
    seconds = share * cost_of(config, request.population).seconds
    if seconds <= within.seconds:
        return None
    return (
        f"It takes about {math.ceil(seconds)} s on two cores to see whether an attempt makes progress, longer than the "
        "limit of `within`: training may end before anything is solved."
    )
