"""Where the files of a store are. Every path of a job is made of an id that was checked."""

import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from difflogic.errors import StoreError
from difflogic.serve.store.jobs import ID, UnknownJobError
from difflogic.system.files import write_atomically

STORE = "store.sqlite3"
LOGS = ("-wal", "-shm", "-journal")
"""What SQLite adds to the name of the database for files of its own."""
JOBS = "jobs"
WORKERS = "workers"
SWEEP_PAGE = "sweep.html"
"""Among the files of a sweep: its table, and its drawing."""
LOST = "lost+found"
"""Where goes what no record explains. Nothing in it is ever deleted by a command."""
DELETED = "deleted"
"""Where the folder of a job goes while it is deleted: what lies here and has no job is what a crash left of it."""
FOLDERS = {JOBS, WORKERS, LOST, DELETED}
OURS = FOLDERS | {"token", "machine.json"}
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

    def keep(self, made: Iterable[tuple[str, str | bytes]]) -> None:
        """Put files into the job's own folder. Raises OSError."""
        self.files.mkdir(parents=True, exist_ok=True)
        for name, content in made:
            write_atomically(self.files / name, content if isinstance(content, bytes) else content.encode())

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


def job_folder(store: Path, job: str, attempt: int = 0, is_sweep: bool = False) -> JobFolder:
    """Raises UnknownJobError where `job` is no id."""
    # Ids come from outside and become a part of a path: only 16 characters of the alphabet get to the disk.
    if not ID.fullmatch(job):
        raise UnknownJobError(f"There is no job {job!r}: expected an id of 16 characters, a to z and 2 to 7.")
    return JobFolder(store / JOBS / job, attempt, is_sweep)


def put_aside(store: Path, path: Path, name: str | None = None) -> Path:
    """Move a file or folder to lost+found, under its name, or a free one that begins so. Raises OSError."""
    lost = store / LOST
    lost.mkdir(mode=0o700, exist_ok=True)
    free = (lost / f"{name or path.name}{mark}" for mark in ("", *(f".{number}" for number in range(1, 100_000))))
    return path.rename(next(each for each in free if not os.path.lexists(each)))


def throw_away(store: Path, job: str) -> None:
    """Take the folder of a job, if it has one, out of the jobs: in the transaction that deletes it. Raises OSError."""
    # Deleting takes a while. If the process ends meanwhile, the place says what is left: a folder among the jobs is
    # never deleted for want of a row.
    (store / DELETED).mkdir(mode=0o700, exist_ok=True)
    place = store / DELETED / job
    if os.path.lexists(place):
        put_aside(store, place)
    with suppress(FileNotFoundError):
        (store / JOBS / job).rename(place)


def take_back(store: Path, job: str) -> None:
    """The transaction that deletes a job has failed. Raises OSError."""
    with suppress(FileNotFoundError):
        (store / DELETED / job).rename(store / JOBS / job)


def empty(store: Path, job: str) -> None:
    """Delete what was thrown away. Raises OSError."""
    with suppress(FileNotFoundError):
        shutil.rmtree(store / DELETED / job)


def check_kinds(store: Path) -> None:
    """Raises StoreError where something that a store has is there, but of another kind: a link, say."""
    for path in sorted(store.iterdir()) if store.is_dir() else ():
        # A token may be a link: whoever runs services keeps secrets elsewhere.
        if not _is_ours(path) or path.name == "token":
            continue
        mode, is_folder = path.lstat().st_mode, path.name in FOLDERS
        if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(mode):
            kinds = {stat.S_ISLNK: "a symbolic link", stat.S_ISDIR: "a folder", stat.S_ISREG: "a file"}
            kind = next((words for is_so, words in kinds.items() if is_so(mode)), "neither a file nor a folder")
            raise StoreError(
                f"{path} is {kind}, but a store has a {'folder' if is_folder else 'file'} of that name: move it away, "
                "or put what belongs there in its place."
            )


def _is_ours(path: Path) -> bool:
    return path.name.startswith("store.") or path.name in OURS


def make_private(store: Path) -> None:
    """Let nobody else read the store: folders 0700, files 0600, whatever they were before. Raises OSError."""
    if os.name != "posix":
        return
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    ours = [each for each in store.iterdir() if _is_ours(each)]
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
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # SQLite's journal, say, of another process that makes the store
        return False
    if stat.S_ISLNK(mode) or mode & 0o077 == 0:
        return False
    path.chmod(0o700 if stat.S_ISDIR(mode) else 0o600)
    return True
