"""Writer of run folders: locked by one process, with complete files and a checkpoint from which a run resumes.

manifest.json  config.toml  request.json        description of the run
target.png                                       target
data.npz                                         samples of a sample-based task
metrics.jsonl  metrics.csv                       one row per epoch and model
checkpoint.safetensors  checkpoint.previous...   latest and previous saved state
best.safetensors                                 best model so far
circuit.json  loss.png  rollout.gif  summary.txt result of the best model
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import filelock

from difflogic.errors import CheckpointError, RunFolderError
from difflogic.runs import checkpoint, manifest
from difflogic.runs.checkpoint import Checkpoint
from difflogic.runs.journal import COLUMNS, Journal, MetricsLine, Rows, read_rows
from difflogic.system import files

LOCK = ".lock"


def default_path(name: str) -> Path:
    """Return the path `runs/<name>-<YYYYmmdd-HHMMSS>`, with a number appended if this path exists."""
    stem = f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    path, number = Path("runs") / stem, 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{stem}-{number}"
    return path


def check_new(path: Path) -> None:
    """Raise RunFolderError unless `path` does not exist or is an empty folder."""
    with _guard(path, "use"):
        if path.exists() and not path.is_dir():
            raise RunFolderError(f"Expected a folder, but {path} is a file: choose another --out.")
        if path.exists() and any(child.name != LOCK for child in path.iterdir()):
            raise RunFolderError(
                f"The folder {path} is not empty: continue its run with --resume {files.quoted(path)}, or choose "
                "another --out."
            )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock an existing folder until the context ends. Raises RunFolderError if another process has locked it."""
    # The operating system releases the lock when a process ends.
    lock = filelock.FileLock(files.inside(path / LOCK, path))  # old versions of filelock follow links
    with _guard(path, "lock"):
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            raise RunFolderError(
                f"The run folder {path} is in use by another process: wait for it to end, or use another folder."
            ) from None
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Return whether the folder cannot be locked, usually since another process has locked it."""
    try:
        with locked(path):
            return False
    except RunFolderError:
        return True


class RunFolder:
    """Locked run folder. All methods raise RunFolderError if a file cannot be written."""

    def __init__(self, path: Path) -> None:
        """Lock an existing folder. Raises RunFolderError if another process has locked it."""
        self.path = path
        self._saved: str | None = None
        self._journal: Journal | None = None
        self._lock = ExitStack()
        self._lock.enter_context(locked(path))

    @classmethod
    def create(
        cls,
        path: Path,
        first: Checkpoint[Any],
        manifest_text: str,
        contents: Mapping[str, bytes] | None = None,
        columns: Sequence[str] = COLUMNS,
    ) -> Self:
        """Create a folder with a checkpoint, empty metrics and `contents` (files by name); undo this on failure."""
        check_new(path)
        existed = path.exists()
        with _guard(path, "create"):
            path.mkdir(parents=True, exist_ok=True)
        folder = cls(path)
        try:
            # Another process may have written to the folder before it was locked.
            check_new(path)
            folder.write(manifest.NAME, manifest_text)
            folder.write("config.toml", first.config.to_toml())
            for name, content in (contents or {}).items():
                folder.write(name, content)
            folder.start_journal(first.seeds, [[] for _ in first.seeds], columns)
            folder.save(first)
        except BaseException:
            # Undo: remove all files and the lock, and also the folder unless it existed before.
            for child in path.iterdir():
                if child.name != LOCK:
                    child.unlink()
            folder.close()
            if not existed:
                shutil.rmtree(path)
            raise
        return folder

    @classmethod
    def reopen(cls, path: Path) -> tuple[Self, Path]:
        """Lock an earlier run's folder and return it with its checkpoint file; `path` is the folder or the file."""
        file = checkpoint.locate(path)
        if file.name not in (checkpoint.NAME, checkpoint.PREVIOUS):
            raise CheckpointError(
                f"{path} is not in a run folder: start a new run from it with --init-from {files.quoted(path)}."
            )
        return cls(file.parent), file

    def promote(self, file: Path) -> None:
        """Make `file`, a current or previous checkpoint, the current checkpoint, and remove temporary files."""
        with _guard(self.path, "write to"):
            # A process that was killed while writing may have left a temporary file.
            for temporary in self.path.glob(f"*{files.TEMPORARY}"):
                temporary.unlink()
            if file.name == checkpoint.PREVIOUS:
                file.replace(self.path / checkpoint.NAME)

    def read_rows(self, seeds: Sequence[int]) -> Rows:
        with _guard(self.path, "read"):
            return read_rows(self.path, seeds)

    def start_journal(
        self, seeds: Sequence[int], rows: Sequence[Sequence[MetricsLine]], columns: Sequence[str] = COLUMNS
    ) -> None:
        """Create the metrics files with the earlier `rows` of each member, and open them for appending."""
        with self._writing("the metrics"):
            self._journal = self._lock.enter_context(closing(Journal(self.path, seeds, rows, columns)))

    @property
    def _rows(self) -> Journal:
        if self._journal is None:
            raise RunFolderError(f"The metrics of {self.path} are not open: call start_journal first.")
        return self._journal

    def append(self, rows: Sequence[Sequence[MetricsLine]]) -> None:
        with self._writing("the metrics"):
            self._rows.append(rows)

    def save(self, state: Checkpoint[Any]) -> None:
        """Flush the metrics to disk, then save a checkpoint, since a run cannot resume without its metrics."""
        with self._writing(checkpoint.NAME):
            self._rows.sync()
            checkpoint.save(self.path, state)
        self._saved = state.progress

    def keep_best(self, best: Checkpoint[Any]) -> None:
        """Save the best circuit; call this before `save` for the same epoch: see `start.resumed`."""
        self.write(checkpoint.BEST, best.encode())

    def drop_best(self) -> None:
        """Remove the file of the best circuit, if it exists."""
        with _guard(self.path, "write to"):
            (self.path / checkpoint.BEST).unlink(missing_ok=True)

    def write(self, name: str, content: str | bytes) -> None:
        with self._writing(name):
            files.write_atomically(self.path / name, content.encode() if isinstance(content, str) else content)

    def close(self) -> None:
        self._lock.close()

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        # If the disk is full, the error names the intact checkpoint and how to continue.
        safe = "" if self._saved is None else f" The checkpoint of {self._saved} is intact:"
        advice = f" free some space, then continue with --resume {files.quoted(self.path)}." if safe else ""
        with _guard(self.path, f"write {name} in", safe + advice):
            yield


@contextmanager
def _guard(path: Path, action: str, advice: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"Cannot {action} the run folder {path}: {error.strerror or error}.{advice}") from error
