"""Training that ends with a search over the hard circuit: see `difflogic.engine.search`.

The search is the same on every engine: whole numbers, computed on the processor. Its epochs count as any other; they
leave keys, moments and the number of steps as they are, and have no soft loss. Their batch is the probes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from difflogic.devices.open import open_local_search
from difflogic.devices.race import ContestModel, Decision
from difflogic.engine import search as settling
from difflogic.engine.api import Engine, EpochMetrics, Evaluation, Model
from difflogic.engine.job import Job, TrainState
from difflogic.errors import CheckpointError
from difflogic.train.stages import GrowingModel, open_growing


def open_training(
    engine: Engine, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None
) -> Model:
    """The jobs on an engine, growing and settling as they say. Raises DeviceErrors, and CheckpointError."""
    if jobs[0].config.train.settle_from:
        return SettlingModel(engine, jobs, states, max_memory)
    return open_growing(engine, jobs, states, max_memory)


class SettlingModel:
    """Implements `difflogic.engine.api.Model`: by an engine's model, and later by a search for each run."""

    decided: Callable[[Decision], None] = staticmethod(lambda decision: None)
    """Told of the contest, where engines compete."""

    def __init__(
        self, engine: Engine, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None
    ) -> None:
        self._jobs = jobs
        self._left = max(0, jobs[0].config.train.settle_from - states[0].epoch)
        self._searches: list[_Search] = []
        self._model = open_growing(engine, jobs, states, max_memory)
        self.info = self._model.info
        if isinstance(self._model, ContestModel | GrowingModel):
            self._model.decided = self._decided
        if not self._left:
            self._settle(states)

    def train(self, epochs: int) -> None:
        if self._left:
            count = min(epochs, self._left)
            self._model.train(count)
            self._left -= count
            epochs -= count
        if not epochs:
            return
        if not self._searches:
            self._settle(self._model.states())
        for search in self._searches:
            search.train(epochs)

    def drain(self) -> list[list[EpochMetrics]]:
        if not self._searches:
            return self._model.drain()
        return [search.drain() for search in self._searches]

    def evaluate(self) -> list[Evaluation]:
        if not self._searches:
            return self._model.evaluate()
        return [search.evaluate() for search in self._searches]

    def states(self) -> list[TrainState]:
        if not self._searches:
            return self._model.states()
        return [search.state for search in self._searches]

    def epochs_per_call(self) -> int:
        """An epoch of the search at a time: it takes as long as a train step."""
        return min(self._left, self._model.epochs_per_call()) if self._left else 1

    def close(self) -> None:
        if not self._searches:
            self._model.close()

    def _settle(self, states: Sequence[TrainState]) -> None:
        """The engine has done its part."""
        waiting = self._model.drain()
        self._model.close()
        self._searches = [_Search(*each) for each in zip(self._jobs, states, waiting, strict=True)]

    def _decided(self, decision: Decision) -> None:
        self.info = decision.engine
        self.decided(decision)


class _Search:
    """That of one run."""

    def __init__(self, job: Job, state: TrainState, waiting: list[EpochMetrics]) -> None:
        self._job, self._waiting = job, waiting
        self._search = open_local_search(job)
        self._rounds = settling.rounds(job.config, len(job.probes))
        fresh = settling.fresh_costs(job.config, len(job.probes))
        costs = fresh if state.costs is None else state.costs
        if (costs.shape, costs.dtype) != (fresh.shape, fresh.dtype):  # compiled code looks no further
            raise CheckpointError(
                f"The checkpoint's costs must be {fresh.dtype} {list(fresh.shape)}, as its configuration says, "
                f"got {costs.dtype} {list(costs.shape)}: use another checkpoint."
            )
        self.state = replace(state, costs=costs)

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            self._epoch()

    def _epoch(self) -> None:
        before = self.state
        assert before.costs is not None
        epoch, gates, costs = before.epoch + 1, before.logits.argmax(axis=1), before.costs.copy()
        words = settling.draw(self._job.config.seed, epoch, self._rounds)
        self._search.search(gates, costs, words, settling.costs_rise(epoch, self._rounds))
        logits = settling.chosen(before.logits, gates)
        self.state = replace(before, logits=logits, epoch=epoch, costs=costs)
        self._waiting.append(EpochMetrics(epoch, math.nan))

    def drain(self) -> list[EpochMetrics]:
        drained, self._waiting = self._waiting, []
        return drained

    def evaluate(self) -> Evaluation:
        wrong = self._search.wrong(self.state.logits.argmax(axis=1))
        count = int(wrong.sum())
        of_probes = wrong.reshape(*wrong.shape[:2], len(self._job.probes), -1)
        return Evaluation(count, count, self._job.values, int(of_probes.any(axis=(0, 1, 3)).sum()))
