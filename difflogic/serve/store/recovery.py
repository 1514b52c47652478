"""Repair a store whose database and folders of jobs do not match.

    no database, but folders        the database is rebuilt from the records in the folders (`job_file`)
    a copy of an older database     refused: the folders have newer records
    an old or missing record        written from the database: a process ended between commit and record
    a renamed folder                renamed to the id of its job; misplaced runs are moved too (`folders`)
    a folder without a record       moved to lost+found, and back once a database has its job

Only the remains of an unfinished deletion are deleted. Each record is read separately, so that an invalid record does
not prevent the others from being read.
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
"""Number added to the version of each record in a rebuilt store, so that versions exceed all that clients know."""
UNRECORDED = (*PROGRESS, "vain_tries", "tried_progress", "status", "wanted", "lease", "ended")
"""Columns in which a running job's row may differ from the row that is rebuilt from the job's record."""
MOST_NAMED = 5
"""Maximum number of names in one line of the log."""


def has_folders(store: Path) -> bool:
    """Return whether the folder of jobs exists and is not empty."""
    return (store / JOBS).is_dir() and any((store / JOBS).iterdir())


def provide(store: Path, rebuild: bool) -> None:
    """Check, create or rebuild the database; the caller holds the store's lock. Raises StoreError or OSError."""
    path = store / STORE
    if rebuild or (not path.exists() and has_folders(store)):
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
    """Rebuild the database from the records in the folders; an existing database is moved to lost+found."""
    on_disk = Folders.of(store)
    records = sorted((record for record, _ in on_disk.by_job.values()), key=lambda record: record.version)
    if newer := [record for record in records if record.schema > database.newest_version()]:
        raise StoreError(
            f"Expected jobs of store version {database.newest_version()} or older, but the job {newer[0].id} in "
            f"{store} has version {newer[0].schema}: use a newer difflogic."
        )
    _give_numbers(records)
    path, rebuilt = store / STORE, (store / STORE).with_suffix(".new")
    rebuilt.unlink(missing_ok=True)
    database.create(rebuilt)
    with database.sqlite_errors(rebuilt, "made"), closing(database.connect(rebuilt)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        _replay(connection, records, on_disk)
        connection.execute("UPDATE clock SET made = coalesce((SELECT min(created) FROM jobs), made)")
        statuses = Counter(row["status"] for row in connection.execute("SELECT status FROM jobs"))
        # Without a write-ahead log, the database is a single file that can be renamed.
        connection.execute("PRAGMA journal_mode = DELETE")
    # If the process ends before this line, the store is unchanged; after it, the next process rebuilds.
    is_replaced = path.exists()
    if is_replaced:
        put_aside(store, path)
    _set_aside_logs(store)
    rebuilt.rename(path)
    sync_folder(store)
    for other in on_disk.others:
        put_aside(store, other)
    _, aside = on_disk.put_in_place(on_disk.by_job)
    _log_rebuilt(store, statuses, _named([*on_disk.others, *aside], on_disk), is_replaced)


def _replay(connection: sqlite3.Connection, records: Sequence[JobFile], on_disk: Folders) -> None:
    """Insert rows for `records` into an empty database; records that cannot be inserted become invalid in `on_disk`."""
    # A record has the columns of its schema: it is inserted into a database with that schema, which is then migrated.
    for version in sorted({record.schema for record in records} | {database.newest_version()}):
        database.upgrade(connection, version)
        _insert(connection, [record for record in records if record.schema == version], on_disk)
    # The age of jobs that are over begins at 0, since the database that measured it is lost.
    connection.execute("UPDATE jobs SET over_at = 0 WHERE ended IS NOT NULL")
    for row in connection.execute("SELECT * FROM jobs").fetchall():
        sign(connection, row)


def _insert(connection: sqlite3.Connection, records: list[JobFile], on_disk: Folders) -> None:
    names = {row["name"] for row in connection.execute("PRAGMA table_info(jobs)")}
    connection.execute("BEGIN IMMEDIATE")
    for record in records:
        connection.execute("SAVEPOINT record")
        try:
            _insert_one(connection, record, names)
        except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError, ValueError) as error:
            connection.execute("ROLLBACK TO record")
            on_disk.leave_out(record.id, str(error))
        connection.execute("RELEASE record")
    connection.execute("COMMIT")


def _insert_one(connection: sqlite3.Connection, record: JobFile, names: set[str]) -> None:
    connection.execute("UPDATE clock SET version = max(version, ?)", (record.version + LEAP,))
    version = tick(connection)
    columns = {name: value for name, value in record.job.items() if name in names}
    changes = left_by_its_worker(columns)
    # The changes are written to the record when the store is opened.
    recorded = version if changes else record.version
    insert(connection, columns | changes | {"version": version, "recorded": recorded})
    if (key := record.key) is not None:
        # A client that repeats its request gets the same job, as before.
        values = (columns["owner"], key["key"], key["request"], record.id, key["created"])
        connection.execute("INSERT OR IGNORE INTO idempotency VALUES (?, ?, ?, ?, ?)", values)


def _give_numbers(records: list[JobFile]) -> None:
    """Make job numbers unique; a later job with a used number gets the next number after the highest."""
    last, taken = max((record.job["number"] for record in records), default=0), set()
    for record in records:
        if record.job["number"] in taken:
            record.job["number"] = last = last + 1
        taken.add(record.job["number"])


def left_by_its_worker(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns to change in a job whose worker is lost: a running job is queued, cancelled or paused."""
    if columns["status"] != "running":
        return {}
    status = STATUS_AFTER[columns["wanted"]]
    ended = datetime.now(UTC).isoformat(timespec="seconds") if status == "cancelled" else None
    # The lease number grows, so that late writes of the old worker are refused.
    return {"status": status, "wanted": None, "lease": columns["lease"] + 1, "ended": ended}


def _set_aside_logs(store: Path) -> None:
    """Move the log files of a missing database to lost+found, since SQLite would apply them to the next one."""
    for ending in LOGS:
        log = store / f"{STORE}{ending}"
        if log.exists():
            put_aside(store, log)


def _log_rebuilt(store: Path, statuses: Counter[str], strange: str, is_replaced: bool) -> None:
    if not statuses and not strange and not is_replaced:
        return
    jobs = ", ".join(f"{statuses[status]} {status}" for status in STATUSES if statuses[status])
    text = f"The database of {store} was rebuilt from the folders of {counted(statuses.total(), 'job')}"
    text += f" ({jobs})" if jobs else ""
    text += f"; what has no valid record is in {LOST}: {strange}" if strange else ""
    log_event(f"{text}; the old one is in {LOST}." if is_replaced else f"{text}.", logging.WARNING)


def _named(paths: Sequence[Path], on_disk: Folders) -> str:
    """Return the names of `paths` as text for the log, with the errors of their records."""
    odd = on_disk.odd
    texts = (f"{path.name} ({odd[path.name]})" if path.name in odd else path.name for path in paths)
    names = ["".join(letter if letter.isprintable() else "?" for letter in text)[:200] for text in texts]
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else "")


# opening a store -------------------------------------------------------------------------------------------


def reconcile(store: Path, connection: sqlite3.Connection) -> None:
    """Repair differences between database and folders, in a transaction, so that no job is submitted meanwhile.

    Raises OSError, and StoreError without any change if the database is older than the folders.
    """
    on_disk = Folders.of(store)
    _repair(store, connection, on_disk)
    rows = {row["id"]: row["recorded"] for row in connection.execute("SELECT id, recorded FROM jobs")}
    # A folder without a row, with a record not newer than the database, was restored by a user after a deletion.
    newest = connection.execute("SELECT version FROM clock").fetchone()[0]
    ahead = [job for job, (file, _) in on_disk.by_job.items() if file.version > rows.get(job, newest)]
    if ahead:
        raise StoreError(
            f"The database {store / STORE} is older than the folders of {counted(len(ahead), 'job')}: "
            f"{database.rebuild_advice(store)}"
        )
    back = [job for job in rows.keys() - on_disk.by_job.keys() if folders.back_in_place(store, job)]
    _finish_deletions(store)
    strangers = [path for job, (_, path) in on_disk.by_job.items() if job not in rows]
    # A folder named after a job belongs to this job, even if the record is invalid.
    others = [path for path in on_disk.others if not (path.name in rows and path.is_dir())]
    strangers += [path for path in others if not _is_left_of_a_submission(path)]
    for path in strangers:
        put_aside(store, path)
    renamed, aside = on_disk.put_in_place(rows)
    trained = (
        "SELECT id, json_extract(asked, '$.config') AS config FROM jobs "
        "WHERE kind = 'train' AND status != 'running' AND config IS NOT NULL"
    )
    runs = folders.runs_in_place(store, {row["id"]: row["config"] for row in connection.execute(trained)})
    gone = [job for job in rows if not (store / JOBS / job).is_dir()]
    _write_records(store, connection, on_disk, rows)
    count = len(back) + len(renamed)
    actions = [f"{counted(count, 'folder')} moved back into place"] * bool(count)
    actions += [f"{counted(len(runs), 'run')} moved back to the right job"] * bool(runs)
    if gone:
        actions.append(f"no folder was found for {', '.join(gone[:MOST_NAMED])}, {len(gone)} in total")
    if moved := [*strangers, *aside]:
        actions.append(f"files without a job moved to {LOST}: {_named(moved, on_disk)}")
    if actions:
        log_event(f"In {store}, {' and '.join(actions)}.", logging.WARNING)


def _repair(store: Path, connection: sqlite3.Connection, on_disk: Folders) -> None:
    """Replace rows that have a wrong checksum with the records in the folders, and sign rows without a checksum.

    Raises StoreError for a damaged row that has no record.
    """
    if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        connection.execute("REINDEX")  # repairs an index that does not match its table
    by_number = {file.job["number"]: file for file, _ in on_disk.by_job.values()}
    suspects: list[tuple[sqlite3.Row, JobFile | None]] = []
    for row in connection.execute("SELECT * FROM jobs"):
        if not is_intact(row):
            file = on_disk.by_job[row["id"]][0] if row["id"] in on_disk.by_job else by_number.get(row["number"])
            suspects.append((row, file))
    recorded = _rows_of([file for _, file in suspects if file is not None], on_disk)
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
        text = f"damaged rows were written again from the folders of {counted(len(repaired), 'job')}: {named}"
        log_event(f"In {store}, {text}.", logging.WARNING)


def _is_refuted(row: sqlite3.Row, file: JobFile | None, columns: dict[str, Any] | None) -> bool:
    """Return whether a row without a checksum, as in older stores, lacks `recorded` or differs from that record."""
    if row["recorded"] is None or file is None or columns is None:
        return row["recorded"] is None
    # Heartbeats only change a job's row, not its record.
    of_its_worker = UNRECORDED if row["status"] == "running" else ()
    expected = columns | {name: row[name] for name in of_its_worker}
    return file.version == row["recorded"] and job_file.differs(expected, row)


def _rows_of(records: list[JobFile], on_disk: Folders) -> dict[str, dict[str, Any]]:
    """Return the columns of each record, migrated to the newest schema, by job id."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        _replay(connection, records, on_disk)
        return {row["id"]: dict(row) for row in connection.execute("SELECT * FROM jobs")}


def _finish_deletions(store: Path) -> None:
    """Delete the files that remain of unfinished deletions."""
    for path in (store / DELETED).iterdir() if (store / DELETED).is_dir() else ():
        if (store / JOBS / path.name).exists():  # the job still exists, with another folder
            put_aside(store, path)
        else:
            shutil.rmtree(path)


def _is_left_of_a_submission(path: Path) -> bool:
    """Remove the folder of a submission that was not committed, and return True; return False for other paths."""
    if not ID.fullmatch(path.name) or not path.is_dir() or not all(map(job_file.is_leftover, path.iterdir())):
        return False
    for leftover in path.iterdir():
        leftover.unlink()
    path.rmdir()
    return True


def _write_records(store: Path, connection: sqlite3.Connection, on_disk: Folders, rows: dict[str, int]) -> None:
    """Write missing or outdated records to the folders, and remove temporary files of records."""
    count = 0
    for job, recorded in rows.items():
        file, path = on_disk.by_job.get(job, (None, None))[0], store / JOBS / job
        if file is None or file.version < recorded:
            if (path / job_file.NAME).is_dir():
                put_aside(store, path / job_file.NAME, f"{job}-{job_file.NAME}")
            row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
            job_file.prepare(path, connection, row).publish(flush=False)
            count += 1
        for entry in path.iterdir():
            if job_file.is_leftover(entry):
                entry.unlink(missing_ok=True)
    # One sync flushes all records: after an update there may be many thousand.
    if count and hasattr(os, "sync"):
        os.sync()


def rescue(store: Path, connection: sqlite3.Connection) -> None:
    """Write the records of all jobs that an open connection can still read from a removed database."""
    written = 0
    try:
        for row in connection.execute("SELECT * FROM jobs").fetchall():
            path, file = store / JOBS / row["id"], None
            with suppress(RecordError):
                file = job_file.read(path)
            # A newer record was written by another server, which has rebuilt the database in the meantime.
            if file is None or (file.version <= row["recorded"] and job_file.differs(file.job, row)):
                job_file.prepare(path, connection, row).publish()
                written += 1
    except (sqlite3.Error, OSError) as error:
        log_event("what was in the lost database could not be written to the folders", logging.ERROR, why=str(error))
    saved = counted(written, "record")
    log_event(f"The database of {store} was removed or replaced: saved {saved} from it to the folders.", logging.ERROR)
