"""What of a store may go: jobs that ended long ago, and the oldest where the disk is needed.

No clock is believed that somebody may set. A store counts the seconds for which it is served, minute by minute, and
only where the system's time went on just as far; how long a job has been over is told by that count alone.
"""

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from difflogic.errors import StoreError
from difflogic.runs.run_list import size_of
from difflogic.serve.log import log_event
from difflogic.serve.store.jobs import ConflictError, UnknownJobError
from difflogic.serve.store.store import Store

DAY_S = 24 * 3600.0
COUNT_S = 60.0
"""Seconds between two counts."""
GAP_S = 180.0
"""After a longer pause nothing is counted: the store was closed, or the machine asleep, or its clock was set."""
SET_S = 60.0
"""So far may the system's time have gone another way than the seconds since the machine's start: else it was set."""
COLLECT = 10
"""Counts from one collection to the next."""
QUOTA_DAYS = 1.0
"""What has ended within so many days is kept, however little room is left."""
OVER = (
    "SELECT id, status, (SELECT counted FROM clock) - over_at AS over_s, "
    # What says that it ended before it began, or before its store did, is told by a clock that was wrong.
    "ended >= created AND ended >= (SELECT made FROM clock) AS is_sound FROM jobs "
    "WHERE status IN ('done', 'failed', 'cancelled') AND over_at IS NOT NULL "
    # A follow-up that waits still has to read the circuit of its source.
    "AND id NOT IN (SELECT source FROM jobs WHERE source IS NOT NULL AND ended IS NULL) ORDER BY over_at, number"
)
"""Jobs that are over and that no other one waits for, the longest over first."""


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
    served_days: float
    """For so long the store has been served."""


def count(store: Store) -> bool:
    """Count the time since the last count; False where it is not known, for the store was closed or a clock was set."""
    with store.database.writing() as connection:
        counted_at, wall_then = connection.execute("SELECT counted_at, wall FROM clock").fetchone()
        now, wall = store.clock(), store.wall_clock()
        passed: float = now - counted_at
        is_known = 0 <= passed <= GAP_S and bool(abs(wall - wall_then - passed) < SET_S)
        connection.execute(
            "UPDATE clock SET counted = counted + ?, counted_at = ?, wall = ?", (passed if is_known else 0.0, now, wall)
        )
    return is_known


def collect(
    store: Store,
    keep_days: float | None = None,
    quota: int | None = None,
    dry: bool = False,
    only: Collection[str] | None = None,
) -> Collected:
    """Delete jobs that have been over for `keep_days`, then the oldest of those that ended until `quota` bytes hold all
    jobs, but none of the last QUOTA_DAYS. `dry`: only say what would go; `only`: of these jobs.

    Jobs that wait, run or pause stay, and so does what a follow-up still needs. Raises StoreError.
    """
    try:
        sizes = {row["id"]: size_of_job(store, row["id"]) for row in store.database.rows("SELECT id FROM jobs")}
        left = sum(sizes.values())
        removed = []
        # Deleting takes a while: `_deleted` asks the store again for each job, as somebody may use it by now.
        for job in store.database.rows(OVER):
            days = job["over_s"] / DAY_S
            is_old = keep_days is not None and days >= keep_days and job["is_sound"]
            is_too_much = quota is not None and left > quota and days >= QUOTA_DAYS
            if (is_old or is_too_much) and (only is None or job["id"] in only) and (dry or _deleted(store, job["id"])):
                why = f"{job['status']}, and kept for {days:.0f} days since{'' if is_old else '; the quota is used up'}"
                removed.append(Removed(job["id"], why, sizes.get(job["id"], 0)))
                left -= sizes.get(job["id"], 0)
        counted = store.database.rows("SELECT counted FROM clock")[0][0]
    except OSError as error:
        raise StoreError(f"Cannot clean {store.folder}: {error}.") from error
    return Collected(removed, left, round(counted / DAY_S, 2))


def size_of_job(store: Store, job: str) -> int:
    """Bytes of a job's files; 0 where there is nothing. Raises OSError."""
    try:
        return size_of(store.job_folder(job).path)
    except FileNotFoundError:  # a file may go away while its folder is counted
        return 0


def _deleted(store: Store, job: str) -> bool:
    """False where someone has begun to use it since."""
    try:
        store.delete(job, only_over=True)
    except (ConflictError, UnknownJobError):
        return False
    return True


@contextmanager
def housekeeping(folder: Path, keep_days: float | None, quota: int | None) -> Iterator[None]:
    """Count the time for which the store is served, in a thread, and collect by these rules, while this is open.

    What is to go is logged, and goes with the next collection. Without rules nothing is collected.
    """
    over = threading.Event()

    def run() -> None:
        # A store of its own, since the connection to SQLite belongs to the thread that opened it.
        store = Store.existing(folder)
        told: set[str] = set()
        counted = 0
        while True:
            try:
                # Nothing goes at a moment of which nobody knows how it came to be: right after a start, or a set clock.
                if count(store):
                    if counted % COLLECT == 0 and (keep_days, quota) != (None, None):
                        told = _collect(store, keep_days, quota, told)
                    counted += 1
            except StoreError as error:  # the next time may find the disk well
                log_event("housekeeper", logging.ERROR, why=str(error))
            if over.wait(COUNT_S):
                break
        store.close()

    thread = threading.Thread(target=run, name="housekeeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _collect(store: Store, keep_days: float | None, quota: int | None, told: Collection[str]) -> set[str]:
    """Remove what was told before, and tell what is to go next: its ids."""
    for each in collect(store, keep_days, quota, only=told).removed:
        log_event("removed", name=each.name, why=each.why, bytes=each.bytes)
    coming = collect(store, keep_days, quota, dry=True).removed
    for each in coming:
        log_event("to be removed", logging.WARNING, name=each.name, why=each.why, bytes=each.bytes)
    return {each.name for each in coming}
