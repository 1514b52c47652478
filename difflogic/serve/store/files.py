"""Where the files of a store are. Every path of a job is made of an id that was checked."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from difflogic.serve.store.jobs import ID, UnknownJobError

STORE = "store.sqlite3"
JOBS = "jobs"
WORKERS = "workers"


@dataclass(frozen=True)
class JobFolder:
    """`DIR/jobs/<id>`: made by the worker that first takes the job, or with an upload."""

    path: Path
    attempt: int = 0
    """The attempt of a training with restarts that is looked at."""

    @property
    def whole(self) -> Path:
        """What the trainer writes: a run folder, or with restarts a folder of one for each attempt."""
        return self.path / "run"

    @property
    def run(self) -> Path:
        """The run folder."""
        return self.whole / f"attempt-{self.attempt}" if self.attempt else self.whole

    @property
    def log(self) -> Path:
        """What the workers of this job wrote to standard output and error, the newest part."""
        return self.path / "log.txt"

    @property
    def frame(self) -> Path:
        """The latest state frame: see `difflogic.serve.worker.observer`."""
        return self._beside / "frame.json"

    @property
    def gates(self) -> Path:
        """A line for each checkpoint: see `difflogic.serve.worker.observer`."""
        return self._beside / "gates.jsonl"

    @property
    def _beside(self) -> Path:
        """The folder beside the run folder, for what belongs to it."""
        return self.path / f"attempt-{self.attempt}" if self.attempt else self.path

    @property
    def files(self) -> Path:
        """Results of a follow-up."""
        return self.path / "files"

    def remove(self) -> None:
        """Delete all of it, if there is anything. Raises OSError."""
        # A job that never ran has no folder.
        if self.path.exists():
            shutil.rmtree(self.path)


def job_folder(store: Path, job: str, attempt: int = 0) -> JobFolder:
    """Raises UnknownJobError where `job` is no id."""
    # Ids come from outside, and become a part of a path: what is not 16 characters of the alphabet never gets to the
    # disk.
    if not ID.fullmatch(job):
        raise UnknownJobError(f"There is no job {job!r}: expected an id of 16 characters, a to z and 2 to 7.")
    return JobFolder(store / JOBS / job, attempt)
