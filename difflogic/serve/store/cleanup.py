"""What of a store may go: jobs that ended long ago, and the oldest where the disk is needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from difflogic.errors import StoreError
from difflogic.runs.run_list import size_of
from difflogic.serve.log import log_event
from difflogic.serve.store.jobs import ENDED, ConflictError, JobRecord, UnknownJobError
from difflogic.serve.store.store import Store

DAY_S = 24 * 3600.0
ALL = 1_000_000_000
"""A limit of more jobs than there ever are."""
COLLECT_S = 600.0


@dataclass(frozen=True)
class Removed:
    """A job that was removed, or would be."""

    name: str
    """Its id."""
    why: str
    bytes: int


@dataclass(frozen=True)
class Collected:
    """What a collection removed, and what is left."""

    removed: list[Removed]
    bytes_left: int
    """Bytes of all jobs that stay."""


def collect(store: Store, keep_days: float | None = None, quota: int | None = None, dry: bool = False) -> Collected:
    """Delete jobs that ended more than `keep_days` ago, then the oldest of those that ended until `quota` bytes hold
    all jobs. `dry`: only say what would go.

    Jobs that wait, run or pause stay, and so does what a follow-up still needs. Raises StoreError.
    """
    try:
        jobs = store.jobs(limit=ALL)
        sizes = {job.id: size_of_job(store, job.id) for job in jobs}
        left = sum(sizes.values())
        removed = []
        # The list was read once, and deleting takes a while: `_deleted` asks the store again for each job, and what
        # somebody has begun to use since stays. `left` counts down as jobs go, so that the quota stops the loop as soon
        # as enough are gone.
        for job in _expendable(jobs):
            why = _why(store, job, keep_days, None if quota is None else left - quota)
            if why is not None and (dry or _deleted(store, job)):
                removed.append(Removed(job.id, why, sizes[job.id]))
                left -= sizes[job.id]
    except OSError as error:
        raise StoreError(f"Cannot clean {store.folder}: {error}.") from error
    return Collected(removed, left)


def size_of_job(store: Store, job: str) -> int:
    """Bytes of a job's files; 0 where there is nothing. Raises OSError."""
    try:
        return size_of(store.job_folder(job).path)
    except FileNotFoundError:  # a file may go away while its folder is counted
        return 0


def _expendable(jobs: list[JobRecord]) -> list[JobRecord]:
    """Jobs that are over and that no other one waits for, the longest over first."""
    # A follow-up that waits still has to read the circuit of its source.
    needed = {job.source for job in jobs if not job.is_over}
    over = [job for job in jobs if job.status in ENDED and job.id not in needed]
    return sorted(over, key=lambda job: str(job.ended))


def _why(store: Store, job: JobRecord, keep_days: float | None, too_much: int | None) -> str | None:
    """Why a job goes; None where it stays."""
    days = (store.wall_clock() - datetime.fromisoformat(str(job.ended)).timestamp()) / DAY_S
    if keep_days is not None and days > keep_days:
        return f"{job.status} {days:.0f} days ago"
    if too_much is not None and too_much > 0:
        return f"{job.status} {days:.0f} days ago, and the quota is used up"
    return None


def _deleted(store: Store, job: JobRecord) -> bool:
    """False where someone has begun to use it since."""
    try:
        store.delete(job.id, only_over=True)
    except (ConflictError, UnknownJobError):
        return False
    return True


@contextmanager
def housekeeping(folder: Path, keep_days: float | None, quota: int | None) -> Iterator[None]:
    """Collect by these rules, those of `collect`, in a thread: at once and then every COLLECT_S, while it is open.

    Without rules nothing is collected.
    """
    over = threading.Event()

    def run() -> None:
        # A store of its own, since the connection to SQLite belongs to the thread that opened it.
        store = Store.existing(folder)
        _log_collection(store, keep_days, quota)
        while not over.wait(COLLECT_S):
            _log_collection(store, keep_days, quota)
        store.close()

    thread = threading.Thread(target=run, name="housekeeper", daemon=True)
    if (keep_days, quota) != (None, None):
        thread.start()
    try:
        yield
    finally:
        over.set()
        if thread.is_alive():
            thread.join()


def _log_collection(store: Store, keep_days: float | None, quota: int | None) -> None:
    try:
        for each in collect(store, keep_days, quota).removed:
            log_event("removed", name=each.name, why=each.why, bytes=each.bytes)
    except StoreError as error:  # the next one may find the disk well
        log_event("housekeeper", logging.ERROR, why=str(error))
