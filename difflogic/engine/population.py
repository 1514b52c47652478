"""Train a population of runs with consecutive seeds: in one model if the engine can, otherwise in several models."""

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
    """Return one configuration per member, with the seeds `seed`, `seed + 1` and so on.

    Raises ConfigError if `population` is below 1 or a seed exceeds the maximum, and LimitError if the population does
    not fit into this machine's memory.
    """
    if type(population) is not int or population < 1:
        raise ConfigError(f"population must be an integer of at least 1, got {population}.")
    # Check the last seed first, since the list of all configurations may be long.
    config.with_(seed=config.seed + population - 1)
    memory.check_any(config, population)
    return [config.with_(seed=config.seed + index) for index in range(population)]


def open_in_turn(openers: Sequence[Callable[[], Model]]) -> Model:
    """Call `openers` and combine their models into one; if an opener raises, close the models opened so far."""
    models = opened(openers)
    return models[0] if len(models) == 1 else SequentialModels(models)


def opened(openers: Sequence[Callable[[], Model]]) -> list[Model]:
    """Call `openers` and return their models; if an opener raises, close the models opened so far."""
    # The stack closes open models if a later opener raises; `pop_all` keeps them open if no opener raises.
    with ExitStack() as stack:
        models = []
        for opener in openers:
            models.append(opener())
            stack.callback(models[-1].close)
        stack.pop_all()
    return models


class SequentialModels:
    """Several models with the interface of one `difflogic.engine.api.Model`; each call runs them one after another."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.info = models[0].info
        self.models = models

    def _each(self, call: Callable[[Model], T]) -> list[T]:
        # Each model runs to the end of the call before the next one begins, so that its data stay in the caches.
        return [call(model) for model in self.models]

    def train(self, epochs: int) -> None:
        self._each(lambda model: model.train(epochs))

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        return [rows for metrics in self._each(lambda model: model.fetch_metrics()) for rows in metrics]

    def evaluate(self) -> list[Evaluation]:
        return [evaluation for results in self._each(lambda model: model.evaluate()) for evaluation in results]

    def states(self) -> list[TrainState]:
        return [state for model in self.models for state in model.states()]

    def epochs_per_call(self) -> int:
        # A call of this model takes as long as one call of each of its models, one after another.
        return max(1, min(model.epochs_per_call() for model in self.models) // len(self.models))

    def close(self) -> None:
        for model in self.models:
            model.close()


class ParallelModels(SequentialModels):
    """Several models, each on its own device, that run at the same time in one thread per model."""

    def __init__(self, models: Sequence[Model], info: EngineInfo) -> None:
        super().__init__(models)
        self.info = info
        self._threads = ThreadPoolExecutor(len(models), thread_name_prefix="device")

    def _each(self, call: Callable[[Model], T]) -> list[T]:
        return list(self._threads.map(call, self.models))

    def epochs_per_call(self) -> int:
        return min(model.epochs_per_call() for model in self.models)

    def close(self) -> None:
        self._threads.shutdown()
        super().close()
