"""`job.json` in a job's folder: what the job is, so that a store whose database is lost can be made again.

    {"form": 1, "schema": 7, "version": 57, "job": {"id": "...", "owner": "ann", ...}, "request": null}

`job` has the columns of the row, but those of a lease, which nobody holds any more when the file is needed; `request`
is the idempotency key under which it came. A change is written in three steps, the second of which decides:

    job.json.57.tmp is written -> the database commits version 57 -> job.json.57.tmp, flushed, becomes job.json

So a full disk refuses the change as a whole, and the file is never newer than the database, unless that is an old copy.
A process that ends before the third step leaves a file that is older: the next one that opens the store writes it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from difflogic.serve.store.jobs import ID, KINDS, STATUSES
from difflogic.system import files

NAME = "job.json"
FORM = 1
JSON_COLUMNS = ("config", "options", "result", "tags")
OF_A_LEASE = {"version", "recorded", "worker", "lease_until", "phase", "epochs_per_s", "watched_until", "waits_for"}
"""Columns that are left out: they hold while a worker has the job, or are made anew."""


@dataclass(frozen=True)
class JobFile:
    """What the file of a job says."""

    version: int
    """The store's version when the job was changed so."""
    schema: int
    """The version of the database that the columns are of."""
    job: dict[str, Any]
    """Columns as the database holds them."""
    request: dict[str, Any] | None

    @property
    def id(self) -> str:
        return str(self.job["id"])


def read(folder: Path) -> JobFile | None:
    """The record of the job whose folder this is; None where there is none that makes sense. Raises OSError."""
    try:
        data = json.loads((folder / NAME).read_bytes())
        job, request = data["job"], data["request"]
        if data["form"] != FORM or not ID.fullmatch(job["id"]) or not isinstance(job["owner"], str):
            return None
        if job["kind"] not in KINDS or job["status"] not in STATUSES or not isinstance(job["number"], int):
            return None
        columns = {name: _stored(name, value) for name, value in job.items()}
        return JobFile(int(data["version"]), int(data["schema"]), columns, None if request is None else dict(request))
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, RecursionError):
        return None


def encoded(connection: sqlite3.Connection, row: sqlite3.Row) -> bytes:
    """A row of the table `jobs` as its file."""
    query = "SELECT key, request, created FROM idempotency WHERE job = ?"
    key = connection.execute(query, (row["id"],)).fetchone()
    job = {name: _readable(name, value) for name, value in dict(row).items() if name not in OF_A_LEASE}
    data = {
        "form": FORM,
        "schema": connection.execute("PRAGMA user_version").fetchone()[0],
        "version": row["recorded"],
        "job": job,
        "request": None if key is None else dict(key),
    }
    return json.dumps(data, ensure_ascii=False, indent=1).encode()


def differs(file: JobFile, row: sqlite3.Row) -> bool:
    """Whether a row says anything else than the record."""
    names = set(row.keys()) - OF_A_LEASE
    return any(_readable(name, file.job.get(name)) != _readable(name, row[name]) for name in names)


def _readable(name: str, value: Any) -> Any:
    """A configuration is an object in the file, for whoever reads it; one that is no JSON stays a text."""
    if name not in JSON_COLUMNS or value is None:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _stored(name: str, value: Any) -> Any:
    """The inverse of `_readable`. Raises TypeError for what the database cannot hold."""
    if name in JSON_COLUMNS and value is not None and not isinstance(value, str):
        return json.dumps(value)
    if not isinstance(value, str | int | float | None):
        raise TypeError(name)
    return value


@dataclass(frozen=True)
class Prepared:
    """A record that lies beside its place, on the disk, until the database has committed the change."""

    job: str
    version: int
    path: Path

    def publish(self, flush: bool = True) -> None:
        """Put it in its place, once it is on the disk. Raises OSError."""
        if flush:
            descriptor = os.open(self.path, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        # The folder is not flushed: should the power fail now, the database, which was, writes the file again.
        self.path.replace(self.path.with_name(NAME))

    def drop(self) -> None:
        """The change was not committed."""
        self.path.unlink(missing_ok=True)
        try:
            self.path.parent.rmdir()  # where it was made for this
        except OSError:
            return


def prepare(folder: Path, connection: sqlite3.Connection, row: sqlite3.Row) -> Prepared:
    """Write the record of a row beside its place in the job's folder, not yet flushed. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    # The version is a part of the name: two processes may be at the same job.
    path = folder / f"{NAME}.{row['recorded']}{files.TEMPORARY}"
    prepared = Prepared(row["id"], row["recorded"], path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # A full disk says so here: the blocks are taken now, whenever they are written.
            files.write_all(descriptor, encoded(connection, row))
        finally:
            os.close(descriptor)
    except OSError:
        prepared.drop()
        raise
    return prepared


def is_leftover(path: Path) -> bool:
    """Whether this is a record that a process left beside its place when it ended."""
    return path.name.startswith(f"{NAME}.") and path.suffix == files.TEMPORARY
