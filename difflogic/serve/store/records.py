"""Read and change rows of the store's tables, for the modules on jobs and leases."""

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
from difflogic.serve.store.jobs import ASKED, ENDED, DiskFullError, JobRecord, Sort, UnknownJobError

COLUMNS = ("asked", *(field.name for field in fields(JobRecord) if field.name not in ASKED))
LISTED = ", ".join((*COLUMNS, "NULL AS data"))
"""Columns in lists of jobs, without the samples, which may be longer than all other columns together."""
ORDERS: dict[Sort, str] = {
    "newest": "number DESC",
    "name": "lower(name), -number",
    "priority": "-priority, -number",
    "wrong": "coalesce(hard_loss, 9e18), -number",
    "gates": "coalesce(active_gates, 9e18), -number",
}
"""SQL terms that sort lists of jobs; among equal jobs the newest is first, and jobs without a value are last."""
UNSIGNED = ("lease_until", "watched_until", "checksum")
"""Columns that a row's checksum does not cover, which are times that are often extended, and the checksum itself."""
MIN_FREE_BYTES = 16 << 20
"""Minimum number of free bytes on the store's disk for accepting or starting a job."""
FULL = f"The disk of the store is full (less than {MIN_FREE_BYTES >> 20} MiB free), so no jobs are accepted or started."


class Records:
    """Access to a store's folder and database, as a base class of Store."""

    def __init__(self, folder: Path, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.database = database
        self.clock = clock
        """Clock for durations, in seconds since 1970, which cannot be set back."""
        self.wall_clock: Callable[[], float] = time.time
        """System clock, for dates."""

    def job_folder(self, job: JobRecord | str) -> JobFolder:
        """Return a job's folder; an id, unlike a record, selects no attempt or trial. Raises UnknownJobError."""
        if isinstance(job, str):
            return job_folder(self.folder, job)
        return job_folder(self.folder, job.id, job.attempt, job.kind == "sweep")

    def jobs(
        self,
        owner: str | None = None,
        limit: int = 100,
        *,
        status: str | None = None,
        kind: str | None = None,
        source: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        before: int | None = None,
        sort: Sort = "newest",
    ) -> list[JobRecord]:
        """Return at most `limit` jobs without their samples, by default the newest first.

        Filters are `status`, `kind`, `source`, `tag` and `text` in names or ids. `before` is the number of a job: only
        jobs after this job in the order `sort` are returned.
        """
        # A page continues after a certain job, not after a number of jobs, so that new jobs do not shift it.
        place = ORDERS[sort]
        follows = "number < ?" if sort == "newest" else f"({place}) > (SELECT {place} FROM jobs WHERE number = ?)"
        filters = {"owner = ?": owner, "status = ?": status, "kind = ?": kind, "source = ?": source, follows: before}
        # The query has only filters that are not None, so that SQLite can use the index of the owner or the status.
        terms = {term: value for term, value in filters.items() if value is not None}
        if tag is not None:
            terms["EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)"] = tag
        if text:
            # LIKE is not used, because % and _ are wildcards in it.
            terms["instr(lower(name || ' ' || id), lower(?)) > 0"] = text
        where = " AND ".join([*terms, "parent IS NULL"])
        query = f"SELECT {LISTED} FROM jobs WHERE {where} ORDER BY {place} LIMIT ?"
        return [job_of(row) for row in self.database.rows(query, *terms.values(), limit)]

    def close(self) -> None:
        """Close the database connection of the calling thread."""
        self.database.close()

    def is_full(self) -> bool:
        """Return whether the store's disk has too little space to accept or start a job."""
        try:
            return shutil.disk_usage(self.folder).free < MIN_FREE_BYTES
        except OSError:  # the folder is gone, which the next use of the database reports
            return False

    @contextmanager
    def _recorded(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction, and write the records of all changed jobs (see `job_file`)."""
        prepared: list[Prepared] = []
        try:
            with self.database.writing(durable=True) as connection:
                before = connection.execute("SELECT version FROM clock").fetchone()[0]
                yield connection
                changed = "SELECT * FROM jobs WHERE version > ? AND recorded = version"
                for row in connection.execute(changed, (before,)).fetchall():
                    prepared.append(job_file.prepare(self.job_folder(row["id"]).path, connection, row))
        except BaseException as error:
            for record in prepared:
                record.drop()
            if not isinstance(error, OSError):
                raise
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(NO_SPACE) from error
            message = f"Cannot write the folder of a job, so nothing was changed: {error}."
            raise StoreError(message) from error
        # This follows the commit, so that other writers do not wait for the disk.
        for record in prepared:
            self._publish(record)

    def _publish(self, prepared: Prepared) -> None:
        job, version, path = prepared.job, prepared.version, self.job_folder(prepared.job).path
        try:
            prepared.publish()
            # Another process may have changed the job since the commit: the last process writes the newest record.
            with self.database.reading() as connection:
                query = "SELECT * FROM jobs WHERE id = ? AND recorded != ?"
                while (row := connection.execute(query, (job, version)).fetchone()) is not None:
                    job_file.prepare(path, connection, row).publish()
                    version = row["recorded"]
        except (OSError, StoreError) as error:
            # The next process that opens the store writes the record; a deleted job needs none.
            if path.exists():
                log_event("a job's record was not written", logging.ERROR, job=job, why=str(error))

    def change(self, connection: sqlite3.Connection, job: str, **values: Any) -> JobRecord:
        """Set columns of a job, with a new version and a new record; call this within `_recorded`.

        A change of `status` also sets `ended` and `over_at`, the times of the job's end, or clears them.
        """
        version = tick(connection)
        if "status" in values:
            counted = connection.execute("SELECT counted FROM clock").fetchone()[0]
            is_over = values["status"] in ENDED
            values |= {"ended": self._now() if is_over else None, "over_at": counted if is_over else None}
        return _set(connection, job, values | {"version": version, "recorded": version})

    def _now(self) -> str:
        return datetime.fromtimestamp(self.wall_clock(), UTC).isoformat(timespec="seconds")


def find(connection: sqlite3.Connection, job: str, owner: str | None = None) -> sqlite3.Row:
    """Return the row of `job`. Raises UnknownJobError if there is no such job, or if it belongs to another owner."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
    # Another owner's job is reported like a job that does not exist, so that clients cannot test ids.
    if row is None or owner not in (None, row["owner"]):
        raise UnknownJobError(f"Unknown job {job!r}.")
    return row


def progress(connection: sqlite3.Connection, job: str, **values: Any) -> JobRecord:
    """Set columns of a job, with a new version but no new record, for values that can be recomputed."""
    return _set(connection, job, values | {"version": tick(connection)})


def _set(connection: sqlite3.Connection, job: str, values: Mapping[str, Any]) -> JobRecord:
    # Every change of a row goes through this function and gets a version, so that no listener misses it.
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
    """Compute and store the checksum of a row of the table `jobs`."""
    connection.execute("UPDATE jobs SET checksum = ? WHERE number = ?", (checksum(row), row["number"]))


def checksum(row: sqlite3.Row | dict[str, Any], width: int | None = None) -> str:
    """Return `WIDTH:HASH` for the first `width` columns of a row, by default all; newer schemas append columns."""
    names = list(row.keys())[:width]
    cells = [(name, row[name]) for name in names if name not in UNSIGNED]
    return f"{len(names)}:{hashlib.blake2b(repr(cells).encode(), digest_size=16).hexdigest()}"


def is_intact(row: sqlite3.Row) -> bool:
    """Return whether a row matches its checksum."""
    width = str(row["checksum"]).partition(":")[0]
    return width.isdecimal() and checksum(row, int(width)) == row["checksum"]


def tick(connection: sqlite3.Connection) -> int:
    """Increment the store's version and return it."""
    return int(connection.execute("UPDATE clock SET version = version + 1 RETURNING version").fetchone()[0])


def as_stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert fields of a job to columns of `jobs`: ASKED in `asked`, the samples in `data`, and JSON as text."""
    columns = {name: value for name, value in values.items() if name not in ASKED}
    if asked := {name: values[name] for name in ASKED if name in values}:
        options = dict(asked["options"])
        columns |= {"data": options.pop("data", None), "asked": asked | {"options": options}}
    return {name: job_file.stored(name, value) for name, value in columns.items()}


def job_of(row: sqlite3.Row) -> JobRecord:
    """Return the JobRecord for a row of the table `jobs`."""
    values = {name: row[name] for name in COLUMNS}
    values |= {name: None if row[name] is None else json.loads(row[name]) for name in JSON_COLUMNS}
    request = values.pop("asked")
    if row["data"] is not None:
        request["options"]["data"] = row["data"]
    return JobRecord(**request, **values)


def engines_of(row: sqlite3.Row) -> tuple[str, ...]:
    """Return the engines listed in a row of the table `workers`."""
    return tuple(row["engines"].split(",")) if row["engines"] else ()
