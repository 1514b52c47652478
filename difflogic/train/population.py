"""Many seeds trained at once: together where the engine can, else one after another within each stretch of epochs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from difflogic.config import Config
from difflogic.engine import (
    Engine,
    EpochMetrics,
    Evaluation,
    Job,
    PopulationEngine,
    PopulationModel,
    TrainingModel,
    TrainState,
    Weighed,
)
from difflogic.errors import ConfigError, LimitError
from difflogic.memory import physical_memory, resident_memory

FLOAT = 4
ARRAYS = 8
"""Arrays `[G, 16]` of float32 that a member takes at least: logits and moments in the engine and out of it."""


def configs(config: Config, population: int) -> list[Config]:
    """One configuration per member: seed, seed + 1, ...

    Raises ConfigError for a population below 1 or with seeds past the last, LimitError for one that this
    machine's memory cannot hold.
    """
    if type(population) is not int or population < 1:
        raise ConfigError(f"population must be a whole number of at least 1, got {population}.")
    config.with_(seed=config.seed + population - 1)
    _check_memory(config, population)
    return [config.with_(seed=config.seed + index) for index in range(population)]


def _check_memory(config: Config, population: int) -> None:
    """A bound that is quick to see. Engines have their own, and say so."""
    task, memory = config.task, physical_memory()
    grid = task.height * task.width * config.model.channels
    train = config.train
    each = ARRAYS * config.model.gates * 16 * FLOAT + (train.probes + train.pool + FLOAT * train.batch) * grid
    if memory is None or each * population <= memory:
        return
    if each > memory:
        raise LimitError(
            f"One model needs at least {each / 1e9:.1f} GB, but this machine has {memory / 1e9:.1f} GB of memory: use "
            "a smaller grid, batch or circuit."
        )
    raise LimitError(
        f"A population of {population} needs at least {each * population / 1e9:.1f} GB, but this machine has "
        f"{memory / 1e9:.1f} GB of memory: at most {memory // each} such models fit."
    )


def open_models(engine: Engine, jobs: Sequence[Job], states: Sequence[TrainState]) -> PopulationModel:
    """The jobs on an engine. Raises DeviceErrors."""
    if isinstance(engine, PopulationEngine):
        return engine.open_population(jobs, states)
    with ExitStack() as opened:
        models = []
        for job, state in zip(jobs, states, strict=True):
            models.append(engine.open_model(job, state))
            opened.callback(models[-1].close)
            if len(models) == 1:
                _check_room(models[0], len(jobs))
        opened.pop_all()
    return OneByOne(models)


def _check_room(model: TrainingModel, count: int) -> None:
    """Raises LimitError where so many models like this one do not fit beside the jobs, which are there by now."""
    memory = physical_memory()
    if memory is None or count == 1 or not isinstance(model, Weighed):
        return
    needed = count * model.nbytes + (resident_memory() or 0)
    if needed > memory:
        raise LimitError(
            f"A population of {count} needs {needed / 1e9:.1f} GB on the {model.info.engine} engine, but this machine "
            f"has {memory / 1e9:.1f} GB of memory: at most {memory * count // needed} such models fit."
        )


class OneByOne:
    """Implements `difflogic.engine.PopulationModel`: each model in its turn has the whole machine."""

    def __init__(self, models: Sequence[TrainingModel]) -> None:
        self.info = models[0].info
        self._models = models

    def train(self, epochs: int) -> None:
        for model in self._models:
            model.train(epochs)

    def drain_all(self) -> list[list[EpochMetrics]]:
        return [model.drain() for model in self._models]

    def evaluate_all(self) -> list[Evaluation]:
        return [model.evaluate() for model in self._models]

    def to_cpu_all(self) -> list[TrainState]:
        return [model.to_cpu() for model in self._models]

    def max_epochs_per_call(self) -> int:
        return max(1, min(model.max_epochs_per_call() for model in self._models) // len(self._models))

    def close(self) -> None:
        for model in self._models:
            model.close()
