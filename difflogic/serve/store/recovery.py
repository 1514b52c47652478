"""What a store does where its database and the folders of its jobs do not fit.

    no database, but folders        it is made again from the records in them (`job_file`)
    a database of an older day      refused: it knows less than the folders
    a record that is older, or none the database writes it: a process ended between commit and record
    a folder under another name     it gets its own again, as does a run that lies in another job (`folders`)
    what no record explains         it goes to lost+found, and back when a database comes that knows it

Nothing is deleted, but what was being deleted when a process ended. Each record is tried by itself, so that one that is
odd hides no other.
"""

import logging
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from difflogic.errors import StoreError
from difflogic.serve.log import log_event
from difflogic.serve.store import database, folders, job_file
from difflogic.serve.store.files import DELETED, JOBS, LOGS, LOST, STORE, put_aside
from difflogic.serve.store.folders import Folders
from difflogic.serve.store.job_file import JobFile, RecordError
from difflogic.serve.store.jobs import ID, STATUS_AFTER, STATUSES
from difflogic.serve.store.leases import PROGRESS
from difflogic.serve.store.records import insert, is_intact, sign, tick
from difflogic.system.files import sync_folder
from difflogic.system.words import counted

LEAP = 1_000_000_000
"""How far the versions of a rebuilt store are beyond those of its records: nobody has seen a later one."""
UNRECORDED = (*PROGRESS, "vain_tries", "tried_progress", "status", "wanted", "lease", "ended")
"""Columns in which the row of a job that runs is not what its record becomes where the database is made again."""
MOST_NAMED = 5
"""So many things are named in one line."""


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
            count = len(Folders.of(store).by_job)
            raise StoreError(
                f"The database {path} is empty, but there are folders of {counted(count, 'job')}: "
                f"{database.rebuild_advice(store)}"
            )
        _set_aside_logs(store)
        database.create(path)
    else:
        database.check(path)


def _rebuild(store: Path) -> None:
    """Make the database from the records in the folders; one that is there goes to lost+found."""
    found = Folders.of(store)
    records = sorted((record for record, _ in found.by_job.values()), key=lambda each: each.version)
    if newer := [each for each in records if each.schema > database.newest_version()]:
        raise StoreError(
            f"The job {newer[0].id} in {store} was kept by version {newer[0].schema} of the store, this difflogic "
            f"knows {database.newest_version()}: use a newer difflogic."
        )
    _give_numbers(records)
    path, made = store / STORE, (store / STORE).with_suffix(".new")
    made.unlink(missing_ok=True)
    database.create(made)
    with database.sqlite_errors(made, "made"), closing(database.connect(made)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        _replay(connection, records, found)
        connection.execute("UPDATE clock SET made = coalesce((SELECT min(created) FROM jobs), made)")
        statuses = Counter(row["status"] for row in connection.execute("SELECT status FROM jobs"))
        # One file without a log beside it, so that it can be given its name.
        connection.execute("PRAGMA journal_mode = DELETE")
    # Only now: a process that ends before this line leaves the store as it was, and one after it no database.
    old = [put_aside(store, path)] if path.exists() else []
    _set_aside_logs(store)
    made.rename(path)
    sync_folder(store)
    for each in found.others:
        put_aside(store, each)
    _, aside = found.put_in_place(found.by_job)
    _say_rebuilt(store, statuses, _named([*found.others, *aside], found), bool(old))


def _replay(connection: sqlite3.Connection, records: Sequence[JobFile], found: Folders) -> None:
    """Fill an empty database with the rows of records."""
    # A record has the columns of its time: it is inserted into a database of that time, which is then migrated.
    for version in sorted({each.schema for each in records} | {database.newest_version()}):
        database.upgrade(connection, version)
        _insert(connection, [each for each in records if each.schema == version], found)
    # What is over has been so since now: the store that counted for how long is gone.
    connection.execute("UPDATE jobs SET over_at = 0 WHERE ended IS NOT NULL")
    for row in connection.execute("SELECT * FROM jobs").fetchall():
        sign(connection, row)


def _insert(connection: sqlite3.Connection, records: list[JobFile], found: Folders) -> None:
    known = {row["name"] for row in connection.execute("PRAGMA table_info(jobs)")}
    connection.execute("BEGIN IMMEDIATE")
    for record in records:
        connection.execute("SAVEPOINT record")
        try:
            _insert_one(connection, record, known)
        except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError, ValueError) as error:
            connection.execute("ROLLBACK TO record")
            found.leave_out(record.id, str(error))
        connection.execute("RELEASE record")
    connection.execute("COMMIT")


def _insert_one(connection: sqlite3.Connection, record: JobFile, known: set[str]) -> None:
    connection.execute("UPDATE clock SET version = max(version, ?)", (record.version + LEAP,))
    version = tick(connection)
    columns = {name: value for name, value in record.job.items() if name in known}
    left = left_by_its_worker(columns)
    # What differs from the record is written to it when the store is opened.
    recorded = version if left else record.version
    insert(connection, columns | left | {"version": version, "recorded": recorded})
    if (key := record.key) is not None:
        # A client that repeats its request gets the same job, as before.
        values = (columns["owner"], key["key"], key["request"], record.id, key["created"])
        connection.execute("INSERT OR IGNORE INTO idempotency VALUES (?, ?, ?, ?, ?)", values)


def _give_numbers(records: list[JobFile]) -> None:
    """Keep the order of submission; of two jobs from two stores with one number the second becomes the last of all."""
    last, taken = max((each.job["number"] for each in records), default=0), set()
    for record in records:
        if record.job["number"] in taken:
            record.job["number"] = last = last + 1
        taken.add(record.job["number"])


def left_by_its_worker(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of a job that ran: nobody holds it any more, and it goes on, or to what was asked of it."""
    if columns["status"] != "running":
        return {}
    status = STATUS_AFTER[columns["wanted"]]
    ended = datetime.now(UTC).isoformat(timespec="seconds") if status == "cancelled" else None
    # Its lease number grows: a worker that held it is refused, however late it comes.
    return {"status": status, "wanted": None, "lease": columns["lease"] + 1, "ended": ended}


def _set_aside_logs(store: Path) -> None:
    """Logs of a database that is not there: SQLite would take them for those of the next one, or delete them."""
    for ending in LOGS:
        log = store / f"{STORE}{ending}"
        if log.exists():
            put_aside(store, log)


def _say_rebuilt(store: Path, statuses: Counter[str], strange: str, replaced: bool) -> None:
    if not statuses and not strange and not replaced:
        return
    listed = ", ".join(f"{statuses[each]} {each}" for each in STATUSES if statuses[each])
    words = f"The database of {store} was made again from the folders of {counted(statuses.total(), 'job')}"
    words += f" ({listed})" if listed else ""
    words += f"; what has no record that can be used is in {LOST}: {strange}" if strange else ""
    log_event(f"{words}; the old one is in {LOST}." if replaced else f"{words}.", logging.WARNING)


def _named(paths: Sequence[Path], found: Folders) -> str:
    """The names of files and folders, each with what is wrong with its record."""
    odd = found.odd
    texts = (f"{each.name} ({odd[each.name]})" if each.name in odd else each.name for each in paths)
    names = ["".join(letter if letter.isprintable() else "?" for letter in text)[:200] for text in texts]
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else "")


# a store that is opened ------------------------------------------------------------------------------------


def reconcile(store: Path, connection: sqlite3.Connection) -> None:
    """Compare the database with the folders, within a transaction, so that nobody submits meanwhile.

    Raises StoreError where the database is older, before anything was changed; OSError.
    """
    found = Folders.of(store)
    _repair(store, connection, found)
    rows = {row["id"]: row["recorded"] for row in connection.execute("SELECT id, recorded FROM jobs")}
    # A job that the database does not know, and that is no newer than it, was deleted: somebody put its folder back.
    newest = connection.execute("SELECT version FROM clock").fetchone()[0]
    ahead = [job for job, (file, _) in found.by_job.items() if file.version > rows.get(job, newest)]
    if ahead:
        raise StoreError(
            f"The database {store / STORE} is older than the folders of {counted(len(ahead), 'job')}: "
            f"{database.rebuild_advice(store)}"
        )
    back = [job for job in rows.keys() - found.by_job.keys() if folders.back_in_place(store, job)]
    _finish_deletions(store)
    strangers = [path for job, (_, path) in found.by_job.items() if job not in rows]
    # A folder that has a job's name is this job's, also where its record is odd.
    others = [each for each in found.others if not (each.name in rows and each.is_dir())]
    strangers += [each for each in others if not _is_left_of_a_submission(each)]
    for each in strangers:
        put_aside(store, each)
    renamed, aside = found.put_in_place(rows)
    trained = (
        "SELECT id, json_extract(asked, '$.config') AS config FROM jobs "
        "WHERE kind = 'train' AND status != 'running' AND config IS NOT NULL"
    )
    runs = folders.runs_in_place(store, {row["id"]: row["config"] for row in connection.execute(trained)})
    gone = [job for job in rows if not (store / JOBS / job).is_dir()]
    _write_records(store, connection, found, rows)
    count = len(back) + len(renamed)
    words = [f"{counted(count, 'folder')} got the place of the job again"] * bool(count)
    words += [f"{counted(len(runs), 'run')} went back to the job whose it is"] * bool(runs)
    if gone:
        words.append(f"nothing was left of the folder of {', '.join(gone[:MOST_NAMED])}, {len(gone)} in all")
    if moved := [*strangers, *aside]:
        words.append(f"what has no job went to {LOST}: {_named(moved, found)}")
    if words:
        log_event(f"In {store}, {' and '.join(words)}.", logging.WARNING)


def _repair(store: Path, connection: sqlite3.Connection, found: Folders) -> None:
    """Replace rows that their checksum refutes by the records in the folders, and sign those without a checksum.

    Raises StoreError for a damaged row without a record.
    """
    if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        connection.execute("REINDEX")  # a cell and its copy in an index differ
    by_number = {file.job["number"]: file for file, _ in found.by_job.values()}
    suspects: list[tuple[sqlite3.Row, JobFile | None]] = []
    for row in connection.execute("SELECT * FROM jobs"):
        if not is_intact(row):
            file = found.by_job[row["id"]][0] if row["id"] in found.by_job else by_number.get(row["number"])
            suspects.append((row, file))
    recorded = _rows_of([file for _, file in suspects if file is not None], found)
    repaired = []
    for row, file in suspects:
        columns = None if file is None else recorded.get(file.id)
        if row["checksum"] is None and not _is_refuted(row, file, columns):
            sign(connection, row)
            continue
        if columns is None:
            raise StoreError(
                f"The row of the job {row['id']} in {store / STORE} is damaged, and its folder has no record of it: "
                f"{database.rebuild_advice(store)}"
            )
        connection.execute("DELETE FROM jobs WHERE number = ?", (row["number"],))
        version = tick(connection)
        insert(connection, columns | {"version": version, "recorded": version})
        repaired.append(columns["id"])
    if repaired:
        named = ", ".join(repaired[:MOST_NAMED])
        words = f"damaged rows were written again from the folders of {counted(len(repaired), 'job')}: {named}"
        log_event(f"In {store}, {words}.", logging.WARNING)


def _is_refuted(row: sqlite3.Row, file: JobFile | None, columns: dict[str, Any] | None) -> bool:
    """Return whether a row of an older version, without a checksum, is not what its record of the same change says."""
    if row["recorded"] is None or file is None or columns is None:
        return row["recorded"] is None
    # A job that runs is recorded as it was claimed: heartbeats change its row alone.
    of_its_worker = UNRECORDED if row["status"] == "running" else ()
    expected = columns | {name: row[name] for name in of_its_worker}
    return file.version == row["recorded"] and job_file.differs(expected, row)


def _rows_of(records: list[JobFile], found: Folders) -> dict[str, dict[str, Any]]:
    """Return the columns that records have in a database of this version, by the job's id."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.row_factory = sqlite3.Row
        _replay(made, records, found)
        return {row["id"]: dict(row) for row in made.execute("SELECT * FROM jobs")}


def _finish_deletions(store: Path) -> None:
    """Delete what a process left that ended within a deletion."""
    for path in (store / DELETED).iterdir() if (store / DELETED).is_dir() else ():
        if (store / JOBS / path.name).exists():  # its job is there, with another folder
            put_aside(store, path)
        else:
            shutil.rmtree(path)


def _is_left_of_a_submission(path: Path) -> bool:
    """Whether this was the folder of a job that was never acknowledged: then it is removed."""
    if not ID.fullmatch(path.name) or not path.is_dir() or not all(map(job_file.is_leftover, path.iterdir())):
        return False
    for each in path.iterdir():
        each.unlink()
    path.rmdir()
    return True


def _write_records(store: Path, connection: sqlite3.Connection, found: Folders, rows: dict[str, int]) -> None:
    """Write the records that are missing or older, and remove those that were never put in their places."""
    count = 0
    for job, recorded in rows.items():
        file, path = found.by_job.get(job, (None, None))[0], store / JOBS / job
        if file is None or file.version < recorded:
            if (path / job_file.NAME).is_dir():
                put_aside(store, path / job_file.NAME, f"{job}-{job_file.NAME}")
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
            path, file = store / JOBS / row["id"], None
            with suppress(RecordError):
                file = job_file.read(path)
            # A record with a later version is by another server, which made the database again meanwhile.
            if file is None or (file.version <= row["recorded"] and job_file.differs(file.job, row)):
                job_file.prepare(path, connection, row).publish()
                written += 1
    except (sqlite3.Error, OSError) as error:
        log_event("what was in the lost database could not be written to the folders", logging.ERROR, why=str(error))
    saved = counted(written, "record")
    log_event(f"The database of {store} was removed or replaced: {saved} of jobs were saved from it.", logging.ERROR)
