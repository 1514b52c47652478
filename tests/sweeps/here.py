"""Sweeps of tiny runs, trained in this process."""

from __future__ import annotations

import math
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from difflogic.sweeps import table, trial
from difflogic.sweeps.course import Course, Sweep, SweepObserver, opened
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.trial import Outcome, Task
from difflogic.train.signals import Stop
from tests.train.tiny import tiny_config


class Here:
    """Trains what is asked for on the reference engine once somebody waits for a result: the first first, or the last.

    Stops the sweep when it is to train more than `most`.
    """

    size = 1

    def __init__(self, last_first: bool = False, most: float = math.inf) -> None:
        self.last_first, self.most, self.stop = last_first, most, Stop()
        self.trained: list[tuple[int, int | None]] = []
        self._waiting: list[tuple[Task, Future[Outcome]]] = []

    def begin(self, folder: Path) -> None:
        self.folder = folder

    def submit(self, task: Task) -> Future[Outcome]:
        future = _Awaited(self)
        self._waiting.append((task, future))
        return future

    def train(self) -> None:
        while self._waiting and not self.stop.reason:
            task, future = self._waiting.pop(-1 if self.last_first else 0)
            if len(self.trained) >= self.most:
                self.stop.ask("enough")
                return
            self.trained.append((task.trial, task.until))
            future.set_result(trial.run(task, self.folder / task.folder, "reference", Stop()))

    def close(self, at_once: bool = False) -> None:
        pass


class _Awaited(Future[Outcome]):
    def __init__(self, here: Here) -> None:
        super().__init__()
        self._here = here

    def result(self, timeout: float | None = None) -> Outcome:
        if not self.done():
            self._here.train()
        return super().result(0)


def described(over: dict[str, Any], **how: Any) -> Spec:
    return Spec.of(**{"config": tiny_config(), "over": over, "metric": "hard_loss"} | how)


def swept(folder: Path, spec: Spec | None, trials: int | None = None, here: Here | None = None) -> tuple[Sweep, Here]:
    """The sweep of a specification, or on from the folder."""
    here = here or Here()
    with opened(spec, folder, trials) as (found, out):
        done = Course(found, out, here, SweepObserver()).go(here.stop)
        table.write(done)
    return done, here


def untimed(done: Sweep) -> list[dict[str, Any]]:
    """The table, without what a clock says."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in table.trial_rows(done)]
