"""Where the files of a store are. Every path of a job is made of an id that was checked."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from difflogic.serve.jobs import ID, UnknownJobError

STORE = "store.sqlite3"
JOBS = "jobs"
WORKERS = "workers"


@dataclass(frozen=True)
class JobFolder:
    """`DIR/jobs/<id>`: made by the worker that first takes the job, or with an upload."""

    path: Path

    @property
    def run(self) -> Path:
        """The run folder, as the trainer writes it."""
        return self.path / "run"

    @property
    def log(self) -> Path:
        """What the workers of this job wrote to standard output and error, the newest part."""
        return self.path / "log.txt"

    @property
    def frame(self) -> Path:
        """The latest state frame: see `difflogic.serve.frames`."""
        return self.path / "frame.json"

    @property
    def gates(self) -> Path:
        """A line for each checkpoint: see `difflogic.serve.gate_history`."""
        return self.path / "gates.jsonl"

    @property
    def files(self) -> Path:
        """Results of a follow-up."""
        return self.path / "files"

    def remove(self) -> None:
        """Delete all of it, if there is anything. Raises OSError."""
        if self.path.exists():
            shutil.rmtree(self.path)


def job_folder(store: Path, job: str) -> JobFolder:
    """Raises UnknownJobError where `job` is no id."""
    if not ID.fullmatch(job):
        raise UnknownJobError(f"There is no job {job!r}: expected an id of 16 characters, a to z and 2 to 7.")
    return JobFolder(store / JOBS / job)
