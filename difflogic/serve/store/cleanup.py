"""Delete jobs that ended long ago, and the oldest jobs if the files of all jobs exceed a quota.

The age of a job is the time since its end during which a server was running, since the system clock may be wrong. The
server adds to this time once a minute, except for minutes in which the system clock was set.
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
from difflogic.system.words import counted

DAY_S = 24 * 3600.0
COUNT_S = 60.0
"""Seconds between counts of the time for which the store has been served."""
GAP_S = 180.0
"""Maximum seconds between counts; longer intervals are ignored: the store was closed, or the machine suspended."""
SET_S = 60.0
"""Maximum seconds by which system clock and uptime may diverge between counts; otherwise the clock was set."""
COLLECT = 10
"""Number of counts between collections of old jobs."""
QUOTA_DAYS = 1.0
"""Minimum number of days after a job's end before the quota may delete the job."""
OVER = (
    "SELECT id, status, (SELECT counted FROM clock) - over_at AS over_s, "
    # If a job ended before its submission, or before the store's creation, its times come from a wrong clock.
    "ended >= created AND ended >= (SELECT made FROM clock) AS is_sound FROM jobs "
    "WHERE status IN ('done', 'failed', 'cancelled') AND over_at IS NOT NULL "
    # An unfinished job may still have to read the files of its source.
    "AND id NOT IN (SELECT source FROM jobs WHERE source IS NOT NULL AND ended IS NULL) ORDER BY over_at, number"
)
"""SQL query for jobs that are over and not required by an unfinished job, the oldest first."""


@dataclass(frozen=True)
class Removed:
    """Job that `collect` has deleted, or would delete without `dry`."""

    name: str
    """Id of the job."""
    why: str
    bytes: int


@dataclass(frozen=True)
class Collected:
    """Result of `collect`: deleted jobs, and the size of the remaining jobs."""

    removed: list[Removed]
    bytes_left: int
    """Total size of the remaining jobs in bytes."""
    served_days: float
    """Total time, in days, for which the store has been served."""


def count(store: Store) -> bool:
    """Add the time since the last call to the running time; return False if it is unknown, as after a clock change."""
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
    """Delete jobs that ended at least `keep_days` ago, then the oldest jobs until all jobs take at most `quota` bytes.

    The quota deletes no job that ended within the last QUOTA_DAYS. Queued, running and paused jobs and their sources
    are retained. With `dry`, nothing is deleted; with `only`, only jobs in `only` are. Raises StoreError.
    """
    try:
        sizes = {row["id"]: size_of_job(store, row["id"]) for row in store.database.rows("SELECT id FROM jobs")}
        left = sum(sizes.values())
        removed = []
        # Deleting takes a while: `_deleted` checks again whether a job is in use.
        for job in store.database.rows(OVER):
            days = job["over_s"] / DAY_S
            is_old = keep_days is not None and days >= keep_days and job["is_sound"]
            is_too_much = quota is not None and left > quota and days >= QUOTA_DAYS
            if (is_old or is_too_much) and (only is None or job["id"] in only) and (dry or _deleted(store, job["id"])):
                why = f"{job['status']}, then stored for {counted(round(days), 'day')}"
                why += "" if is_old else "; the quota is exceeded"
                removed.append(Removed(job["id"], why, sizes.get(job["id"], 0)))
                left -= sizes.get(job["id"], 0)
        served = store.database.rows("SELECT counted FROM clock")[0][0]
    except OSError as error:
        raise StoreError(f"Cannot clean {store.folder}: {error}.") from error
    return Collected(removed, left, round(served / DAY_S, 2))


def size_of_job(store: Store, job: str) -> int:
    """Return the total size of a job's files in bytes, or 0 if there are none. Raises OSError."""
    try:
        return size_of(store.job_folder(job).path)
    except FileNotFoundError:  # a file was deleted meanwhile
        return 0


def _deleted(store: Store, job: str) -> bool:
    """Delete a job; return False if the job is in use or was deleted meanwhile."""
    try:
        store.delete(job, only_over=True)
    except (ConflictError, UnknownJobError):
        return False
    return True


@contextmanager
def housekeeping(folder: Path, keep_days: float | None, quota: int | None) -> Iterator[None]:
    """Within the context, run a thread that regularly calls `count`, and deletes jobs with `collect`.

    Each collection logs the jobs that the next one will delete. Without `keep_days` and `quota` nothing is deleted.
    """
    over = threading.Event()

    def run() -> None:
        # The thread opens its own store, since a connection to SQLite belongs to the thread that opened it.
        store = Store.existing(folder)
        announced: set[str] = set()
        counted = 0
        while True:
            try:
                # Nothing is deleted right after a start, or after a clock was set.
                if count(store):
                    if counted % COLLECT == 0 and (keep_days, quota) != (None, None):
                        announced = _collect(store, keep_days, quota, announced)
                    counted += 1
            except StoreError as error:  # the next count may succeed
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


def _collect(store: Store, keep_days: float | None, quota: int | None, announced: Collection[str]) -> set[str]:
    """Delete the announced jobs; log the jobs that the next collection will delete, and return their ids."""
    for job in collect(store, keep_days, quota, only=announced).removed:
        log_event("removed", **vars(job))
    following = collect(store, keep_days, quota, dry=True).removed
    for job in following:
        log_event("to be removed", logging.WARNING, **vars(job))
    return {job.name for job in following}
