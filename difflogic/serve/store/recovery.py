"""What a store does where its database and the folders of its jobs do not fit.

    no database, but folders        it is made again from the records in them (`job_file`)
    a database of an older day      refused: it knows less than the folders
    a record that is older, or none the database writes it: a process ended between commit and record
    a folder under another name     it gets its own again
    what no record explains         it goes to lost+found, and back when a database comes that knows it

Nothing is deleted, but what was being deleted when a process ended.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from difflogic.errors import StoreError
from difflogic.serve.log import log_event
from difflogic.serve.store import database, job_file
from difflogic.serve.store.files import JOBS, LOGS, LOST, STORE, JobFolder, put_aside
from difflogic.serve.store.job_file import JobFile
from difflogic.serve.store.jobs import ID, STATUS_AFTER, STATUSES
from difflogic.serve.store.records import insert, tick
from difflogic.system.files import sync_folder

LEAP = 1_000_000_000
"""How far the versions of a rebuilt store are beyond those of its records: nobody has seen a later one."""


def has_folders(store: Path) -> bool:
    """Whether there is anything where the folders of jobs are."""
    return (store / JOBS).is_dir() and any((store / JOBS).iterdir())


def provide(store: Path, wanted: bool) -> None:
    """See that there is a database to open, under the lock of who opens the store. Raises StoreError, OSError."""
    path = store / STORE
    if wanted or (not path.exists() and has_folders(store)):
        _rebuild(store)
    elif database.is_empty(path):
        if has_folders(store):
            count = len(_Folders.of(store).by_job)
            raise StoreError(
                f"The database {path} is empty, but there are folders of {_counted(count, 'job')}: "
                f"{database.rebuild_advice(store)}"
            )
        _set_aside_logs(store)
        database.create(path)
    else:
        database.check(path)


@dataclass
class _Folders:
    """What is found where the folders of jobs are."""

    by_job: dict[str, tuple[JobFile, Path]] = field(default_factory=dict)
    """Records and their folders, by id; a folder of that name goes before a copy under another."""
    others: list[Path] = field(default_factory=list)
    """Whatever has no record, or is the copy of a job that has its folder."""

    @property
    def newest(self) -> int:
        """The version of the newest record."""
        return max((file.version for file, _ in self.by_job.values()), default=0)

    @classmethod
    def of(cls, store: Path) -> _Folders:
        found = cls()
        for path in sorted((store / JOBS).iterdir()):
            record = job_file.read(path)
            if record is None:
                found.others.append(path)
                continue
            other = found.by_job.setdefault(record.id, (record, path))[1]
            if other != path:
                copy = path
                if path.name == record.id:
                    found.by_job[record.id], copy = (record, path), other
                found.others.append(copy)
        return found


def _rebuild(store: Path) -> None:
    """Make the database from the records in the folders; one that is there goes to lost+found."""
    folders = _Folders.of(store)
    records = sorted((record for record, _ in folders.by_job.values()), key=lambda each: each.version)
    if records and (needed := max(each.schema for each in records)) > database.newest_version():
        raise StoreError(
            f"The jobs in {store} were kept by version {needed} of the store, this difflogic knows "
            f"{database.newest_version()}: use a newer difflogic."
        )
    _give_numbers(records)
    path, made = store / STORE, (store / STORE).with_suffix(".new")
    made.unlink(missing_ok=True)
    database.create(made)
    with database.sqlite_errors(made, "made"), closing(database.connect(made)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        # Each record has the columns of its time: it is inserted into a database of that time, and goes on from there
        # as that one would have done.
        for version in sorted({each.schema for each in records} | {database.newest_version()}):
            database.upgrade(connection, version)
            _insert(connection, [each for each in records if each.schema == version])
        statuses = Counter(row["status"] for row in connection.execute("SELECT status FROM jobs"))
        # One file without a log beside it, so that it can be given its name.
        connection.execute("PRAGMA journal_mode = DELETE")
    # Only now: a process that ends before this line leaves the store as it was, and one that ends after it a store
    # without a database, which the next one makes again.
    old = [put_aside(store, path)] if path.exists() else []
    _set_aside_logs(store)
    made.rename(path)
    sync_folder(store)
    moved = [put_aside(store, each) for each in folders.others]
    for job, (_, folder) in folders.by_job.items():
        folder.rename(folder.with_name(job))
    _say_rebuilt(store, statuses, len(moved), bool(old))


def _insert(connection: sqlite3.Connection, records: list[JobFile]) -> None:
    known = {row["name"] for row in connection.execute("PRAGMA table_info(jobs)")}
    connection.execute("BEGIN IMMEDIATE")
    for record in records:
        connection.execute("UPDATE clock SET version = max(version, ?)", (record.version + LEAP,))
        version = tick(connection)
        columns = {name: value for name, value in record.job.items() if name in known}
        left = _left_by_its_worker(columns)
        # What differs from the record is written to it when the store is opened.
        recorded = version if left else record.version
        insert(connection, columns | left | {"version": version, "recorded": recorded})
        if record.request is not None:
            # A client that repeats its request gets the same job, as before.
            values = (columns["owner"], *(record.request.get(name) for name in ("key", "request")), record.id)
            made = record.request.get("created")
            connection.execute("INSERT OR IGNORE INTO idempotency VALUES (?, ?, ?, ?, ?)", (*values, made))
    connection.execute("COMMIT")


def _give_numbers(records: list[JobFile]) -> None:
    """Keep the order of submission; of two jobs from two stores with one number the second becomes the last of all."""
    last, taken = max((each.job["number"] for each in records), default=0), set()
    for record in records:
        if record.job["number"] in taken:
            record.job["number"] = last = last + 1
        taken.add(record.job["number"])


def _left_by_its_worker(columns: dict[str, Any]) -> dict[str, Any]:
    """What becomes of a job that ran: nobody holds it any more, and it goes on, or to what was asked of it."""
    if columns["status"] != "running":
        return {}
    status = STATUS_AFTER[columns.get("wanted")]
    ended = datetime.now(UTC).isoformat(timespec="seconds") if status == "cancelled" else None
    # Its lease number grows: a worker that held it is refused, however late it comes.
    return {"status": status, "wanted": None, "lease": int(columns.get("lease") or 0) + 1, "ended": ended}


def _set_aside_logs(store: Path) -> None:
    """Logs of a database that is not there: SQLite would take them for those of the next one, or delete them."""
    for ending in LOGS:
        log = store / f"{STORE}{ending}"
        if log.exists():
            put_aside(store, log)


def _say_rebuilt(store: Path, statuses: Counter[str], strange: int, replaced: bool) -> None:
    if not statuses and not strange and not replaced:
        return
    listed = ", ".join(f"{statuses[each]} {each}" for each in STATUSES if statuses[each])
    words = f"The database of {store} was made again from the folders of {_counted(statuses.total(), 'job')}"
    words += f" ({listed})" if listed else ""
    words += f"; {_counted(strange, 'other')} {'is' if strange == 1 else 'are'} in {LOST}" if strange else ""
    log_event(f"{words}; the old one is in {LOST}." if replaced else f"{words}.", logging.WARNING)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


# a store that is opened ------------------------------------------------------------------------------------


def reconcile(store: Path, connection: sqlite3.Connection) -> None:
    """Compare the database with the folders, within a transaction, so that nobody submits meanwhile.

    Raises StoreError where the database is older, before anything was changed; OSError.
    """
    folders = _Folders.of(store)
    rows = {row["id"]: row["recorded"] for row in connection.execute("SELECT id, recorded FROM jobs")}
    deleted = {row["id"] for row in connection.execute("SELECT id FROM deletions")} - rows.keys()
    known = rows | dict.fromkeys(deleted, folders.newest)
    ahead = [job for job, (file, _) in folders.by_job.items() if file.version > known.get(job, -1)]
    if ahead:
        raise StoreError(
            f"The database {store / STORE} is older than the folders of {_counted(len(ahead), 'job')}: "
            f"{database.rebuild_advice(store)}"
        )
    for job in deleted:  # a process ended between the two halves of a deletion
        JobFolder(store / JOBS / job).remove()
    moved = [put_aside(store, path) for path in folders.others if _is_strange(path, known.keys())]
    renamed = sum(_is_back(store, job) for job in rows.keys() - folders.by_job.keys())
    for job, (_, path) in folders.by_job.items():
        if path.name != job:
            # The job's own folder has no record then, else it would be the one that counts.
            own = path.with_name(job)
            unwanted = own if job in rows else path
            moved += [put_aside(store, unwanted)] if unwanted.exists() else []
            if unwanted == own:
                path.rename(own)
                renamed += 1
    _write_records(store, connection, folders, rows)
    if moved or renamed:
        words = [f"{_counted(renamed, 'folder')} got the place of the job again"] * bool(renamed)
        words += [f"{_counted(len(moved), 'file or folder')} without a job went to {LOST}"] * bool(moved)
        log_event(f"In {store}, {' and '.join(words)}.", logging.WARNING)


def _is_back(store: Path, job: str) -> bool:
    """Whether the folder of a job came back from lost+found, with the database that knows it."""
    path, lost = store / JOBS / job, store / LOST / job
    if path.exists() or not lost.is_dir():
        return False
    lost.rename(path)
    return True


def _is_strange(path: Path, known: Collection[str]) -> bool:
    """Whether nobody knows what this is; what is left of a submission that was never acknowledged is removed."""
    if path.name in known or not path.exists():
        return False
    if ID.fullmatch(path.name) and path.is_dir() and all(job_file.is_leftover(each) for each in path.iterdir()):
        for each in path.iterdir():
            each.unlink()
        path.rmdir()
        return False
    return True


def _write_records(store: Path, connection: sqlite3.Connection, folders: _Folders, rows: dict[str, int]) -> None:
    """Write the records that are missing or older, and remove those that were never put in their places."""
    count = 0
    for job, recorded in rows.items():
        file, path = folders.by_job.get(job, (None, None))[0], store / JOBS / job
        if file is None or file.version < recorded:
            row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
            job_file.prepare(path, connection, row).publish(flush=False)
            count += 1
        for each in path.iterdir():
            if job_file.is_leftover(each):
                each.unlink(missing_ok=True)
    # All at once: after an update each of many thousand jobs may have got one.
    if count and hasattr(os, "sync"):
        os.sync()


def rescue(store: Path, connection: sqlite3.Connection) -> None:
    """Write to the folders what an open connection still sees of a database that was removed from its place."""
    written = 0
    try:
        for row in connection.execute("SELECT * FROM jobs").fetchall():
            path = store / JOBS / row["id"]
            file = job_file.read(path)
            # A record with a later version is by another server, which made the database again meanwhile.
            if file is None or (file.version <= row["recorded"] and job_file.differs(file, row)):
                job_file.prepare(path, connection, row).publish()
                written += 1
    except (sqlite3.Error, OSError) as error:
        log_event("what was in the lost database could not be written to the folders", logging.ERROR, why=str(error))
    saved = _counted(written, "record")
    log_event(f"The database of {store} was removed or replaced: {saved} of jobs were saved from it.", logging.ERROR)
