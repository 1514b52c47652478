"""A copy of a live store in one tar file: while jobs are submitted and trained, and nothing waits for it.

    store.sqlite3        as it was at the beginning; running jobs wait in it, workers and sessions are left out
    jobs/<id>/...        each job's files, checkpoints before metrics, so that none is ahead of its rows

Unpacked into an empty folder it is a store again. Tokens are not in it.
"""

import io
import os
import sqlite3
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

from difflogic.errors import StoreError
from difflogic.serve.store import job_file
from difflogic.serve.store.files import JOBS, STORE
from difflogic.serve.store.leases import UNLEASED
from difflogic.serve.store.records import change
from difflogic.serve.store.recovery import left_by_its_worker
from difflogic.serve.store.store import Store
from difflogic.system.files import TEMPORARY, Output

SHRINKS = ("log.txt",)
"""Files that may be cut while they are read."""
LEFT_OUT = (".lock", "frame.json", job_file.NAME)


def back_up(store: Store, out: Output) -> int:
    """Write the copy to `out`, compressed where it ends in `.gz`. Returns how many jobs.

    Nobody else may read it: the jobs of all owners are in it. Raises UsageError and DifflogicError.
    """
    try:
        with out.open(private=True) as file:
            # The database comes before the files: a row must not speak of a checkpoint that is not in the archive.
            database, jobs = _copy_store(store)
            with tarfile.open(fileobj=file, mode="w|gz" if out.path.suffix == ".gz" else "w|") as archive:
                _add(archive, STORE, io.BytesIO(database), len(database), time.time())
                for job, record in jobs.items():
                    _add(archive, f"{JOBS}/{job}/{job_file.NAME}", io.BytesIO(record), len(record), time.time())
                    _add_job(archive, store.job_folder(job).path, f"{JOBS}/{job}")
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"Cannot write the backup {out}: {error}.") from error
    return len(jobs)


def _copy_store(store: Store) -> tuple[bytes, dict[str, bytes]]:
    """The database of this moment, as it should be when it is unpacked; also its jobs and their records."""
    # In memory: a process that is killed leaves no copy of all jobs anywhere.
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copied:
        with store.database.reading() as connection:
            connection.backup(copied)
        copied.row_factory = sqlite3.Row
        # Workers and sessions belong to this machine; a job that ran waits, unless someone asked for something else.
        copied.execute("DELETE FROM workers")
        copied.execute("DELETE FROM sessions")
        for row in copied.execute("SELECT * FROM jobs WHERE status = 'running'").fetchall():
            change(copied, row["id"], **UNLEASED | left_by_its_worker(dict(row)))
        # Not the records that are on the disk, which may know more than the copy: it would be refused as an old one.
        rows = copied.execute("SELECT * FROM jobs ORDER BY number").fetchall()
        return copied.serialize(), {row["id"]: job_file.encoded(copied, row) for row in rows}


def _add_job(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    for path in _files(folder):
        try:
            file = path.open("rb")
        except FileNotFoundError:  # replaced or deleted since
            continue
        with file:
            status = os.fstat(file.fileno())
            # A tar has the size before the content. An open file only grows: what it gains meanwhile is left out.
            source: IO[bytes] = file
            size = status.st_size
            if path.name in SHRINKS:
                content = file.read()
                size, source = len(content), io.BytesIO(content)
            _add(archive, f"{name}/{path.relative_to(folder)}", source, size, status.st_mtime)


def _add(archive: tarfile.TarFile, name: str, source: IO[bytes], size: int, time_s: float) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, int(time_s), 0o600
    archive.addfile(entry, source)


def _files(folder: Path) -> Iterator[Path]:
    """Checkpoints first: metrics that are read later are not behind them."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    # Files under way, locks and frames are worth nothing to whoever unpacks the archive.
    copied = [path for path in found if path.suffix != TEMPORARY and path.name not in LEFT_OUT]
    yield from sorted(copied, key=lambda path: (path.suffix != ".safetensors", path))
