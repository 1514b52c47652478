"""Samplers of the values of trials: all points of a grid, or values chosen by Optuna.

Optuna receives results in the order of trials and each trial has its own random seed, so a sweep does not depend on
the number of workers or on interruptions.
"""

import importlib.util
import itertools
import json
import math
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflogic.errors import MissingPackagesError
from difflogic.sweeps.axes import SEED, Axis
from difflogic.sweeps.spec import REDUCTION, Spec

if TYPE_CHECKING:
    from optuna import Study, Trial

DATABASE = "study.db"
Values = dict[str, Any]
"""Mapping from the paths of the axes to the values of a trial."""


class GridSampler:
    """Sampler of all combinations of values in order, in which the last axis changes fastest."""

    def __init__(self, spec: Spec) -> None:
        self._paths = [axis.path for axis in spec.axes]
        self._points = itertools.product(*(axis.values for axis in spec.axes))

    def ask(self, number: int, known: Values | None) -> Values:
        """Return the values of the next trial, number `number`; `known` are its stored values in a resumed sweep."""
        return dict(zip(self._paths, next(self._points), strict=True))

    def is_hopeless(self, number: int, rung: int, value: float | None) -> bool:
        """Return whether to prune trial `number`, whose metric is `value` after rung number `rung` (from 0)."""
        return False

    def tell(self, number: int, value: float | None, status: str) -> None:
        """Receive the metric and status (complete, pruned or failed) of trial `number`, which has ended."""


class OptunaSampler(GridSampler):
    """Sampler with Optuna's TPESampler for method `optuna`, otherwise RandomSampler; `halving` prunes trials."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        """Create an Optuna study in `folder/study.db`, replacing an earlier study."""
        import optuna

        def connected() -> sqlite3.Connection:
            connection = sqlite3.connect(folder / DATABASE, check_same_thread=False)
            # The ten writes per trial are not flushed to disk, since a resumed sweep creates the study again.
            connection.execute("PRAGMA synchronous=OFF")
            return connection

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna, self._spec = optuna, spec
        self._worst = spec.sign * math.inf
        self._trials: dict[int, Trial] = {}
        self._seeds = next((axis.values for axis in spec.axes if axis.path == SEED), ())
        self._space = {axis.path: self._distribution(axis) for axis in spec.searched}
        (folder / DATABASE).unlink(missing_ok=True)
        self._study: Study = optuna.create_study(
            storage=optuna.storages.RDBStorage("sqlite://", {"creator": connected}),
            study_name=folder.name,
            direction="minimize" if spec.sign > 0 else "maximize",
            pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=REDUCTION),
        )

    def ask(self, number: int, known: Values | None) -> Values:
        if known is not None:
            self._study.enqueue_trial({path: _word(known[path]) for path in self._space})
        # The state of a sampler would be lost with the process, so each trial has a new sampler. Its seed contains the
        # trial's number in the lower 20 bits and the sweep's seed above, cut to the 32 bits of NumPy's RandomState.
        samplers, key = self._optuna.samplers, (self._spec.sampler_seed << 20) + number & 0xFFFFFFFF
        is_random = self._spec.method != "optuna"
        self._study.sampler = samplers.RandomSampler(key) if is_random else samplers.TPESampler(seed=key)
        trial = self._trials[number] = self._study.ask(self._space)
        values = {SEED: self._seeds[number % len(self._seeds)]} if self._seeds else {}
        for axis in self._spec.searched:
            word = trial.params[axis.path]
            values[axis.path] = axis.values[[*map(_word, axis.values)].index(word)] if axis.values else word
        return {axis.path: values[axis.path] for axis in self._spec.axes}

    def is_hopeless(self, number: int, rung: int, value: float | None) -> bool:
        trial = self._trials[number]
        trial.report(self._worst if value is None else value, REDUCTION**rung)
        return bool(trial.should_prune())

    def tell(self, number: int, value: float | None, status: str) -> None:
        states, trial = self._optuna.trial.TrialState, self._trials.pop(number)
        if status == "complete":
            self._study.tell(trial, self._worst if value is None else value)
        else:
            self._study.tell(trial, state=states.PRUNED if status == "pruned" else states.FAIL)

    def _distribution(self, axis: Axis) -> Any:
        kinds = self._optuna.distributions
        if axis.values:
            return kinds.CategoricalDistribution([*map(_word, axis.values)])
        if axis.is_whole:
            return kinds.IntDistribution(int(axis.low), int(axis.high), axis.is_log, int(axis.step or 1))
        return kinds.FloatDistribution(axis.low, axis.high, axis.is_log, axis.step)


def _word(value: Any) -> Any:
    """Convert a list to JSON text, since Optuna stores only numbers, text and booleans."""
    return json.dumps(value) if isinstance(value, list | tuple) else value


def check(spec: Spec) -> None:
    """Raise MissingPackagesError if a sweep requires Optuna, which is not installed."""
    if spec.method != "grid" and importlib.util.find_spec("optuna") is None:
        raise MissingPackagesError.of(f"--method {spec.method}", "sweep", "optuna")
