"""Local search over the hard circuit, in the form of an engine's model: see `difflogic.engine.search`.

The result is the same for every engine, since the search computes with integers on the CPU. An epoch of search counts
as an epoch, but does not change keys, moments or the number of optimiser steps. It has no soft loss, and its batch is
the evaluation grids.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from difflogic.devices.open import open_local_search
from difflogic.engine import search
from difflogic.engine.api import EngineInfo, EpochMetrics, Evaluation
from difflogic.engine.job import Job, TrainState
from difflogic.engine.search import Array, LocalSearch, Words
from difflogic.errors import CheckpointError


class LocalSearchModel:
    """Local search as a `difflogic.engine.api.Model`; `info` describes the engine of the preceding training."""

    def __init__(self, jobs: Sequence[Job], states: Sequence[TrainState], info: EngineInfo) -> None:
        """Raise CheckpointError if the search costs in a state do not have the shape and type for its job."""
        self.info = info
        # Training has chosen the wires; the search changes only functions of gates.
        pairs = zip(jobs, states, strict=True)
        self._jobs = [replace(job, circuit=job.circuit.with_logits(state.logits).chosen) for job, state in pairs]
        self._searches = [open_local_search(job) for job in self._jobs]
        self._states = [replace(state, costs=_costs(job, state)) for job, state in zip(jobs, states, strict=True)]
        self._fetched = states[0].epoch

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            runs = zip(self._jobs, self._searches, self._states, strict=True)
            self._states = [_searched(*run) for run in runs]

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        # An epoch of search has no metric except its number.
        first, self._fetched = self._fetched + 1, self._states[0].epoch
        return [[EpochMetrics(epoch, math.nan) for epoch in range(first, self._fetched + 1)] for _ in self._jobs]

    def evaluate(self) -> list[Evaluation]:
        return [_evaluation(*run) for run in zip(self._jobs, self._searches, self._states, strict=True)]

    def states(self) -> list[TrainState]:
        return self._states

    def epochs_per_call(self) -> int:
        """Return 1, since an epoch takes as long as a train step."""
        return 1

    def close(self) -> None:
        """Do nothing, as no device memory is used."""


def _costs(job: Job, state: TrainState) -> Words:
    """Return the search costs in `state`, or initial costs if it has none. Raises CheckpointError."""
    fresh = search.fresh_costs(job.config, len(job.probes))
    costs = fresh if state.costs is None else state.costs
    if (costs.shape, costs.dtype) != (fresh.shape, fresh.dtype):  # compiled code does not check costs
        raise CheckpointError(
            f"The checkpoint's costs must be {fresh.dtype} {list(fresh.shape)}, as its configuration says, "
            f"got {costs.dtype} {list(costs.shape)}: use another checkpoint."
        )
    return costs


def _searched(job: Job, local_search: LocalSearch, before: TrainState) -> TrainState:
    """Return the state after one more epoch of search."""
    assert before.costs is not None
    rounds = search.rounds(job.config, len(job.probes))
    # The largest of a gate's sixteen logits defines its function. A change of function swaps two logits, so that
    # training could continue from the state.
    epoch, gates, costs = before.epoch + 1, _functions(job, before), before.costs.copy()
    words = search.draw(job.config.seed, epoch, rounds)
    guide = search.NO_GUIDE
    if rounds == search.ROUNDS:  # with more grids than in a train step, the guide would take longer than the rounds
        guide = search.promising(gates, local_search.slopes(gates, costs))
    local_search.search(gates, costs, words, search.costs_rise(epoch, rounds), guide)
    logits, rows = before.logits.copy(), slice(job.circuit.gates)
    logits[rows] = search.chosen(logits[rows], gates)
    return replace(before, logits=logits, epoch=epoch, costs=costs)


def _functions(job: Job, state: TrainState) -> Array:
    """Return the most probable function of each gate, int64 `[G]`."""
    return np.asarray(state.logits[: job.circuit.gates].argmax(axis=1))


def _evaluation(job: Job, local_search: LocalSearch, state: TrainState) -> Evaluation:
    wrong = local_search.wrong(_functions(job, state))
    count = int(wrong.sum())
    of_probes = wrong.reshape(*wrong.shape[:2], len(job.probes), -1)
    # The batch of a search is the evaluation grids, so both hard losses are the same.
    return Evaluation(count, count, job.values, int(of_probes.any(axis=(0, 1, 3)).sum()))
