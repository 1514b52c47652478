"""The store for a worker on another machine: Ray carries what it asks, and the files of its job in both directions.

    a machine of the cluster                             the server's machine
    RemoteStore, in place of the worker's Store    ->    StoreActor, which has the Store
    claim                                          <-    the job, and the files that it has so far
    heartbeat, finish, release, fail_try           ->    the files that have changed, then what is told

The lease is that of every worker, and only its holder writes: files are put in their places within a transaction that
has looked at the lease, and before the progress that names them. So a job whose machine is lost goes on from a
checkpoint that is whole. A call that gets no answer ends the worker, and its supervisor gives the job to another.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
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
"""Seconds between two looks for files to send, where no new checkpoint is told."""
GROWING = (".jsonl", ".csv", ".txt")
"""Endings of files to which lines are added: of these only what is new is sent."""
LAST = (checkpoint.BEST, checkpoint.PREVIOUS, checkpoint.NAME)
"""What is written last, in this order: a checkpoint is of use where all that came before it is there."""


class Part(NamedTuple):
    """What is new of a file."""

    name: str
    """Its path in the job's folder."""
    begin: int | None
    """From this byte on; None: the content is the whole file."""
    content: bytes


@dataclass
class Claimed:
    """A job under a lease, with its files, and what it begins with."""

    job: JobRecord
    lease: int
    files: dict[str, bytes]
    source: JobRecord | None = None
    source_files: dict[str, bytes] = field(default_factory=dict)


class StoreActor:
    """The store's side: an actor on the machine of the store, which does for remote workers what they ask."""

    def __init__(self, folder: Path) -> None:
        self._store = Store.existing(folder, durable=False)
        # Locks of this process stand for workers elsewhere: whoever looks for the dead finds them alive while Ray does.
        self._locks: dict[str, Presence] = {}

    def register(self, name: str, *about: Any) -> None:
        """Add a worker to the list, and hold its lock."""
        self._locks[name] = Presence(self._store.folder, name)
        self._store.register_worker(name, *about)

    def forget(self, name: str) -> None:
        """Let go of the lock of a worker that has ended."""
        if (lock := self._locks.pop(name, None)) is not None:
            lock.close()

    def ask(self, what: str, *given: Any, **named: Any) -> Any:
        """Call a method of the store."""
        return getattr(self._store, what)(*given, **named)

    def claim(self, worker: str, *given: Any) -> Claimed | None:
        """The next job for a worker, with the files that it needs; None where there is none."""
        store = self._store
        claimed = None if store.is_full() else store.claim(worker, *given)
        if claimed is None:
            return None
        job, lease = claimed
        found = Claimed(job, lease, _read(store.job_folder(job.id).path))
        if job.source is not None:
            try:
                found.source = store.job(job.source, job.owner)
                found.source_files = _read(store.job_folder(found.source).run)
            except UnknownJobError:  # it was deleted, which is of no matter to a job that has begun
                found.source = None
        return found

    def tell(
        self,
        what: str,
        job: str,
        lease: int,
        changes: tuple[list[Part], list[str]],
        given: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        """Make the job's files what they are over there, then call a method of the store. Raises LeaseLostError."""
        parts, gone = changes
        folder = self._store.job_folder(job).path
        try:
            with ExitStack() as stack:
                temporaries = {}
                for part in parts:
                    path = folder / part.name
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    if part.begin is None:  # flushed before the transaction: nobody waits for the disk
                        temporaries[part.name] = stack.enter_context(written_beside(path, part.content))
                stack.enter_context(self._store.held(job, lease))
                for part in parts:
                    _place(folder / part.name, part, temporaries.get(part.name))
                for name in gone:
                    (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"The files of the job {job} cannot be written: {error.strerror or error}.") from error
        return getattr(self._store, what)(job, lease, *given, **named)


class RemoteStore(Store):
    """What a worker uses of a store, where that is on another machine; its folder here is for the job in hand."""

    def __init__(self, ask: Callable[..., Any], folder: Path, host: str) -> None:
        """`ask` calls a method of the StoreActor, by its name. `host`: the name of this machine for people."""
        super().__init__(folder, Database(folder / STORE))  # which is not there: whatever is not asked below is refused
        self._ask, self._host = ask, host
        self._source: JobRecord | None = None
        self._sent: dict[str, tuple[int, int, int]] = {}
        """Of each file the inode, the time of its last change, and the size, when it was sent last."""
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
        """Whether this disk is full; of the server's the claim knows."""
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
        """The job that the claimed one begins with. Raises UnknownJobError for any other."""
        if self._source is None or self._source.id != job:
            raise UnknownJobError(f"There is no job {job!r}.")
        return self._source

    def heartbeat(
        self, job: str, lease: int, lease_s: float, memory: int | None = None, **progress: Any
    ) -> HeartbeatReply:
        is_due = "saved_progress" in progress or time.monotonic() - self._sent_at >= SEND_S
        reply: HeartbeatReply = self._tell("heartbeat", job, lease, is_due, lease_s, memory, **progress)
        return reply

    def _end(self, what: str, job: str, lease: int, *given: Any, **named: Any) -> JobRecord:
        ended: JobRecord = self._tell(what, job, lease, True, *given, **named)
        shutil.rmtree(self.folder / JOBS)
        return ended

    def _tell(self, what: str, job: str, lease: int, with_files: bool, *given: Any, **named: Any) -> Any:
        parts, now = self._new(self.job_folder(job).path) if with_files else ([], self._sent)
        gone = sorted(self._sent.keys() - now.keys())
        try:
            reply = self._ask("tell", what, job, lease, (parts, gone), given, named)
        except StoreError:
            self._sent = {}  # nobody knows how much of it was written: whole, next time
            raise
        if with_files:
            self._sent, self._sent_at = now, time.monotonic()
        return reply

    def _new(self, folder: Path) -> tuple[list[Part], dict[str, tuple[int, int, int]]]:
        """What has changed in a job's folder, and the states of all its files."""
        # In the thread that trains: what it has written is whole by now.
        paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if _is_result(path)}
        states = {name: _state(path) for name, path in paths.items()}
        parts = []
        for name in sorted(paths, key=_turn):
            known, state = self._sent.get(name), states[name]
            if known == state:
                continue
            is_grown = known is not None and name.endswith(GROWING) and known[0] == state[0] and known[2] <= state[2]
            begin = known[2] if known is not None and is_grown else None
            with paths[name].open("rb") as file:
                file.seek(begin or 0)
                parts.append(Part(name, begin, file.read(state[2] - (begin or 0))))
        return parts, states


def _read(folder: Path) -> dict[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if _is_result(path))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _place(path: Path, part: Part, temporary: Path | None) -> None:
    """Put what is new of a file into its place. Raises OSError."""
    if temporary is not None:
        temporary.replace(path)
        return
    with os.fdopen(os.open(path, os.O_RDWR | PLAIN), "r+b") as file:
        file.truncate(part.begin)
        file.seek(0, os.SEEK_END)
        file.write(part.content)


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _is_result(path: Path) -> bool:
    """Whether a file in a job's folder is the worker's business: not the record, nor locks and files under way."""
    hidden = path.name.startswith((".", "job.json")) or path.suffix == TEMPORARY
    return not hidden and path.is_file() and not path.is_symlink()


def _turn(name: str) -> tuple[int, str]:
    last = name.rpartition("/")[2]
    return (LAST.index(last) + 1 if last in LAST else 0), name
