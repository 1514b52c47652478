"""Check of the budget of attempts: an error for too few epochs, and a warning about too little time."""

import math

from difflogic.config import schedule
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices.cost import cost_of
from difflogic.errors import UsageError
from difflogic.system.words import counted
from difflogic.train import stalled


def check(request: TrainRequest) -> None:
    """Raise UsageError if the budget is too small for useful attempts, or the options do not apply to agents."""
    config, population, restarts, within = request.whole, request.population, request.restarts or 0, request.within
    if isinstance(config, PolicyConfig):
        config.require_episodes()
        if not request.until_solved:
            raise UsageError("`restarts` is for automata: agents restart with `until_solved`.")
        if within is not None and within.epochs is not None:
            raise UsageError("For agents, `within` must be a time, such as 5m or 2h: `steps` limits each attempt.")
        return
    epochs = config.epochs
    useful, most = math.ceil(_effort_of_first_look(config)), stalled.most_restarts(config, epochs)
    if request.until_solved:
        if within is not None and within.epochs is not None and within.epochs // population < useful:
            raise UsageError(
                f"{within.epochs} epochs are too few to test an attempt, which takes {useful * population}. Give a "
                "larger `within`, or a smaller population."
            )
        return
    if restarts > most:
        raise UsageError(
            f"`restarts` must be at most {most} for {counted(epochs, 'epoch')}, got {restarts}: an attempt is first "
            f"tested after {counted(useful, 'epoch')}."
        )
    if epochs // population < useful:
        raise UsageError(
            f"With restarts, {population} models share {epochs} epochs, {epochs // population} each, but an attempt "
            f"is first tested after {useful} epochs: give a smaller population, or more epochs."
        )


def _effort_of_first_look(config: Config) -> float:
    return schedule.effort(config, stalled.first_look(config, config.epochs))


def notice(request: TrainRequest) -> str | None:
    """Return a warning if the time limit is probably too short to detect progress of an attempt, or None."""
    config, within = request.whole, request.within
    if within is None or within.seconds is None or isinstance(config, PolicyConfig):
        return None
    seconds = _effort_of_first_look(config) / config.epochs * cost_of(config, request.population).seconds
    if seconds <= within.seconds:
        return None
    return (
        f"It takes about {math.ceil(seconds)} s on two cores to see whether an attempt makes progress, longer than the "
        "limit of `within`: training may end before anything is solved."
    )
