"""Write a live store to one tar file, without blocking submissions and trainings.

    store.sqlite3        the database at the start of the backup: running jobs are queued, workers and sessions removed
    jobs/<id>/...        each job's files, checkpoints first, so that metrics reach at least to the checkpoint

Unpack the backup into an empty folder to restore the store. Tokens are not part of a backup.
"""

import io
import os
import sqlite3
import tarfile
import time
from contextlib import closing
from pathlib import Path
from typing import IO

from difflogic.errors import StoreError
from difflogic.serve.store import job_file
from difflogic.serve.store.files import JOBS, STORE
from difflogic.serve.store.leases import UNLEASED
from difflogic.serve.store.recovery import left_by_its_worker
from difflogic.serve.store.store import Store
from difflogic.system.files import TEMPORARY, Output

SHRINKS = ("log.txt",)
"""Names of files that may become shorter while they are read."""
LEFT_OUT = (".lock", "frame.json", job_file.NAME)


def back_up(store: Store, out: Output) -> int:
    """Write the backup to `out`, compressed if `out` ends in `.gz`, and return the number of jobs.

    Other users cannot read the file, since it contains the jobs of all owners. Raises UsageError or DifflogicError.
    """
    try:
        with out.open(private=True) as file:
            # The database comes before the files: a row must not refer to a checkpoint that is not in the archive.
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
    """Return the contents of the database, without workers and sessions, and the record of each job by id."""
    # The copy is in memory: a killed process leaves no copy on the disk.
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        with store.database.reading() as connection:
            connection.backup(copy)
        copy.row_factory = sqlite3.Row
        # Workers and sessions belong to this machine. A running job is queued, or gets the requested status.
        copy.execute("DELETE FROM workers")
        copy.execute("DELETE FROM sessions")
        for row in copy.execute("SELECT * FROM jobs WHERE status = 'running'").fetchall():
            store.change(copy, row["id"], **UNLEASED | left_by_its_worker(dict(row)))
        # The records on the disk may be newer than this copy; `reconcile` would then refuse it as an old database.
        rows = copy.execute("SELECT * FROM jobs ORDER BY number").fetchall()
        return copy.serialize(), {row["id"]: job_file.encoded(copy, row) for row in rows}


def _add_job(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    kept = [path for path in paths if path.suffix != TEMPORARY and path.name not in LEFT_OUT]
    # Checkpoints come first, so that metrics copied afterwards reach at least to the checkpoint.
    for path in sorted(kept, key=lambda path: (path.suffix != ".safetensors", path)):
        try:
            file = path.open("rb")
        except FileNotFoundError:  # replaced or deleted since
            continue
        with file:
            status = os.fstat(file.fileno())
            # A tar archive states the size before the content. Lines that are added to the file meanwhile are left out.
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
