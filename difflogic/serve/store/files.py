"""Find, move and protect the files of a store. Every path of a job is derived from a validated id."""

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
"""Suffixes of the files that SQLite creates next to the database."""
JOBS = "jobs"
WORKERS = "workers"
SWEEP_PAGE = "sweep.html"
"""Name of the page with a sweep's table and drawing, in the folder `JobFolder.files`."""
LOST = "lost+found"
"""Name of the folder for files without a record, from which no command deletes anything."""
DELETED = "deleted"
"""Name of the folder to which a job's folder is moved before its files are deleted; a crash may leave files there."""
FOLDERS = {JOBS, WORKERS, LOST, DELETED}
OURS = FOLDERS | {"token", "machine.json"}
"""Names of the store's files and folders, except for the database files, whose names begin with `store.`."""


@dataclass(frozen=True)
class JobFolder:
    """Folder `DIR/jobs/<id>` of a job, with its record (see `difflogic.serve.store.job_file`)."""

    path: Path
    attempt: int = 0
    """Number of the attempt to which the paths refer, for a training with restarts; otherwise 0."""
    is_sweep: bool = False

    @property
    def whole(self) -> Path:
        """Folder of the complete training: a run folder, or the parent folder of all attempts or trials."""
        return self.path / "run"

    def keep(self, contents: Iterable[tuple[str, str | bytes]]) -> None:
        """Write files, given as pairs of name and contents, to the folder `files`. Raises OSError."""
        self.files.mkdir(parents=True, exist_ok=True)
        for name, content in contents:
            write_atomically(self.files / name, content if isinstance(content, bytes) else content.encode())

    @property
    def run(self) -> Path:
        """Run folder of the training, of the current attempt, or of a sweep's best trial."""
        if self.is_sweep:
            return self.whole / "best"
        return self.whole / f"attempt-{self.attempt}" if self.attempt else self.whole

    @property
    def log(self) -> Path:
        """Log file with the newest output of the job's workers."""
        return self.path / "log.txt"

    @property
    def frame(self) -> Path:
        """File with the latest state frame (see `difflogic.serve.worker.observer`)."""
        return self._beside / "frame.json"

    @property
    def gates(self) -> Path:
        """File with the history of gates (see `difflogic.serve.worker.observer`)."""
        return self._beside / "gates.jsonl"

    @property
    def _beside(self) -> Path:
        """Folder for files about a run that are not in its run folder."""
        return self.path / f"attempt-{self.attempt}" if self.attempt else self.path

    @property
    def files(self) -> Path:
        """Folder of drawings, pages and results of post-processing."""
        return self.path / "files"


def job_folder(store: Path, job: str, attempt: int = 0, is_sweep: bool = False) -> JobFolder:
    """Return the folder of a job. Raises UnknownJobError if `job` is not a valid id."""
    # Ids come from clients and become part of a path: only 16 characters of the alphabet are allowed.
    if not ID.fullmatch(job):
        raise UnknownJobError(f"Expected a job id of 16 characters, a to z and 2 to 7, got {job!r}.")
    return JobFolder(store / JOBS / job, attempt, is_sweep)


def put_aside(store: Path, path: Path, name: str | None = None) -> Path:
    """Move `path` to lost+found, under its name or `name`; a number is added if the name is taken. Raises OSError."""
    lost = store / LOST
    lost.mkdir(mode=0o700, exist_ok=True)
    names = (lost / f"{name or path.name}{mark}" for mark in ("", *(f".{number}" for number in range(1, 100_000))))
    return path.rename(next(free for free in names if not os.path.lexists(free)))


def throw_away(store: Path, job: str) -> None:
    """Move a job's folder, if it exists, to DELETED, within the transaction that deletes the job. Raises OSError."""
    # Deleting takes a while. If the process ends meanwhile, the remaining files are in DELETED. A folder in JOBS is
    # thus never deleted merely because it has no row.
    (store / DELETED).mkdir(mode=0o700, exist_ok=True)
    place = store / DELETED / job
    if os.path.lexists(place):
        put_aside(store, place)
    with suppress(FileNotFoundError):
        (store / JOBS / job).rename(place)


def take_back(store: Path, job: str) -> None:
    """Move a job's folder from DELETED to JOBS after a failed deletion. Raises OSError."""
    with suppress(FileNotFoundError):
        (store / DELETED / job).rename(store / JOBS / job)


def empty(store: Path, job: str) -> None:
    """Delete a job's files from DELETED. Raises OSError."""
    with suppress(FileNotFoundError):
        shutil.rmtree(store / DELETED / job)


def check_kinds(store: Path) -> None:
    """Raise StoreError if one of the store's paths has an unexpected type, such as a link instead of a file."""
    for path in sorted(store.iterdir()) if store.is_dir() else ():
        # The token may be a symbolic link, such as to a mounted secret.
        if not _is_ours(path) or path.name == "token":
            continue
        mode, is_folder = path.lstat().st_mode, path.name in FOLDERS
        if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(mode):
            kinds = {stat.S_ISLNK: "a symbolic link", stat.S_ISDIR: "a folder", stat.S_ISREG: "a file"}
            kind = next((words for is_so, words in kinds.items() if is_so(mode)), "neither a file nor a folder")
            raise StoreError(
                f"{path} is {kind}, but a store expects a {'folder' if is_folder else 'file'} there: move it elsewhere."
            )


def _is_ours(path: Path) -> bool:
    return path.name.startswith("store.") or path.name in OURS


def make_private(store: Path) -> None:
    """Remove other users' access to the store: folders get mode 0700, files 0600. Raises OSError."""
    if os.name != "posix":
        return
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    ours = [path for path in store.iterdir() if _is_ours(path)]
    # A folder that also contains other files, such as a home, keeps its mode; only the store's files become private.
    if len(ours) == len(list(store.iterdir())):
        _close(store)
    for path in ours:
        # A folder that is already private is not searched, as it may contain many files.
        if _close(path) and path.is_dir():
            for inner in path.rglob("*"):
                _close(inner)


def _close(path: Path) -> bool:
    """Remove other users' access to `path`; return False if they had no access."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # such as SQLite's journal in another process that creates the store
        return False
    if stat.S_ISLNK(mode) or mode & 0o077 == 0:
        return False
    path.chmod(0o700 if stat.S_ISDIR(mode) else 0o600)
    return True
