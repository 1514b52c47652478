"""Where the files of a store are. Every path of a job is made of an id that was checked."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from difflogic.serve.store import job_file
from difflogic.serve.store.jobs import ID, UnknownJobError

STORE = "store.sqlite3"
LOGS = ("-wal", "-shm", "-journal")
"""What SQLite adds to the name of the database for files of its own."""
JOBS = "jobs"
WORKERS = "workers"
SWEEP_PAGE = "sweep.html"
"""Among the files of a sweep: its table, and its drawing."""
LOST = "lost+found"
"""Where goes what no record explains. Nothing in it is ever deleted by a command."""
OURS = {JOBS, WORKERS, LOST, "token", "machine.json"}
"""What is in the folder of a store, beside the database, whose names begin with `store.`."""


@dataclass(frozen=True)
class JobFolder:
    """`DIR/jobs/<id>`: made with the job, with its record in it (see `difflogic.serve.store.job_file`)."""

    path: Path
    attempt: int = 0
    """The attempt of a training with restarts that is looked at."""
    is_sweep: bool = False

    @property
    def whole(self) -> Path:
        """What is trained: a run folder, with restarts one for each attempt, of a sweep its folder."""
        return self.path / "run"

    @property
    def run(self) -> Path:
        """The run folder, of a sweep that of its best trial."""
        if self.is_sweep:
            return self.whole / "best"
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
        if self.path.exists():
            # The record first: what an error or a crash leaves of the folder must not come back as a job.
            (self.path / job_file.NAME).unlink(missing_ok=True)
            shutil.rmtree(self.path)


def job_folder(store: Path, job: str, attempt: int = 0, is_sweep: bool = False) -> JobFolder:
    """Raises UnknownJobError where `job` is no id."""
    # Ids come from outside, and become a part of a path: what is not 16 characters of the alphabet never gets to the
    # disk.
    if not ID.fullmatch(job):
        raise UnknownJobError(f"There is no job {job!r}: expected an id of 16 characters, a to z and 2 to 7.")
    return JobFolder(store / JOBS / job, attempt, is_sweep)


def put_aside(store: Path, path: Path) -> Path:
    """Move a file or folder to lost+found, under a name that is free there. Raises OSError."""
    lost = store / LOST
    lost.mkdir(mode=0o700, exist_ok=True)
    free = (lost / f"{path.name}{mark}" for mark in ("", *(f".{number}" for number in range(1, 100_000))))
    return path.rename(next(each for each in free if not os.path.lexists(each)))


def make_private(store: Path) -> None:
    """Let nobody else read the store: folders 0700, files 0600, whatever they were before. Raises OSError."""
    if os.name != "posix":
        return
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    ours = [each for each in store.iterdir() if each.name.startswith("store.") or each.name in OURS]
    # A folder that holds other things too, a home say, is left as it is: what is ours in it is closed all the same.
    if len(ours) == len(list(store.iterdir())):
        _close(store)
    for path in ours:
        # Below a folder that was closed already nobody has looked, however many files it has.
        if _close(path) and path.is_dir():
            for inner in path.rglob("*"):
                _close(inner)


def _close(path: Path) -> bool:
    """Take the rights of others from a file or folder; False where they had none."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) or mode & 0o077 == 0:
        return False
    path.chmod(0o700 if stat.S_ISDIR(mode) else 0o600)
    return True
