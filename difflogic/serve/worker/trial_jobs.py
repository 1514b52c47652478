"""Queue the trials of a sweep as jobs for the workers of this machine or of a cluster.

A trial is a training job whose parent is the sweep. Its run is in the job's folder until the trial is over, and is then
moved to the sweep's folder. After an interruption, the sweep continues with the queued jobs.
"""

import time
from contextlib import suppress
from pathlib import Path

from difflogic.errors import ConfigError
from difflogic.serve.store.jobs import JobRecord, JobSpec
from difflogic.serve.store.store import Store
from difflogic.sweeps.trial import Outcome, Rung, folder_of
from difflogic.system import files

POLL_S = 0.05
FRAME = ".frame.json"
"""Suffix of the file with a trial's last state frame, as in `trials/00003.frame.json`."""


class TrialJobs:
    """Trials of a sweep, trained by the workers of a store."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        sweep: str,
        engine: str = "auto",
        owner: str = "",
        priority: int = 0,
        size: int = 0,
    ) -> None:
        """Manage the trials of the job `sweep` in `folder`; `size` is the minimum of the property `size`."""
        self._store, self._folder, self._sweep, self._size = store, folder, sweep, size
        self._engine, self._owner, self._priority = engine, owner, priority
        self._jobs = {job.options["trial"]: job for job in store.trials(sweep)}
        self._open: dict[int, Rung] = {}
        self._refused: list[tuple[Rung, Outcome]] = []

    @property
    def size(self) -> int:
        """Number of trials that can be trained simultaneously."""
        return max(1, sum(self._engine in worker.engines for worker in self._store.workers()), self._size)

    def submit(self, rung: Rung) -> None:
        """Queue the trial of `rung`, or queue it again if it has completed an earlier rung."""
        job = self._jobs.get(rung.trial)
        if job is None:
            try:
                config = rung.spec.configured(rung.values).to_dict()
            except ConfigError as error:  # values that exclude each other: the trial fails, the sweep continues
                self._refused.append((rung, Outcome("failed", error=str(error))))
                return
            name, request = f"trial {rung.trial} of {rung.spec.base.name}", rung.spec.request.to_dict()
            options = {"trial": rung.trial, "until": rung.until}
            spec = JobSpec(
                "train", name, config, self._engine, request, self._priority, options=options, parent=self._sweep
            )
            job, _ = self._store.submit(self._owner, spec)
        elif job.options["until"] != rung.until:
            job = self._store.train_on(job.id, rung.until)
        self._jobs[rung.trial], self._open[rung.trial] = job, rung

    def ended(self, seconds: float) -> list[tuple[Rung, Outcome]]:
        """Return the rungs that have ended since the last call; wait at most `seconds` for the first one."""
        deadline = time.monotonic() + seconds
        while True:
            finished, self._refused = self._refused, []
            for job in self._store.trials(self._sweep, over=True):
                rung = self._open.get(job.options["trial"])
                if rung is not None and job.options["until"] == rung.until:
                    del self._open[rung.trial]
                    finished.append((rung, _outcome(job)))
            if finished or time.monotonic() >= deadline:
                return finished
            time.sleep(POLL_S)

    def put_away(self, trial: int) -> None:
        """Move the run of a completed trial to the sweep's folder, and delete the trial's job."""
        if (job := self._jobs.pop(trial, None)) is None:
            return
        # The store's record has the number of the last attempt, whose frame is moved.
        source, place = self._store.job_folder(self._store.job(job.id)), self._folder / folder_of(trial)
        if source.whole.exists():  # unless an earlier, killed process has moved it
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                source.frame.replace(place.with_suffix(FRAME))
            files.replace_folder(source.whole, place)
        self._store.delete(job.id)


def _outcome(job: JobRecord) -> Outcome:
    if job.status != "done":
        return Outcome("failed", error=job.reason or f"The trial was {job.status}.", seconds=job.trained_s)
    return Outcome(**job.result or {})
