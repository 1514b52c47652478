"""Sweeps of tiny runs, trained in this process."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from difflogic.devices.open import place
from difflogic.errors import DifflogicError
from difflogic.sweeps import table, trial
from difflogic.sweeps.course import Course, Sweep, SweepObserver, opened
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.trial import PAUSED, Outcome, Rung, folder_of
from difflogic.train.observer import Observer
from difflogic.train.signals import Stop
from tests.train.tiny import tiny_config


class _Until(Observer):
    """Ends a trial where it is to be looked at."""

    def __init__(self, until: int | None) -> None:
        self.stop = Stop()
        self._until = until

    def saved(self, epoch: int) -> None:
        if self._until is not None and epoch >= self._until:
            self.stop.ask(PAUSED)

    def wants_pictures(self) -> bool:
        return False


class Here:
    """Trains a submitted rung on the reference engine when the sweep waits for results: the first one, or the last.

    Stops the sweep before it trains more than `most`.
    """

    size = 1

    def __init__(self, last_first: bool = False, most: float = math.inf) -> None:
        self.last_first, self.most, self.stop = last_first, most, Stop()
        self.trained: list[tuple[int, int | None]] = []
        self.put: list[int] = []
        self._waiting: list[Rung] = []

    def submit(self, rung: Rung) -> None:
        self._waiting.append(rung)

    def ended(self, seconds: float) -> Sequence[tuple[Rung, Outcome]]:
        rung = self._waiting.pop(-1 if self.last_first else 0)
        if len(self.trained) >= self.most:
            self.stop.ask("enough")
            return []
        self.trained.append((rung.trial, rung.until))
        return [(rung, self._train(rung))]

    def _train(self, rung: Rung) -> Outcome:
        observer, folder = _Until(rung.until), self.folder / folder_of(rung.trial)
        try:
            request = replace(rung.spec.request, preset=None, config=rung.spec.configured(rung.values))
            return trial.train(request, folder, place("reference"), observer)
        except DifflogicError as error:
            return Outcome("failed", error=str(error))

    def put_away(self, number: int) -> None:
        self.put.append(number)


def described(over: dict[str, Any], **how: Any) -> Spec:
    return Spec.of(**{"config": tiny_config(), "over": over, "metric": "hard_loss"} | how)


def swept(folder: Path, spec: Spec | None, trials: int | None = None, here: Here | None = None) -> tuple[Sweep, Here]:
    here = here or Here()
    here.folder = folder
    with opened(spec, folder, trials) as (found, out):
        done = Course(found, out, here, SweepObserver()).go(here.stop)
        table.write(done)
    return done, here


def untimed(done: Sweep) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in table.trial_rows(done)]
