"""Run a sweep as a job, in a separate process; its trials are queued jobs for the workers of all devices.

The sweep's folder is the job's run folder. An interrupted sweep continues in this folder.

    result  {"metric": "tts", "failed": 0, "best": {"trial": 3, "value": 1.25, "values": {"optimizer.lr": 0.1}},
             "solved": 5, "ended": 8, "nearest": {"wrong": 96, "values": {"optimizer.lr": 0.2}}}

While the sweep runs, the job's files `sweep.html` and `sweep.json` are updated. The page contains a drawing of all
trials, the JSON file a row for each trial, with the trial's curve and the last image of its circuit.
"""

import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from difflogic.errors import RunFolderError
from difflogic.runs import jsonl
from difflogic.runs.journal import JSONL
from difflogic.serve.store.files import SWEEP_PAGE
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import say
from difflogic.serve.worker.training import clear_unsaved, open_run
from difflogic.serve.worker.trial_jobs import FRAME, TrialJobs
from difflogic.sweeps import Spec, Sweep, SweepObserver, Trial, html, table
from difflogic.sweeps.course import Course, opened
from difflogic.sweeps.spec import NAME
from difflogic.system import files
from difflogic.train.signals import Stop

SWEEP_ROWS = "sweep.json"
MOST_CURVES, MOST_POINTS = 200, 40
"""Maximum number of trials with a curve and an image, and maximum number of points per curve."""
SHARE = 0.05
"""Maximum share of the time that is spent on writing the page."""

Report = Callable[[dict[str, Any]], None]


def sweep(store: Store, job: JobRecord, report: Report) -> dict[str, Any]:
    """Run or continue the sweep of a job, and return the job's result. Raises the errors of `opened`."""
    folder = store.job_folder(job)
    is_new = not (folder.whole / NAME).is_file()
    if is_new:
        clear_unsaved(folder.whole)
    observer = _Reporter(folder.files, report)
    with opened(Spec.of(**job.config or {}) if is_new else None, folder.whole) as (described, out):
        trials = TrialJobs(store, out, job.id, job.engine, job.owner, job.priority)
        done = Course(described, out, trials, observer).go(Stop())
        table.write(done)
    observer.draw(done)
    return result_of(done)


def result_of(done: Sweep) -> dict[str, Any]:
    """Return the current `result` of a sweep, as in the module docstring."""
    best = done.best
    unsolved = [trial for trial in done.trials if trial.status == "complete" and not trial.outcome.solved]
    near = min(unsolved, key=lambda trial: trial.outcome.wrong or 0, default=None)
    wrong = None if near is None else near.outcome.wrong
    return {
        "metric": done.spec.metric,
        "failed": sum(trial.status == "failed" for trial in done.trials),
        "best": None if best is None else {"trial": best.number, "value": best.value, "values": dict(best.values)},
        "solved": sum(trial.outcome.solved > 0 for trial in done.trials),
        "ended": len(done.trials),
        "nearest": {"wrong": wrong, "values": dict(near.values)} if near is not None and wrong else None,
    }


def _course(trial: Path) -> dict[str, Any]:
    """Return the wrong cells per epoch of the last attempt in the folder `trial`, and the last image of its circuit."""
    rows, image = [], None
    with suppress(RunFolderError):  # a trial may have failed because its folder is damaged
        rows = json.loads(jsonl.thinned(open_run(trial) / JSONL, MOST_POINTS))
    with suppress(FileNotFoundError):  # agents have no state frames
        frame = json.loads(trial.with_suffix(FRAME).read_text(encoding="utf-8"))
        height, width, channels = shape = [frame[name] for name in ("height", "width", "visible")]
        # The visible channels come first; base64 has four characters for 24 bits.
        bits = frame["tiles"]["bits"][: 4 * math.ceil(height * width * channels / 24)]
        image = dict(zip(("height", "width", "channels"), shape, strict=True)) | {"bits": bits}
    return {"curve": [row["hard_loss"] for row in rows if row.get("hard_loss") is not None], "image": image}


class _Reporter(SweepObserver):
    def __init__(self, folder: Path, report: Report) -> None:
        self._folder, self._report = folder, report
        self._trials: list[Trial] = []
        self._courses: dict[int, dict[str, Any]] = {}
        self._drawn_until = 0.0

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        self._spec, self._path = described, path
        say(f"{known} of {described.most} trials already have a result")

    def ended(self, trial: Trial, done: int, most: int) -> None:
        self._trials.append(trial)
        value = "" if trial.value is None else f", {self._spec.metric} {trial.value:.4g}"
        say(f"trial {trial.number} is {trial.status}{value}")
        so_far = Sweep(self._path, self._spec, self._trials)
        self._report({"progress": done, "saved_progress": done, "result": result_of(so_far)})
        if time.monotonic() >= self._drawn_until:
            self.draw(so_far)

    def noticed(self, text: str) -> None:
        say(text)

    def draw(self, so_far: Sweep) -> None:
        """Write the page and the rows, and schedule the next update in proportion to the time that this took."""
        started = time.monotonic()
        self._folder.mkdir(parents=True, exist_ok=True)
        files.write_atomically(self._folder / SWEEP_PAGE, html(so_far, is_alone=True).encode())
        for trial in so_far.trials[:MOST_CURVES]:
            if trial.number not in self._courses:
                self._courses[trial.number] = _course(so_far.path / trial.folder)
        nothing: dict[str, Any] = {"curve": [], "image": None}
        rows = [row | self._courses.get(row["trial"], nothing) for row in table.trial_rows(so_far)]
        files.write_atomically(self._folder / SWEEP_ROWS, json.dumps({"trials": rows}).encode())
        ended = time.monotonic()
        self._drawn_until = ended + (ended - started) / SHARE
