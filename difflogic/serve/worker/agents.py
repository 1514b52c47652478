"""What a job that trained agents leaves beside its run: its best agent as a film, as a page, and drawn."""

from __future__ import annotations

from collections.abc import Iterator

from difflogic.actions.simplify import drawings
from difflogic.errors import MissingPackagesError, UsageError
from difflogic.policies import controllers, film
from difflogic.policies.actors import LogicActor
from difflogic.serve.worker.log import say
from difflogic.train.run import AgentRun

FILM, FILM_STEPS, FRAME_MS = "episode.gif", 500, 40


def pictures(run: AgentRun, name: str) -> Iterator[tuple[str, str | bytes]]:
    """The best agent as a film of an episode; of a controller also its page, and its circuit, drawn."""
    actor, spaces, controller = run.best.agent.actor, run.best.environments.spaces, None
    if isinstance(actor, LogicActor) and not spaces.continuous:
        controller = controllers.of_actor(actor, run.config.environment.id, spaces)
        yield from drawings(controller, name).items()
    try:
        frames = film.of_agent(run.best, FILM_STEPS, controller)
    # An agent is no worse for an environment that draws nothing, or one whose painter is not installed.
    except (UsageError, MissingPackagesError) as error:
        say(str(error))
    else:
        yield FILM, film.encoded(frames, ".gif", FRAME_MS)
