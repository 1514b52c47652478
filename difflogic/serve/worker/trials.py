"""One try at a trial of a sweep: a training, of which a result is kept that is compared with others'.

result  {"status": "paused", "models": 1, "solved": 0, "wrong": 12.0, "done": 112, ...}: an Outcome of the sweep's
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from difflogic.config.policy import any_config
from difflogic.devices.open import Placement
from difflogic.engine.api import Engine
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.lease import Lease
from difflogic.serve.worker.observer import ServiceObserver
from difflogic.serve.worker.training import TrainingOutcome, clear_unsaved, open_run, persistent
from difflogic.sweeps import trial
from difflogic.sweeps.trial import PAUSED, Outcome
from difflogic.train.replica import Replica
from difflogic.train.run_request import is_in
from difflogic.train.signals import Stop

if TYPE_CHECKING:  # half of what it loads is for agents alone
    from difflogic.policies.member import Member


class TrialObserver(ServiceObserver):
    """The observer of a trial, of automata or of agents, which it ends when the trial is to be looked at."""

    def __init__(self, lease: Lease, engine: Engine, stopping: Callable[[], bool]) -> None:
        super().__init__(lease, engine, stopping)
        self.stop = self._look = Stop(self._end)
        self._until = lease.job.options["until"]

    def judged(self, members: Sequence[Replica] | Sequence[Member]) -> None:
        """A trial keeps no history of its gates: there are many of them, and most are looked at as a row."""

    def saved(self, epoch: int) -> None:
        super().saved(epoch)
        if self._until is not None and epoch >= self._until:
            self._look.ask(PAUSED)

    def wants_pictures(self) -> bool:
        return False


def train(store: Store, job: JobRecord, placement: Placement, observer: TrialObserver) -> TrainingOutcome:
    """Train a trial in its folder, from where it is. Raises what `Trainer.run` raises."""
    config, within = any_config(job.config or {}), job.asked.within
    used = None if within is None else replace(within, used=job.trained_s)
    request = replace(job.asked, preset=None, config=config, within=used)
    path = store.job_folder(job).whole

    def outcome() -> TrainingOutcome:
        if not is_in(path):
            clear_unsaved(path)
        began = time.monotonic()
        made: Outcome = trial.train(request, path, placement, observer)
        made = replace(made, seconds=round(time.monotonic() - began, 3))
        progress: dict[str, Any] = {"progress": made.done, "saved_progress": made.done}
        if made.status == "interrupted":
            return TrainingOutcome(True, progress)
        return TrainingOutcome(False, progress | {"result": asdict(made)})

    return persistent(observer, lambda: open_run(store, job), outcome)
