"""How the tests of this folder train: by the interface that every engine has."""

from __future__ import annotations

from difflogic.engine.api import Engine
from difflogic.engine.job import Job, TrainState
from tests.jobs import Outcome


def train(engine: Engine, job: Job, state: TrainState, *calls: int) -> Outcome:
    """What becomes of `state` after so many epochs in each call: the state, the epochs' metrics, the evaluation."""
    model = engine.open([job], [state])
    for epochs in calls:
        model.train(epochs)
    result = model.states()[0], model.drain()[0], model.evaluate()[0]
    model.close()
    return result
