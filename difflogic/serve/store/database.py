"""Open, migrate and check the store's SQLite database, with one connection per thread and short transactions."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from difflogic.errors import StoreError
from difflogic.serve.store.jobs import DiskFullError, StoreLostError
from difflogic.system import files

APPLICATION = int.from_bytes(b"dflg", "big")
"""Application id in the database's header, which distinguishes the store from another program's database."""

BUSY_MS = 10_000
"""Maximum milliseconds that a writer waits for another writer; a transaction takes a few milliseconds."""
CACHE_KIB = 512
"""Cache size of each connection in KiB; every thread of a server has one connection."""
NO_SPACE = "The disk of the store is full, so nothing was changed: free some space."

_COLUMNS = (
    "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2"
)
"""SQL query for the columns of all tables."""


class Database:
    """SQLite database that many threads and processes share. Methods raise StoreError for disk errors.

    Each use first checks that `path` is still the opened file, and raises StoreLostError if not: SQLite would continue
    in a deleted file, and committed changes would be lost when the process ends.
    """

    def __init__(self, path: Path, durable: bool = True, beat: Callable[[], None] = lambda: None) -> None:
        """Set up the database; if `durable`, commits survive a power failure. `beat` is called before each use."""
        self.path = path
        self.rescue: Callable[[sqlite3.Connection], None] | None = None
        """Function that is called once if the file is lost, with a connection that can still read the database."""
        self._durable = durable
        self._beat = beat
        self._inode: int | None = None
        self._local = threading.local()
        self._rescuing = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for read statements outside a transaction."""
        self._check()
        with sqlite_errors(self.path, "read"):
            yield self._connection()

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        with self.reading() as connection:
            return connection.execute(query, values).fetchall()

    def row(self, query: str, *values: Any) -> sqlite3.Row | None:
        return next(iter(self.rows(query, *values)), None)

    def write(self, statement: str, *values: Any) -> int:
        """Execute one statement in a transaction and return the number of changed rows."""
        with self.writing() as connection:
            return connection.execute(statement, values).rowcount

    @contextmanager
    def writing(self, durable: bool | None = None) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction that is committed at the end, or rolled back after an exception."""
        self._check()
        with sqlite_errors(self.path, "written"):
            connection = self._connection()
            # FULL waits for the disk, so that a submitted job survives a power cut. A lost heartbeat is harmless.
            mode = "FULL" if durable or (durable is None and self._durable) else "NORMAL"
            connection.execute(f"PRAGMA synchronous = {mode}")
            # IMMEDIATE takes the write lock first: otherwise a write after a read fails if another process has written.
            connection.execute("BEGIN IMMEDIATE")
            with connection:  # commits, or rolls back after an exception unless SQLite has already done so
                self._check_log()
                yield connection

    def close(self) -> None:
        """Close this thread's connection."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            # SQLite requires one connection per thread; opening one costs more than most requests.
            connection = self._local.connection = connect(self.path)
            self._local.log = None
        return connection

    def _check(self) -> None:
        """Raise StoreLostError if the file was lost or replaced. It is not opened: closing it would release locks."""
        try:
            status = self.path.stat()
        except OSError:
            self._lose()
        if status.st_size == 0 or self._inode not in (None, status.st_ino):
            self._lose()
        self._inode = status.st_ino
        self._beat()

    def _check_log(self) -> None:
        """Raise StoreLostError if the write-ahead log, which exists while connections are open, was replaced."""
        try:
            inode = self.path.with_name(f"{self.path.name}-wal").stat().st_ino
        except OSError:
            self._lose()
        if self._local.log not in (None, inode):
            self._lose()
        self._local.log = inode

    def _lose(self) -> NoReturn:
        connection = getattr(self._local, "connection", None)
        if self.rescue is not None and connection is not None and self._rescuing.acquire(blocking=False):
            # The lock is never released, so that `rescue` is called only once.
            self.rescue(connection)
        raise StoreLostError(
            "The database of the store was removed or replaced while it was in use: restart the server to rebuild it "
            "from the folders of the jobs."
        )


def connect(path: Path) -> sqlite3.Connection:
    """Return a new connection in autocommit mode to an existing database. Raises sqlite3.Error."""
    connection = sqlite3.connect(_uri(path), uri=True, timeout=BUSY_MS / 1000, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        # With a write-ahead log readers and the writer never wait for each other.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _uri(path: Path) -> str:
    """Return a URI that makes SQLite open an existing file without ever creating one."""
    return f"{path.absolute().as_uri()}?mode=rw"


def create(path: Path) -> None:
    """Create an empty file that other users cannot read; SQLite gives its log files the same mode. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def is_empty(path: Path) -> bool:
    """Return whether a database is missing or has no table. Raises StoreError for another program's file."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    # The check comes before any write: another program's file stays unchanged.
    with sqlite_errors(path, "opened"), closing(sqlite3.connect(_uri(path), uri=True)) as file:
        tables = {row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        owner = int(file.execute("PRAGMA application_id").fetchone()[0])
    if owner != APPLICATION and (owner or tables):
        raise StoreError(f"{path} is the database of another program: choose a separate folder for the store.")
    return not tables


def check(path: Path) -> None:
    """Raise StoreError if the database is damaged."""
    with sqlite_errors(path, "opened"), closing(connect(path)) as connection:
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("database disk image is malformed")


def migrate(path: Path) -> None:
    """Copy a database of an old version and migrate it to the newest. Raises StoreError for a newer version."""
    with sqlite_errors(path, "opened"), closing(connect(path)) as connection:
        version, newest = version_of(connection), newest_version()
        if version > newest:
            raise StoreError(
                f"Expected a store of version {newest} or older, but {path} has version {version}: upgrade difflogic."
            )
        # An older difflogic refuses the newer file, but can open the copy.
        if 0 < version < newest:
            copy(connection, path.with_name(f"{path.name}.version-{version}"))
        upgrade(connection, newest)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
            upgrade(new, newest)
            if [*map(tuple, connection.execute(_COLUMNS))] != new.execute(_COLUMNS).fetchall():
                raise sqlite3.DatabaseError("the schema is malformed")


def upgrade(connection: sqlite3.Connection, to: int) -> None:
    """Run the migrations up to version `to`. Raises sqlite3.Error."""
    done = version_of(connection)
    for number, script in enumerate(_scripts()[done:to], done + 1):
        with connection:  # rolls back after an error
            # Script and version are one transaction: a killed process leaves the store at one of the versions.
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")


def copy(connection: sqlite3.Connection, path: Path) -> None:
    """Copy the database into a new file without blocking writers. Raises sqlite3.Error or OSError."""
    path.unlink(missing_ok=True)
    create(path)
    with closing(sqlite3.connect(path)) as target:
        # The copy is made in one step under one read transaction, and is therefore consistent.
        connection.backup(target)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a database, which is the number of its last migration, or 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def newest_version() -> int:
    """Return the version of the databases that this difflogic writes."""
    return len(_scripts())


@cache
def _scripts() -> list[str]:
    folder = resources.files("difflogic.serve.store.schema")
    names = sorted(script.name for script in folder.iterdir() if script.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


@contextmanager
def sqlite_errors(path: Path, action: str) -> Iterator[None]:
    """Convert SQLite errors within the context to StoreErrors; `action` completes "cannot be ..."."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise DiskFullError(NO_SPACE) from error
        advice = ""
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "malformed" in str(error):
            advice = f": {rebuild_advice(path.parent)}"
        raise StoreError(f"The store {path} cannot be {action}: {error}{advice or '.'}") from error


def rebuild_advice(folder: Path) -> str:
    """Return the end of messages about an unusable database in `folder`, with advice for the user."""
    return (
        f"restore the correct database, or start `difflogic serve {files.quoted(folder)} --rebuild`, which rebuilds it "
        "from the folders of the jobs and moves this one to lost+found."
    )
