"""A sweep, in a process of its own. Its folder is the job's run folder, and resumes by itself, whatever ended it.

    result  {"metric": "tts", "failed": 0, "best": {"trial": 3, "value": 1.25, "values": {"optimizer.lr": 0.1}}}

The table and the drawing are written while it goes on, to `sweep.html` among the job's files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from difflogic.errors import StoreError
from difflogic.serve.store.files import SWEEP_PAGE
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import say
from difflogic.serve.worker.training import clear_unsaved
from difflogic.sweeps import Spec, Sweep, SweepObserver, Trial, html, resume_sweep
from difflogic.sweeps import sweep as begin
from difflogic.sweeps.spec import NAME
from difflogic.system import files
from difflogic.system.processor import cores

SHARE = 0.05
"""The part of the time that writing the page may take."""

Tell = Callable[[dict[str, Any]], None]


def sweep(store: Store, job: JobRecord, tell: Tell) -> dict[str, Any]:
    """Train a job's trials, one after another, from where they are; returns its result. Raises what `sweep` raises."""
    folder = store.job_folder(job)
    observer = _Teller(folder.files, tell)
    # Each trial has the device, and all processors, as a training has.
    os.environ.setdefault("NUMBA_NUM_THREADS", str(cores()))
    how: dict[str, Any] = {"devices": ["reference" if job.engine == "reference" else job.device or "cpu"], "workers": 1}
    if (folder.whole / NAME).is_file():
        done = resume_sweep(folder.whole, observer=observer, **how)
    else:
        clear_unsaved(folder.whole)
        done = begin(Spec.of(**job.config or {}), out=folder.whole, observer=observer, **how)
    if done.interrupted is not None:
        raise StoreError(f"The sweep was interrupted: {done.interrupted}.")
    observer.draw(done)
    return result_of(done)


def result_of(done: Sweep) -> dict[str, Any]:
    """What came of a sweep, so far."""
    best = done.best
    found = None if best is None else {"trial": best.number, "value": best.value, "values": dict(best.values)}
    failed = sum(each.status == "failed" for each in done.trials)
    return {"metric": done.spec.metric, "failed": failed, "best": found}


class _Teller(SweepObserver):
    def __init__(self, folder: Path, tell: Tell) -> None:
        self._folder, self._tell = folder, tell
        self._trials: list[Trial] = []
        self._drawn_until = 0.0

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        self._spec, self._path = described, path
        say(f"{known} of {described.most} trials are known")

    def ended(self, trial: Trial, done: int, most: int) -> None:
        self._trials.append(trial)
        value = "" if trial.value is None else f", {self._spec.metric} {trial.value:.4g}"
        say(f"trial {trial.number} is {trial.status}{value}")
        so_far = Sweep(self._path, self._spec, self._trials)
        self._tell({"progress": done, "saved_progress": done, "result": result_of(so_far)})
        if time.monotonic() >= self._drawn_until:
            self.draw(so_far)

    def noticed(self, text: str) -> None:
        say(text)

    def draw(self, so_far: Sweep) -> None:
        """Write the page; it is not written again before that is worth its time."""
        begun = time.monotonic()
        self._folder.mkdir(parents=True, exist_ok=True)
        files.write_atomically(self._folder / SWEEP_PAGE, html(so_far, is_alone=True).encode())
        ended = time.monotonic()
        self._drawn_until = ended + (ended - begun) / SHARE
