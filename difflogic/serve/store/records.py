"""Rows of the store's tables, read and changed: what jobs and leases share."""

import errno
import hashlib
import json
import logging
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from difflogic.errors import StoreError
from difflogic.serve.log import log_event
from difflogic.serve.store import job_file
from difflogic.serve.store.database import NO_SPACE, Database
from difflogic.serve.store.files import JobFolder, job_folder
from difflogic.serve.store.job_file import JSON_COLUMNS, Prepared
from difflogic.serve.store.jobs import ASKED, DiskFullError, JobRecord, Sort, UnknownJobError

COLUMNS = ("asked", *(each.name for each in fields(JobRecord) if each.name not in ASKED))
LISTED = ", ".join((*COLUMNS, "NULL AS data"))
"""Of many jobs at once: without their samples, which may be longer than all else."""
ORDERS: dict[Sort, str] = {
    "newest": "number DESC",
    "name": "lower(name), -number",
    "priority": "-priority, -number",
    "wrong": "coalesce(hard_loss, 9e18), -number",
    "gates": "coalesce(active_gates, 9e18), -number",
}
"""The orders in which jobs are listed, as SQL; of equals the newest is first, and what has no number comes last."""
UNSIGNED = ("lease_until", "watched_until", "checksum")
"""Columns outside a row's checksum: those that are prolonged again and again, and itself."""
MIN_FREE_BYTES = 16 << 20
"""Bytes of the store's disk that must be free before a job is taken."""
FULL = (
    f"The disk of the store is full: less than {MIN_FREE_BYTES >> 20} MiB are free, so no job is accepted or started."
)


class Records:
    """A store's folder and database."""

    def __init__(self, folder: Path, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.database = database
        self.clock = clock
        """Seconds since 1970 that nobody sets back, to measure how long something takes..."""
        self.wall_clock: Callable[[], float] = time.time
        """...and those of the system, to say when it was."""

    def job_folder(self, job: JobRecord | str) -> JobFolder:
        """Where a job's files are, with restarts those of its attempt. Raises UnknownJobError where this is no id."""
        if isinstance(job, str):
            return job_folder(self.folder, job)
        return job_folder(self.folder, job.id, job.attempt, job.kind == "sweep")

    def close(self) -> None:
        """Close this thread's connection."""
        self.database.close()

    def is_full(self) -> bool:
        """Whether the disk has so little room that no job should be taken."""
        try:
            return shutil.disk_usage(self.folder).free < MIN_FREE_BYTES
        except OSError:  # the folder is gone, which whoever uses the database is told
            return False

    @contextmanager
    def _recorded(self) -> Iterator[sqlite3.Connection]:
        """A transaction. The jobs that it changes, with `change`, are written to their folders too: see `job_file`."""
        prepared: list[Prepared] = []
        try:
            with self.database.writing(durable=True) as connection:
                before = connection.execute("SELECT version FROM clock").fetchone()[0]
                yield connection
                changed = "SELECT * FROM jobs WHERE version > ? AND recorded = version"
                for row in connection.execute(changed, (before,)).fetchall():
                    prepared.append(job_file.prepare(self.job_folder(row["id"]).path, connection, row))
        except BaseException as error:
            for each in prepared:
                each.drop()
            if not isinstance(error, OSError):
                raise
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(NO_SPACE) from error
            words = f"The folder of a job cannot be written, and nothing was changed: {error}."
            raise StoreError(words) from error
        # After the commit, so that other writers do not wait until the record is on the disk.
        for each in prepared:
            self._publish(each)

    def _publish(self, prepared: Prepared) -> None:
        job, version, path = prepared.job, prepared.version, self.job_folder(prepared.job).path
        try:
            prepared.publish()
            # Another process may have put a newer record there since the commit: the last one writes the newest.
            with self.database.reading() as connection:
                query = "SELECT * FROM jobs WHERE id = ? AND recorded != ?"
                while (row := connection.execute(query, (job, version)).fetchone()) is not None:
                    job_file.prepare(path, connection, row).publish()
                    version = row["recorded"]
        except (OSError, StoreError) as error:
            # Whoever opens the store next writes the record; a job that was deleted meanwhile needs none.
            if path.exists():
                log_event("a job's record was not written", logging.ERROR, job=job, why=str(error))

    def _now(self) -> str:
        return datetime.fromtimestamp(self.wall_clock(), UTC).isoformat(timespec="seconds")


def find(connection: sqlite3.Connection, job: str, owner: str | None = None) -> sqlite3.Row:
    """The row of a job. Raises UnknownJobError where there is none, or it is not `owner`'s (None: anybody's)."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
    # A job of somebody else looks exactly like one that does not exist, so that ids cannot be probed.
    if row is None or owner not in (None, row["owner"]):
        raise UnknownJobError(f"There is no job {job!r}.")
    return row


def listed(
    connection: sqlite3.Connection,
    owner: str | None,
    limit: int,
    status: str | None = None,
    kind: str | None = None,
    source: str | None = None,
    tag: str | None = None,
    text: str | None = None,
    before: int | None = None,
    sort: Sort = "newest",
) -> list[sqlite3.Row]:
    """The rows of jobs that pass the filters, as `Store.jobs` describes them."""
    # Pages go on after a job and not after so many: jobs that come meanwhile shift none of them.
    place = ORDERS[sort]
    follows = "number < ?" if sort == "newest" else f"({place}) > (SELECT {place} FROM jobs WHERE number = ?)"
    wanted = {"owner = ?": owner, "status = ?": status, "kind = ?": kind, "source = ?": source, follows: before}
    # Only terms that were asked for are in the query, so that SQLite can use the index of the owner or of the status.
    terms = {term: value for term, value in wanted.items() if value is not None}
    if tag is not None:
        terms["EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)"] = tag
    if text:
        # Not LIKE, in which % and _ of the searched text would mean something.
        terms["instr(lower(name || ' ' || id), lower(?)) > 0"] = text
    where = " AND ".join([*terms, "parent IS NULL"])
    query = f"SELECT {LISTED} FROM jobs WHERE {where} ORDER BY {place} LIMIT ?"
    return connection.execute(query, (*terms.values(), limit)).fetchall()


def change(connection: sqlite3.Connection, job: str, **values: Any) -> JobRecord:
    """Set columns of a job, as its next version, of which the job's folder gets a record: within `_recorded`."""
    version = tick(connection)
    if "ended" in values:
        counted = connection.execute("SELECT counted FROM clock").fetchone()[0]
        values["over_at"] = None if values["ended"] is None else counted
    return _set(connection, job, values | {"version": version, "recorded": version})


def progress(connection: sqlite3.Connection, job: str, **values: Any) -> JobRecord:
    """The same without a record, for what would only be found out anew."""
    return _set(connection, job, values | {"version": tick(connection)})


def _set(connection: sqlite3.Connection, job: str, values: Mapping[str, Any]) -> JobRecord:
    # Every change of a row goes through here, so that none is without a version, and no listener misses it.
    names = ", ".join(f"{name} = :{name}" for name in values)
    connection.execute(f"UPDATE jobs SET {names} WHERE id = :of", {**values, "of": job})
    row = find(connection, job)
    sign(connection, row)
    return job_of(row)


def insert(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    """Insert a row into the table `jobs`."""
    names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO jobs ({names}) VALUES ({marks})", dict(values))
    row = find(connection, values["id"])
    if "checksum" in row.keys():  # noqa: SIM118 - a Row iterates over values; rebuilding also fills older schemas
        sign(connection, row)


def sign(connection: sqlite3.Connection, row: sqlite3.Row) -> None:
    """Write the checksum of a row of the table `jobs`."""
    connection.execute("UPDATE jobs SET checksum = ? WHERE number = ?", (checksum(row), row["number"]))


def checksum(row: sqlite3.Row | dict[str, Any], width: int | None = None) -> str:
    """Return the checksum of a row's cells, and their number: `width`, because a later schema appends columns."""
    names = list(row.keys())[:width]
    cells = [(name, row[name]) for name in names if name not in UNSIGNED]
    return f"{len(names)}:{hashlib.blake2b(repr(cells).encode(), digest_size=16).hexdigest()}"


def is_intact(row: sqlite3.Row) -> bool:
    """Return whether a row matches its checksum."""
    width = str(row["checksum"]).partition(":")[0]
    return width.isdecimal() and checksum(row, int(width)) == row["checksum"]


def tick(connection: sqlite3.Connection) -> int:
    """The version of a change that is about to be made."""
    return int(connection.execute("UPDATE clock SET version = version + 1 RETURNING version").fetchone()[0])


def as_stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a job as the table `jobs` holds them: JSON as text, what was asked for in one, but for samples."""
    columns = {name: value for name, value in values.items() if name not in ASKED}
    if asked := {name: values[name] for name in ASKED if name in values}:
        options = dict(asked["options"])
        columns |= {"data": options.pop("data", None), "asked": asked | {"options": options}}
    return {name: job_file.stored(name, value) for name, value in columns.items()}


def job_of(row: sqlite3.Row) -> JobRecord:
    """A row of the table `jobs` as a JobRecord."""
    values = {name: row[name] for name in COLUMNS}
    values |= {name: None if row[name] is None else json.loads(row[name]) for name in JSON_COLUMNS}
    asked = values.pop("asked")
    if row["data"] is not None:
        asked["options"]["data"] = row["data"]
    return JobRecord(**asked, **values)


def engines_of(row: sqlite3.Row) -> tuple[str, ...]:
    """What a row of the table `workers` offers."""
    return tuple(row["engines"].split(",")) if row["engines"] else ()
