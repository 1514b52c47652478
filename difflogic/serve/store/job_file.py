"""Records of jobs in `job.json` in each job's folder, from which a lost database can be rebuilt.

    {"form": 1, "schema": 7, "version": 57, "job": {"id": "...", "owner": "ann", ...}, "key": null}

`job` has the row's columns except OF_A_LEASE, whose values are no longer valid when the record is read; `key` is the
idempotency key of the job's request. A change is written in three steps, and is valid from the second step:

    job.json.57-9f04c1d2.tmp is written -> the database commits version 57 -> it becomes job.json

If the disk is full, nothing is changed. The file is never newer than the database, unless the database is an old copy.
If a process ends before the third step, the next process that opens the store writes the newer file.
"""

import errno
import json
import math
import os
import secrets
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from difflogic.config.request import TrainRequest
from difflogic.errors import UsageError
from difflogic.serve.store.jobs import ID, JobRecord
from difflogic.system import files

NAME = "job.json"
FORM = 1
MOST = 1 << 53
"""Exclusive upper bound of absolute values in a record, since JSON readers represent smaller integers exactly."""
MOST_BYTES = 64 << 20
JSON_COLUMNS = ("asked", "result", "tags")
OF_A_KEY: dict[str, Any] = {"key": str, "request": str, "created": float | int}
OF_A_LEASE = {"version", "over_at", "recorded", "worker", "lease_until", "phase", "progress_per_s", "watched_until",
              "waits_for", "checksum"}  # fmt: skip
"""Columns that are not recorded, since they are valid only under a lease or can be recomputed."""


@dataclass(frozen=True)
class JobFile:
    """Contents of a job's record."""

    version: int
    """Version of the store after the recorded change of the job."""
    schema: int
    """Version of the database schema with the columns in `job`."""
    job: dict[str, Any]
    """Mapping from the job's columns to their values, as in the database."""
    key: dict[str, Any] | None

    @property
    def id(self) -> str:
        return str(self.job["id"])


class RecordError(ValueError):
    """Error for an invalid record; the message is the reason, as a clause."""


def read(folder: Path) -> JobFile | None:
    """Return the record in a job's folder, or None if there is none. Raises RecordError or OSError."""
    text = content(folder / NAME)
    if text is None:
        return None
    try:
        data = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if data["form"] != FORM or not isinstance(data["schema"], int) or data["schema"] < 1:
            raise RecordError(f"its form {data['form']!r} or schema {data['schema']!r} is invalid")
        version, columns, key = data["version"], data["job"], data["key"]
        _check(version, columns, key)
        return JobFile(version, data["schema"], {name: stored(name, value) for name, value in columns.items()}, key)
    except KeyError as error:
        raise RecordError(f"it lacks {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(" ".join(str(error).split())) from error


def content(path: Path) -> bytes | None:
    """Return the contents of a regular file, or None if the file is missing. Raises RecordError or OSError."""
    try:
        # A pipe would block, and a link may lead anywhere.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise RecordError(f"{path.name} is not a regular file") from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        os.close(descriptor)
        raise RecordError(f"{path.name} is not a regular file, or is too large")
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise RecordError(f"{text} is no number")
    return number


def _check(version: Any, columns: dict[str, Any], key: Any) -> None:
    """Raise ValueError, TypeError or KeyError for values that are invalid for a job."""
    unrecorded = dict.fromkeys(("phase", "progress_per_s", "waits_for")) | {"version": version}
    try:
        _model().model_validate(columns | columns["asked"] | unrecorded)
    except ValidationError as error:
        first = error.errors()[0]
        raise RecordError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from error
    try:
        TrainRequest.from_dict(columns["asked"]["request"])
    except UsageError as error:
        raise RecordError(str(error)) from error
    if not ID.fullmatch(columns["id"]):
        raise RecordError(f"{columns['id']!r} is no id")
    for name in ("created", "started", "ended"):
        if columns[name] is not None:
            datetime.fromisoformat(columns[name])
    if key is not None:
        wrong = [name for name, kind in OF_A_KEY.items() if not isinstance(key[name], kind)]
        if wrong:
            raise RecordError(f"its idempotency key has the invalid {wrong[0]} {key[wrong[0]]!r}")
    # The record goes to the database and to clients, which accept neither lone surrogates nor large numbers.
    json.dumps([columns, key], ensure_ascii=False).encode()
    for name, value in {**columns, "version": version}.items():
        if isinstance(value, int | float) and abs(value) >= MOST:
            raise RecordError(f"{name} is {value}")


@cache
def _model() -> type[BaseModel]:
    """Return the Pydantic model of a record, with the fields of a job and the columns that only the store uses."""
    hints = get_type_hints(JobRecord)
    kinds: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(JobRecord)}
    own = {"vain_tries": int, "tried_progress": int, "not_before": float, "lease": int}
    kinds |= {name: (kind, ...) for name, kind in own.items()} | {"data": (str | None, None)}
    return create_model("Record", __config__=ConfigDict(strict=True), **kinds)


def encoded(connection: sqlite3.Connection, row: sqlite3.Row) -> bytes:
    """Return the contents of `job.json` for a row of the table `jobs`."""
    query = "SELECT key, request, created FROM idempotency WHERE job = ?"
    key = connection.execute(query, (row["id"],)).fetchone()
    data = {
        "form": FORM,
        "schema": connection.execute("PRAGMA user_version").fetchone()[0],
        "version": row["recorded"],
        "job": {name: _readable(name, value) for name, value in dict(row).items() if name not in OF_A_LEASE},
        "key": None if key is None else dict(key),
    }
    return json.dumps(data, ensure_ascii=False, indent=1).encode()


def differs(recorded: Mapping[str, Any], row: sqlite3.Row) -> bool:
    """Return whether a row differs from the recorded columns, apart from OF_A_LEASE."""
    names = set(row.keys()) - OF_A_LEASE
    return any(_readable(name, recorded.get(name)) != _readable(name, row[name]) for name in names)


def _readable(name: str, value: Any) -> Any:
    """Return a column's value for the file, with JSON parsed to be readable; invalid JSON remains text."""
    if name not in JSON_COLUMNS or value is None:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def stored(name: str, value: Any) -> Any:
    """Return a column's value for the database, with JSON as text; the inverse of `_readable`."""
    return json.dumps(value) if name in JSON_COLUMNS and value is not None else value


@dataclass(frozen=True)
class Prepared:
    """Record in a temporary file, to be published once the database has committed the change."""

    job: str
    version: int
    path: Path

    def publish(self, flush: bool = True) -> None:
        """Flush the temporary file to the disk unless `flush` is False, and rename it to `job.json`. Raises OSError."""
        if flush:
            with self.path.open("r+b") as file:
                os.fsync(file.fileno())
        # The folder is not flushed: after a power cut the file is written again from the database.
        self.path.replace(self.path.with_name(NAME))

    def drop(self) -> None:
        """Remove the temporary file after a failed change, and the job's folder if it is empty."""
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.parent.rmdir()


def prepare(folder: Path, connection: sqlite3.Connection, row: sqlite3.Row) -> Prepared:
    """Write the record of a row to an unflushed temporary file in the job's folder. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    # The name is unique: two processes may write the same version of the same job.
    path = folder / f"{NAME}.{row['recorded']}-{secrets.token_hex(4)}{files.TEMPORARY}"
    prepared = Prepared(row["id"], row["recorded"], path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | files.PLAIN, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0):
            # A full disk fails here, where the blocks are allocated.
            files.write_all(descriptor, encoded(connection, row))
    except OSError:
        prepared.drop()
        raise
    return prepared


def is_leftover(path: Path) -> bool:
    """Return whether `path` is a record's temporary file that a process left when it ended."""
    return path.name.startswith(f"{NAME}.") and path.suffix == files.TEMPORARY
