"""Give workers on other machines access to the store: Ray transfers their calls, and files in both directions.

    a machine of the cluster                             the server's machine
    RemoteStore, in place of the worker's Store    ->    StoreActor, which has the Store
    claim                                          <-    the job, and its files so far
    heartbeat, finish, release, fail_try           ->    the changed files, then the call's arguments

Leases work as on the server's machine. Files are replaced in a transaction that has checked the lease, before the
progress that refers to them is stored. If a machine is lost, its job continues from a complete checkpoint. A worker
whose call gets no response ends, and its supervisor queues the job again.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from difflogic.errors import StoreError
from difflogic.runs import checkpoint
from difflogic.serve.store.database import Database
from difflogic.serve.store.files import JOBS, STORE
from difflogic.serve.store.jobs import JobRecord, UnknownJobError
from difflogic.serve.store.leases import HeartbeatReply
from difflogic.serve.store.presence import Presence
from difflogic.serve.store.store import Store
from difflogic.system.files import PLAIN, TEMPORARY, written_beside

SEND_S = 1.0
"""Minimum seconds between transfers of changed files; after a new checkpoint, they are sent immediately."""
GROWING = (".jsonl", ".csv", ".txt")
"""Suffixes of files to which lines are appended, so that only new lines are sent."""
LAST = (checkpoint.BEST, checkpoint.PREVIOUS, checkpoint.NAME)
"""Names of files that are sent last, in this order, since a checkpoint refers to the other files."""


class Part(NamedTuple):
    """New contents of a file in a job's folder: the complete file, or its end from an offset on."""

    name: str
    """Path of the file relative to the job's folder."""
    begin: int | None
    """Offset in bytes at which the contents begin, or None for a complete file."""
    content: bytes


@dataclass
class Claimed:
    """Leased job with its files, and its source job with the files that the training begins from."""

    job: JobRecord
    lease: int
    files: dict[str, bytes]
    source: JobRecord | None = None
    source_files: dict[str, bytes] = field(default_factory=dict)


class StoreActor:
    """Ray actor on the machine of the store that calls the store for remote workers."""

    def __init__(self, folder: Path) -> None:
        self._store = Store.existing(folder, durable=False)
        # This process holds the locks of remote workers while Ray reports the workers as alive.
        self._locks: dict[str, Presence] = {}

    def register(self, name: str, *about: Any) -> None:
        """Add a worker to the store and acquire its lock; `about` are other arguments of `Store.register_worker`."""
        self._locks[name] = Presence(self._store.folder, name)
        self._store.register_worker(name, *about)

    def forget(self, name: str) -> None:
        """Release the lock of the worker `name`, which has ended."""
        if (lock := self._locks.pop(name, None)) is not None:
            lock.close()

    def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call the store's method named `method`, and return its result."""
        return getattr(self._store, method)(*arguments, **options)

    def claim(self, worker: str, *arguments: Any) -> Claimed | None:
        """Return the next job for `worker` with the required files, or None if there is no job."""
        store = self._store
        if store.is_full() or (leased := store.claim(worker, *arguments)) is None:
            return None
        job, lease = leased
        claimed = Claimed(job, lease, _read(store.job_folder(job.id).path))
        if job.source is not None:
            with suppress(UnknownJobError):  # a deleted source: a job that has begun does not need it
                claimed.source = store.job(job.source, job.owner)
                claimed.source_files = _read(store.job_folder(claimed.source).run)
        return claimed

    def tell(
        self,
        method: str,
        job: str,
        lease: int,
        changes: tuple[list[Part], list[str]],
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> Any:
        """Apply changes to a job's files, then call the store's method named `method`. Raises LeaseLostError."""
        parts, deleted = changes
        folder = self._store.job_folder(job).path
        try:
            with ExitStack() as stack:
                temporaries = {}
                for part in parts:
                    path = folder / part.name
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    if part.begin is None:  # flushed here, so that the transaction does not wait for the disk
                        temporaries[part.name] = stack.enter_context(written_beside(path, part.content))
                stack.enter_context(self._store.held(job, lease))
                for part in parts:
                    _place(folder / part.name, part, temporaries.get(part.name))
                for name in deleted:
                    (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"Cannot write the files of the job {job}: {error.strerror or error}.") from error
        return getattr(self._store, method)(job, lease, *arguments, **options)


class RemoteStore(Store):
    """Store of a worker on a remote machine; its local folder contains only the current job and this job's source."""

    def __init__(self, ask: Callable[..., Any], folder: Path, host: str) -> None:
        """Set up the store: `ask` calls a method of the StoreActor by name; `host` is this machine's displayed name."""
        super().__init__(folder, Database(folder / STORE))  # no such file: methods that are not overridden fail
        self._ask, self._host = ask, host
        self._source: JobRecord | None = None
        self._sent: dict[str, tuple[int, int, int]] = {}
        """Inode, modification time and size of each file at the time it was last sent, by path."""
        self._sent_at = 0.0
        for name in ("describe_worker", "mark_seen", "unregister_worker", "prolong"):
            setattr(self, name, partial(ask, "ask", name))
        for name in ("finish", "release", "fail_try"):
            setattr(self, name, partial(self._end, name))

    # the worker -----------------------------------------------------------------------------------------

    def register_worker(
        self, name: str, device: str, description: str, pid: int, engines: Collection[str] = (), host: str | None = None
    ) -> None:
        self._ask("register", name, f"{self._host}/{device}", description, pid, tuple(engines), host or self._host)

    def is_full(self) -> bool:
        """Return False, since `claim` checks the disk of the server instead."""
        return False

    # the job --------------------------------------------------------------------------------------------

    def claim(self, worker: str, device: str, engines: Collection[str], lease_s: float) -> tuple[JobRecord, int] | None:
        claimed: Claimed | None = self._ask("claim", worker, f"{self._host}/{device}", tuple(engines), lease_s)
        if claimed is None:
            return None
        folder = self.job_folder(claimed.job.id).path
        folder.mkdir(parents=True)
        _write(folder, claimed.files)
        self._source = claimed.source
        if claimed.source is not None:
            _write(self.job_folder(claimed.source).run, claimed.source_files)
        self._sent = {name: _state(folder / name) for name in claimed.files}
        return claimed.job, claimed.lease

    def job(self, job: str, owner: str | None = None) -> JobRecord:
        """Return the record of the current job's source, the only one known here. Raises UnknownJobError for others."""
        if self._source is None or self._source.id != job:
            raise UnknownJobError(f"Unknown job {job!r}.")
        return self._source

    def heartbeat(
        self, job: str, lease: int, lease_s: float, memory: int | None = None, **progress: Any
    ) -> HeartbeatReply:
        is_due = "saved_progress" in progress or time.monotonic() - self._sent_at >= SEND_S
        reply: HeartbeatReply = self._tell("heartbeat", job, lease, is_due, lease_s, memory, **progress)
        return reply

    def _end(self, method: str, job: str, lease: int, *arguments: Any, **options: Any) -> JobRecord:
        ended: JobRecord = self._tell(method, job, lease, True, *arguments, **options)
        shutil.rmtree(self.folder / JOBS)
        return ended

    def _tell(self, method: str, job: str, lease: int, with_files: bool, *arguments: Any, **options: Any) -> Any:
        parts, now = self._new(self.job_folder(job).path) if with_files else ([], self._sent)
        deleted = sorted(self._sent.keys() - now.keys())
        try:
            reply = self._ask("tell", method, job, lease, (parts, deleted), arguments, options)
        except StoreError:
            self._sent = {}  # some files may have been written: the next call sends all files completely
            raise
        if with_files:
            self._sent, self._sent_at = now, time.monotonic()
        return reply

    def _new(self, folder: Path) -> tuple[list[Part], dict[str, tuple[int, int, int]]]:
        """Return the changed files in a job's folder since the last call, and the states of all files by path."""
        # The training thread calls this method: all files that it has written are complete.
        paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if _is_result(path)}
        states = {name: _state(path) for name, path in paths.items()}
        parts = []
        for name in sorted(paths, key=_turn):
            sent, state = self._sent.get(name), states[name]
            if sent == state:
                continue
            is_grown = sent is not None and name.endswith(GROWING) and sent[0] == state[0] and sent[2] <= state[2]
            begin = sent[2] if sent is not None and is_grown else None
            with paths[name].open("rb") as file:
                file.seek(begin or 0)
                parts.append(Part(name, begin, file.read(state[2] - (begin or 0))))
        return parts, states


def _read(folder: Path) -> dict[str, bytes]:
    results = (path for path in sorted(folder.rglob("*")) if _is_result(path))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in results}


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _place(path: Path, part: Part, temporary: Path | None) -> None:
    """Replace a file with `temporary` or, if that is None, its end with the content of `part`. Raises OSError."""
    if temporary is not None:
        temporary.replace(path)
        return
    with os.fdopen(os.open(path, os.O_RDWR | PLAIN), "r+b") as file:
        file.truncate(part.begin)
        file.seek(0, os.SEEK_END)
        file.write(part.content)


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _is_result(path: Path) -> bool:
    """Return whether `path` is a file that a worker wrote for a job, not a record, lock or temporary file."""
    hidden = path.name.startswith((".", "job.json")) or path.suffix == TEMPORARY
    return not hidden and path.is_file() and not path.is_symlink()


def _turn(name: str) -> tuple[int, str]:
    last = name.rpartition("/")[2]
    return (LAST.index(last) + 1 if last in LAST else 0), name
