"""`job.json` in a job's folder: what the job is, so that a store whose database is lost can be made again.

    {"form": 1, "schema": 7, "version": 57, "job": {"id": "...", "owner": "ann", ...}, "key": null}

`job` has the columns of the row, but those of a lease, which nobody holds any more when the file is needed; `key` is
the idempotency key under which it came. A change is written in three steps, the second of which decides:

    job.json.57-9f04c1d2.tmp is written -> the database commits version 57 -> that file, flushed, becomes job.json

So a full disk refuses the change as a whole, and the file is never newer than the database, unless that is an old copy.
A process that ends before the third step leaves a file that is older: the next one that opens the store writes it.
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
"""Numbers of a record are smaller: the database counts on from them, and every reader of JSON knows them exactly."""
MOST_BYTES = 64 << 20
JSON_COLUMNS = ("asked", "result", "tags")
OF_A_KEY: dict[str, Any] = {"key": str, "request": str, "created": float | int}
OF_A_LEASE = {"version", "over_at", "recorded", "worker", "lease_until", "phase", "progress_per_s", "watched_until",
              "waits_for", "checksum"}  # fmt: skip
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
    key: dict[str, Any] | None

    @property
    def id(self) -> str:
        return str(self.job["id"])


class RecordError(ValueError):
    """A record is none that the store has written; the sentence says what is wrong with it."""


def read(folder: Path) -> JobFile | None:
    """The record of the job whose folder this is; None where there is none. Raises RecordError, OSError."""
    text = content(folder / NAME)
    if text is None:
        return None
    try:
        data = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if data["form"] != FORM or not isinstance(data["schema"], int) or data["schema"] < 1:
            raise RecordError(f"it is of form {data['form']!r} and schema {data['schema']!r}")
        version, columns, key = data["version"], data["job"], data["key"]
        _check(version, columns, key)
        held = {name: stored(name, value) for name, value in columns.items()}
        return JobFile(version, data["schema"], held, key)
    except KeyError as error:
        raise RecordError(f"it lacks {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(" ".join(str(error).split())) from error


def content(path: Path) -> bytes | None:
    """What is in a regular file; None where there is none. Raises RecordError, OSError."""
    try:
        # A pipe would wait for ever, and a link may lead anywhere.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise RecordError(f"{path.name} is no file") from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        os.close(descriptor)
        raise RecordError(f"{path.name} is no file, or a large one")
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise RecordError(f"{text} is no number")
    return number


def _check(version: Any, columns: dict[str, Any], key: Any) -> None:
    """Raises ValueError, TypeError, KeyError for what no job of the store has."""
    passing = dict.fromkeys(("phase", "progress_per_s", "waits_for")) | {"version": version}
    try:
        _model().model_validate(columns | columns["asked"] | passing)
    except ValidationError as error:  # of several complaints the first
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
            raise RecordError(f"the {wrong[0]} of its key is {key[wrong[0]]!r}")
    # It is written again, to the database and to clients, which take neither halves of characters nor all numbers.
    json.dumps([columns, key], ensure_ascii=False).encode()
    for name, value in {**columns, "version": version}.items():
        if isinstance(value, int | float) and abs(value) >= MOST:
            raise RecordError(f"{name} is {value}")


@cache
def _model() -> type[BaseModel]:
    """What a record must have: the fields of a job, and those that only the store uses."""
    hints = get_type_hints(JobRecord)
    kinds: dict[str, Any] = {each.name: (hints[each.name], ...) for each in fields(JobRecord)}
    own = {"vain_tries": int, "tried_progress": int, "not_before": float, "lease": int}
    kinds |= {name: (kind, ...) for name, kind in own.items()} | {"data": (str | None, None)}
    return create_model("Record", __config__=ConfigDict(strict=True), **kinds)


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
        "key": None if key is None else dict(key),
    }
    return json.dumps(data, ensure_ascii=False, indent=1).encode()


def differs(recorded: Mapping[str, Any], row: sqlite3.Row) -> bool:
    """Return whether a row says anything else than the recorded columns."""
    names = set(row.keys()) - OF_A_LEASE
    return any(_readable(name, recorded.get(name)) != _readable(name, row[name]) for name in names)


def _readable(name: str, value: Any) -> Any:
    """A request is an object in the file, for whoever reads it; one that is no JSON stays a text."""
    if name not in JSON_COLUMNS or value is None:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def stored(name: str, value: Any) -> Any:
    """A column as the database holds it, JSON as text: the inverse of `_readable`."""
    return json.dumps(value) if name in JSON_COLUMNS and value is not None else value


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
        """Remove it, and the folder if it was made for it, because the change was not committed."""
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.parent.rmdir()


def prepare(folder: Path, connection: sqlite3.Connection, row: sqlite3.Row) -> Prepared:
    """Write the record of a row beside its place in the job's folder, not yet flushed. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    # A name of its own: two processes may be at the same job, and even at the same version of it.
    path = folder / f"{NAME}.{row['recorded']}-{secrets.token_hex(4)}{files.TEMPORARY}"
    prepared = Prepared(row["id"], row["recorded"], path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | files.PLAIN, 0o600)
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
