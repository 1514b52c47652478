"""SQLite as the store uses it: one connection per thread, short transactions, migrations by version."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path

import filelock

from difflogic.errors import ConfigError, StoreError

BUSY_MS = 10_000
"""Milliseconds for which a writer waits for another one; a transaction takes a few."""
CACHE_KIB = 512
"""Cache of a connection, of which a server has one in each of its threads."""
LOG_PAGES = 100
"""Pages of 4 KiB after which the write-ahead log is worked off: on a disk that is nearly full it must not grow."""


class Database:
    """A file that many threads and processes share. Every method raises StoreError where the disk refuses."""

    def __init__(self, path: Path, durable: bool = True) -> None:
        """`durable`: what was committed also survives a power cut; else only the end of any process."""
        self.path = path
        self._durable = durable
        self._local = threading.local()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, one statement at a time."""
        with sqlite_errors(self.path, "read"):
            yield self._connection()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is written at the end, or nothing where something is raised."""
        with sqlite_errors(self.path, "written"):
            connection = self._connection()
            # IMMEDIATE takes the lock of writers at once. A transaction that began as a reader could find, in its first
            # write, that another one wrote since, and would have to fail.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk ends it by itself
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close this thread's connection."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            # One connection for each thread: SQLite's may be used by one thread at a time, and opening one for each
            # request would cost more than most requests do.
            connection = self._local.connection = connect(self.path, self._durable)
        return connection


def connect(path: Path, durable: bool = True) -> sqlite3.Connection:
    """A new connection in autocommit mode. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        # With a write-ahead log readers never wait for the writer, nor the writer for them: a page that lists jobs does
        # not hold up a heartbeat.
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL waits for the disk at each commit. A server promises that a submitted job survives a power cut; a
        # heartbeat that gets lost with the power costs nothing, so workers use NORMAL.
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def migrate(path: Path) -> None:
    """Bring the file, made where there is none, to the newest version; an older one is kept as a copy beside it.

    Raises StoreError where it is of a newer version, or no store.
    """
    with (
        sqlite_errors(path, "opened"),
        filelock.FileLock(path.with_suffix(".lock")),
        closing(connect(path)) as connection,
    ):
        version, scripts = version_of(connection), _scripts()
        if version > len(scripts):
            raise StoreError(
                f"The store {path} is of version {version}, this difflogic knows {len(scripts)}: use a newer difflogic."
            )
        # A way back: an older difflogic refuses the newer file, but can open the copy.
        if 0 < version < len(scripts):
            copy(connection, path.with_name(f"{path.name}.version-{version}"))
        connection.create_function("current_config", 1, _current_config, deterministic=True)
        for number, script in enumerate(scripts[version:], version + 1):
            try:
                # Each script and the number that says it is done are one transaction, so that a process that is killed
                # here leaves the store at a whole version.
                connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
            except sqlite3.Error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise


def _current_config(text: str) -> str:
    """The JSON of a configuration of any version, in today's form; one that cannot be read stays as it is."""
    from difflogic.config.schema import Config

    try:
        return json.dumps(Config.from_dict(json.loads(text)).to_dict())
    except (ConfigError, ValueError):  # whoever trains the job says what is wrong with it
        return text


def copy(connection: sqlite3.Connection, path: Path) -> None:
    """The database as it is now in a new file, while others go on writing. Raises sqlite3.Error."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as target:
        # All pages are copied in one step, under one read transaction: the copy is of one moment, and writers need not
        # wait.
        connection.backup(target)


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last migration; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _scripts() -> list[str]:
    folder = resources.files("difflogic.serve.store.schema")
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


@contextmanager
def sqlite_errors(path: Path, action: str) -> Iterator[None]:
    """Turn SQLite's errors into StoreErrors of one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"The store {path} cannot be {action}: {error}.") from error
