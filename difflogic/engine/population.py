"""Many seeds trained at once: together where the engine can, else one after another within each stretch of epochs."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

from difflogic.config.schema import Config
from difflogic.engine import memory
from difflogic.engine.api import EngineInfo, EpochMetrics, Evaluation, Model
from difflogic.engine.job import TrainState
from difflogic.errors import ConfigError

T = TypeVar("T")


def configs(config: Config, population: int) -> list[Config]:
    """One configuration per member: seed, seed + 1, ...

    Raises ConfigError for a population below 1 or with seeds past the last, LimitError for one that this
    machine's memory cannot hold.
    """
    if type(population) is not int or population < 1:
        raise ConfigError(f"population must be a whole number of at least 1, got {population}.")
    # The last seed is checked before a list of any length is made.
    config.with_(seed=config.seed + population - 1)
    memory.check_any(config, population)
    return [config.with_(seed=config.seed + index) for index in range(population)]


def open_in_turn(openers: Sequence[Callable[[], Model]]) -> Model:
    """Return what they open, as one model; where one raises, those before it are closed again."""
    models = opened(openers)
    return models[0] if len(models) == 1 else SequentialModels(models)


def opened(openers: Sequence[Callable[[], Model]]) -> list[Model]:
    """Return what they open; where one raises, those before it are closed again."""
    # The stack closes what was opened if a later one is refused; `pop_all` forgets them once all are there.
    with ExitStack() as stack:
        models = []
        for opener in openers:
            models.append(opener())
            stack.callback(models[-1].close)
        stack.pop_all()
    return models


class SequentialModels:
    """Implements `difflogic.engine.api.Model`: each model in its turn has the whole machine."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.info = models[0].info
        self.models = models

    def _each(self, ask: Callable[[Model], T]) -> list[T]:
        # Not interleaved: a model that has the whole machine keeps its data in the caches.
        return [ask(model) for model in self.models]

    def train(self, epochs: int) -> None:
        self._each(lambda model: model.train(epochs))

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        return [rows for metrics in self._each(lambda model: model.fetch_metrics()) for rows in metrics]

    def evaluate(self) -> list[Evaluation]:
        return [judged for evaluated in self._each(lambda model: model.evaluate()) for judged in evaluated]

    def states(self) -> list[TrainState]:
        return [state for model in self.models for state in model.states()]

    def epochs_per_call(self) -> int:
        # A call of this model is a call of each, one after the other.
        return max(1, min(model.epochs_per_call() for model in self.models) // len(self.models))

    def close(self) -> None:
        for model in self.models:
            model.close()


class ParallelModels(SequentialModels):
    """Models on devices of their own, which work at the same time; each has a thread here to drive it."""

    def __init__(self, models: Sequence[Model], info: EngineInfo) -> None:
        super().__init__(models)
        self.info = info
        self._threads = ThreadPoolExecutor(len(models), thread_name_prefix="device")

    def _each(self, ask: Callable[[Model], T]) -> list[T]:
        return list(self._threads.map(ask, self.models))

    def epochs_per_call(self) -> int:
        return min(model.epochs_per_call() for model in self.models)

    def close(self) -> None:
        self._threads.shutdown()
        super().close()
