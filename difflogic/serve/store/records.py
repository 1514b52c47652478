"""Rows of the store's tables, read and changed: what jobs and leases share."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from difflogic.serve.store.database import Database
from difflogic.serve.store.files import JobFolder, job_folder
from difflogic.serve.store.jobs import JobRecord, UnknownJobError

COLUMNS = tuple(each.name for each in fields(JobRecord))
JSON_COLUMNS = ("config", "options", "result")
PLAIN_COLUMNS = tuple(name for name in COLUMNS if name not in JSON_COLUMNS)
BOOLEANS = ("until_solved",)
"""Columns that SQLite keeps as 0 and 1."""
SELECTED = ", ".join(COLUMNS)


class Records:
    """A store's folder and database. `clock` gives seconds since 1970."""

    def __init__(self, folder: Path, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.database = database
        self.clock = clock

    def job_folder(self, job: JobRecord | str) -> JobFolder:
        """Where a job's files are, with restarts those of its attempt. Raises UnknownJobError where this is no id."""
        if isinstance(job, str):
            return job_folder(self.folder, job)
        return job_folder(self.folder, job.id, job.attempt)

    def close(self) -> None:
        """Close this thread's connection."""
        self.database.close()

    def _now(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="seconds")


def find(connection: sqlite3.Connection, job: str, owner: str | None = None) -> sqlite3.Row:
    """The row of a job. Raises UnknownJobError where there is none, or it is not `owner`'s (None: anybody's)."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
    # A job of somebody else looks exactly like one that does not exist, so that ids cannot be probed.
    if row is None or owner not in (None, row["owner"]):
        raise UnknownJobError(f"There is no job {job!r}.")
    return row


def change(connection: sqlite3.Connection, job: str, **values: Any) -> JobRecord:
    """Set columns of a job, as its next version."""
    # Every change of a row goes through here, so that none is without a version, and no listener misses it.
    values["version"] = tick(connection)
    names = ", ".join(f"{name} = :{name}" for name in values)
    connection.execute(f"UPDATE jobs SET {names} WHERE id = :of", values | {"of": job})
    return job_of(find(connection, job))


def tick(connection: sqlite3.Connection) -> int:
    """The version of a change that is about to be made."""
    return int(connection.execute("UPDATE clock SET version = version + 1 RETURNING version").fetchone()[0])


def job_of(row: sqlite3.Row) -> JobRecord:
    """A row of the table `jobs` as a JobRecord."""
    values = {name: row[name] for name in COLUMNS} | {name: bool(row[name]) for name in BOOLEANS}
    return JobRecord(**values | {name: None if row[name] is None else json.loads(row[name]) for name in JSON_COLUMNS})


def engines_of(row: sqlite3.Row) -> tuple[str, ...]:
    """What a row of the table `workers` offers."""
    return tuple(row["engines"].split(",")) if row["engines"] else ()


# A page lists 50 jobs, each with some kilobytes of configuration that lie in the table as JSON. They go into the answer
# as they are: nothing is parsed only to be encoded again.
def text_of(row: sqlite3.Row) -> str:
    """A row of the table `jobs` as JSON, without reading what is JSON already."""
    plain = _ENCODE({name: row[name] for name in PLAIN_COLUMNS} | {name: bool(row[name]) for name in BOOLEANS})
    return "".join((plain[:-1], *(f', "{name}": {row[name] or "null"}' for name in JSON_COLUMNS), "}"))


_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
