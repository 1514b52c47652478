"""Assign jobs to workers under leases.

A lease determines which worker may write to a job, and until when. Its number grows with every claim and every loss,
and each write states the number: a late write of a worker that lost the job is refused. An example, in seconds:

    time   what happens                                   lease  until  lost   vain   saved
                                                                        tries  tries
       0   cpu-1 claims it for 30 s                           1     30      0      0       0
      25   it compiles; another thread prolongs the lease     1     55      0      0       0
      40   it trains; a heartbeat asks for 12 s more          1     52      0      0       0
      60   a heartbeat after a checkpoint; then it hangs      1     72      0      0     100
    72.5   its supervisor detects that, kills it, and calls
           `expire_worker`: the job is queued again           2      -      1      1     100
    72.8   cpu-2 claims it, and continues from epoch 100      3  102.8      1      1     100
      75   a write by cpu-1 under lease 1: LeaseLostError
      90   cpu-2 is killed before a newer checkpoint          4      -      2      2     100
      91   the back-off of 1 s is over: cpu-3 claims it       5    121      2      2     100

`lost_tries` counts all lost leases, and is shown to users. `vain_tries` counts the leases lost since the last new
checkpoint: at MAX_TRIES the job fails. A loss after a newer checkpoint than `tried_progress`, the progress at the last
loss, sets `vain_tries` to 1. If the supervisor has ended too, another worker takes over GRACE_S after the lease's end.
"""

import json
import platform
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from difflogic.errors import StoreError
from difflogic.serve.store import presence, records
from difflogic.serve.store.claims import BACK_OFF_S, NAMES, PARENT, QUEUED, TRAINS, NextJob, missing, offered
from difflogic.serve.store.jobs import STATUS_AFTER, JobRecord, LeaseLostError, Wanted
from difflogic.serve.store.queue import sooner_here
from difflogic.serve.store.records import FULL, Records, as_stored, engines_of, job_of

MAX_TRIES = 5
"""Number of consecutively lost leases without a new checkpoint after which a job fails."""
# Columns that a heartbeat may set. The names become part of SQL, so no other names are allowed.
PROGRESS = frozenset((
    "phase", "attempt", "progress", "goal", "soft_loss", "hard_loss", "solved", "active_gates", "progress_per_s",
    "saved_progress", "result", "trained_s", "compared", "score",
))  # fmt: skip


@dataclass(frozen=True)
class HeartbeatReply:
    """Store's reply to a worker's heartbeat."""

    wanted: Wanted | None
    watched: bool
    """True if a web page shows the job and needs state frames."""


@dataclass(frozen=True)
class Worker:
    """Process that takes jobs."""

    name: str
    device: str
    """Device of the worker, such as `cpu` or `gpu:0`."""
    description: str
    """Model name of the device, such as that of a GPU."""
    pid: int
    host: str
    started: str
    seen: float
    """Time at which the worker was last seen, in seconds since 1970."""
    job: str | None
    memory: int | None
    """Memory in use by the worker's process, in bytes."""
    progress_per_s: float | None
    engines: tuple[str, ...]
    """Engines on which the worker trains; empty for post-processing workers."""


class Leases(Records):
    """Methods of the Store that workers and supervisors use."""

    # workers ------------------------------------------------------------------------------------------

    def register_worker(
        self, name: str, device: str, description: str, pid: int, engines: Collection[str] = (), host: str | None = None
    ) -> None:
        """Add a worker that is ready and holds its Presence lock; `host` is its machine's name, by default this one."""
        self.database.write(
            "INSERT OR REPLACE INTO workers (name, device, description, pid, host, started, seen, engines) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(name, device, description, pid, host or platform.node(), self._now(), self.clock(), ",".join(engines)),
        )

    def describe_worker(self, name: str, description: str) -> None:
        """Store `description`, the model name of a worker's device, once the worker has opened the device."""
        self.database.write("UPDATE workers SET description = ? WHERE name = ?", description, name)

    def mark_seen(self, name: str, memory: int | None = None) -> None:
        """Mark a worker without a job as alive, and store its `memory`; a worker with a job sends heartbeats."""
        self.database.write("UPDATE workers SET seen = ?, memory = ? WHERE name = ?", self.clock(), memory, name)

    def workers(self) -> list[Worker]:
        rows = self.database.rows("SELECT * FROM workers ORDER BY device, name")
        names = [field.name for field in fields(Worker)]
        return [Worker(**{name: row[name] for name in names} | {"engines": engines_of(row)}) for row in rows]

    def unregister_worker(self, name: str) -> None:
        """Remove a worker that ends normally and without a job."""
        self.database.write("DELETE FROM workers WHERE name = ?", name)

    # leases -------------------------------------------------------------------------------------------

    def claim(self, worker: str, device: str, engines: Collection[str], lease_s: float) -> tuple[JobRecord, int] | None:
        """Lease the next job to a worker; return the job and the lease's number, or None if there is no job for it.

        The highest priority is first, then the owner served longest ago, then the oldest job. With `engines`, only
        trainings that request one of them are chosen, otherwise other kinds. A training stays on its device if that has
        a worker. An idle processor takes an `auto` job that is queued for a GPU if it would finish the job sooner.
        """
        # The read and the claim use the same time.
        selection = NextJob(device, list(engines), self.clock())
        # Workers poll a few times a second, mostly in vain, so the first search only reads, which blocks no writer.
        with self.database.reading() as connection:
            is_idle = selection.overdue(connection) is None and selection.next(connection) is None
        if is_idle:
            spare = sooner_here(self) if "cpu" in engines and "auto" not in engines else []
            if not spare:
                return None
            selection = replace(selection, engines=["auto"], only=json.dumps(spare))
        with self._recorded() as connection:
            # The supervisor of a job whose lease ended long ago is probably gone, so this worker expires the lease.
            while (late := selection.overdue(connection)) is not None:
                self._requeue(connection, late, "its worker made no progress and its lease ended")
            # The transaction searches again: another worker may have taken the job since the read.
            row = selection.next(connection)
            if row is None:
                return None
            # The lease gets a new number: late writes of other workers have smaller numbers.
            lease = row["lease"] + 1
            self._assign(connection, worker, row["id"])
            selection.took(connection, row["owner"])
            job = self.change(
                connection,
                row["id"],
                status="running",
                wanted=None,
                waits_for=None,
                # A job that continues keeps the time of its first start.
                started=row["started"] or self._now(),
                device=device if engines else "cpu",
                phase="starting",
                worker=worker,
                lease=lease,
                lease_until=selection.now + lease_s,
            )
            return job, lease

    def awaits(self, device: str) -> bool:
        """Return whether a job is queued for workers without a device; `device` is their name, such as `follow-ups`."""
        with self.database.reading() as connection:
            return NextJob(device, [], self.clock()).next(connection) is not None

    def heartbeat(
        self, job: str, lease: int, lease_s: float, memory: int | None = None, **progress: Any
    ) -> HeartbeatReply:
        """Extend a lease to `lease_s` seconds from now, and store the columns in `progress`, which PROGRESS must list.

        `memory` is the worker's memory in bytes. Raises LeaseLostError for a lost lease, StoreError for other columns.
        """
        columns = _columns(progress)
        with self.database.writing() as connection:
            row, now = self._leased(connection, job, lease), self.clock()
            # Only changed values make a new version, which wakes listeners; users do not see the end of the lease.
            changed = {name: value for name, value in columns.items() if row[name] != value}
            # The new end counts from now, not from the old end, so that frequent heartbeats do not add up.
            connection.execute("UPDATE jobs SET lease_until = ? WHERE id = ?", (now + lease_s, job))
            if "attempt" in changed:  # a new attempt begins with epoch 1, below `tried_progress`
                changed |= {"vain_tries": 0, "tried_progress": 0}
            if changed:
                # Heartbeats write no record of the job, which would wear out the disk: the next record has the values.
                records.progress(connection, job, **changed)
            connection.execute(
                "UPDATE workers SET seen = ?, memory = COALESCE(?, memory), progress_per_s = ? WHERE name = ?",
                (now, memory, progress.get("progress_per_s", row["progress_per_s"]), row["worker"]),
            )
            # Requests are returned with the heartbeat, so that workers need no port and no thread.
            wanted = row["wanted"]
            if wanted is None and row["parent"] is not None:
                # A trial stops and continues with its sweep.
                query = f"SELECT 1 FROM jobs WHERE id = ? AND EXISTS ({PARENT})"
                wanted = None if connection.execute(query, (job,)).fetchone() is None else "requeue"
            return HeartbeatReply(wanted, row["watched_until"] > now)

    def prolong(self, job: str, lease: int, lease_s: float) -> None:
        """Extend a lease to `lease_s` seconds from now, from any thread. Raises LeaseLostError."""
        with self.database.writing() as connection:
            row, now = self._leased(connection, job, lease), self.clock()
            connection.execute("UPDATE jobs SET lease_until = ? WHERE id = ?", (now + lease_s, job))
            connection.execute("UPDATE workers SET seen = ? WHERE name = ?", (now, row["worker"]))

    @contextmanager
    def held(self, job: str, lease: int) -> Iterator[None]:
        """Prevent the loss of a job's lease within the context, so that files can be written. Raises LeaseLostError."""
        with self.database.writing() as connection:
            self._leased(connection, job, lease)
            yield

    def finish(
        self, job: str, lease: int, status: Literal["done", "failed"], reason: str | None = None, **progress: Any
    ) -> JobRecord:
        """End a job with status `done` or `failed`, and store its last `progress`. Raises what `heartbeat` raises."""
        columns = _columns(progress)
        with self._recorded() as connection:
            row = self._leased(connection, job, lease)
            self._assign(connection, row["worker"], None)
            # Check and result are one transaction, so that a worker that lost the job changes nothing.
            return self.change(connection, job, **columns | UNLEASED, status=status, reason=reason)

    def release(self, job: str, lease: int, **progress: Any) -> JobRecord:
        """Queue a job again, or cancel or pause it if a user has requested that. Raises what `heartbeat` raises."""
        columns = _columns(progress)
        with self._recorded() as connection:
            row = self._leased(connection, job, lease)
            self._assign(connection, row["worker"], None)
            status = STATUS_AFTER[row["wanted"]]
            return self.change(connection, job, **columns | UNLEASED, status=status, reason=None)

    def fail_try(self, job: str, lease: int, reason: str) -> JobRecord:
        """Queue a job again after a failed try, which counts as a lost lease. Raises LeaseLostError."""
        with self._recorded() as connection:
            row = self._leased(connection, job, lease)
            self._assign(connection, row["worker"], None)
            return self._requeue(connection, row, reason)

    def overdue_job(self, worker: str) -> JobRecord | None:
        """Return a worker's job if its lease has ended, otherwise None."""
        # GRACE_S is not added, so that the supervisor can kill its worker before another worker takes the job.
        query = "SELECT * FROM jobs WHERE status = 'running' AND worker = ? AND lease_until < ?"
        row = self.database.row(query, worker, self.clock())
        return None if row is None else job_of(row)

    def expire_worker(self, worker: str, reason: str) -> list[JobRecord]:
        """Remove a worker that has ended; return its jobs, which are queued again or have stopped."""
        with self._recorded() as connection:
            query = "SELECT * FROM jobs WHERE status = 'running' AND worker = ?"
            rows = connection.execute(query, (worker,)).fetchall()
            connection.execute("DELETE FROM workers WHERE name = ?", (worker,))
            return [self._requeue(connection, row, reason) for row in rows]

    def expire_dead_workers(self) -> list[JobRecord]:
        """Expire all workers whose processes have ended, including workers of other supervisors. Raises OSError."""
        query = "SELECT name FROM workers UNION SELECT worker FROM jobs WHERE status = 'running'"
        names = [row["name"] for row in self.database.rows(query)]
        # Not in a transaction, since file systems may be slow. This is safe: workers lock their file, then register.
        gone = [name for name in names if presence.is_gone(self.folder, name)]
        return [job for name in gone for job in self.expire_worker(name, "its worker was killed")]

    # what workers offer -----------------------------------------------------------------------------------

    def offered_engines(self) -> set[str]:
        """Return the engines of all workers that were seen within ALIVE_S."""
        with self.database.reading() as connection:
            return offered(connection, self.clock())

    def explain_waiting(self, engines: Collection[str]) -> None:
        """Store why queued jobs are not taken: the disk is full, or a training needs an engine not in `engines`."""
        full = self.is_full()
        query = (
            f"SELECT id, {TRAINS} AS trains, engine, waits_for FROM {QUEUED} "
            f"AND (? OR ({TRAINS} AND engine NOT IN ({NAMES})) OR waits_for IS NOT NULL)"
        )
        rows = self.database.rows(query, full, json.dumps([*engines]))
        lacks = [missing(row["engine"], engines) if row["trains"] else None for row in rows]
        reasons = {row["id"]: FULL if full else lack for row, lack in zip(rows, lacks, strict=True)}
        # Usually nothing has changed, and a read delays no writer.
        if not (changed := [row["id"] for row in rows if reasons[row["id"]] != row["waits_for"]]):
            return
        with self.database.writing() as connection:
            for job in changed:
                # Since the read, a worker may have taken the job, or a user may have cancelled it.
                row = connection.execute("SELECT status FROM jobs WHERE id = ?", (job,)).fetchone()
                if row is not None and row["status"] == "queued":
                    records.progress(connection, job, waits_for=reasons[job])

    # helpers ------------------------------------------------------------------------------------------

    def _leased(self, connection: sqlite3.Connection, job: str, lease: int) -> sqlite3.Row:
        # A released job has the same lease number until the next claim: the status is checked too.
        query = "SELECT * FROM jobs WHERE id = ? AND lease = ? AND status = 'running'"
        row: sqlite3.Row | None = connection.execute(query, (job, lease)).fetchone()
        if row is None:
            raise LeaseLostError(f"The job {job} is no longer held under lease {lease}.")
        return row

    def _assign(self, connection: sqlite3.Connection, worker: str, job: str | None) -> None:
        connection.execute(
            "UPDATE workers SET job = ?, seen = ?, progress_per_s = NULL WHERE name = ?", (job, self.clock(), worker)
        )

    def _requeue(self, connection: sqlite3.Connection, row: sqlite3.Row, reason: str) -> JobRecord:
        """Queue a job again with back-off after a lost lease, or let it fail after MAX_TRIES without a new checkpoint.

        The lease number grows here too, so that late writes by the old worker fail even before the next claim.
        """
        # With a new checkpoint since the last loss, the count of vain tries begins again.
        tries = 1 if row["saved_progress"] > row["tried_progress"] else row["vain_tries"] + 1
        counted = {"lost_tries": row["lost_tries"] + 1, "vain_tries": tries, "tried_progress": row["saved_progress"]}
        status, text = STATUS_AFTER[row["wanted"]], f"Try {tries} of {MAX_TRIES} ended: {reason}."
        if status == "queued" and tries >= MAX_TRIES:
            status = "failed"
            text = f"Stopped after {tries} tries without a new checkpoint, the last ended because {reason}."
        not_before = self.clock() + BACK_OFF_S[min(tries, len(BACK_OFF_S)) - 1]
        values = UNLEASED | counted | {"lease": row["lease"] + 1, "not_before": not_before}
        return self.change(connection, row["id"], **values, status=status, reason=text)


def _columns(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return `progress` as columns. Raises StoreError for a name not in PROGRESS, since names become part of SQL."""
    others = sorted(set(progress) - PROGRESS)
    if others:
        raise StoreError(f"A worker may report {', '.join(sorted(PROGRESS))}, not {', '.join(others)}.")
    return as_stored(progress)


UNLEASED = {"worker": None, "lease_until": None, "wanted": None, "phase": None, "progress_per_s": None}
"""Column values of a job without a worker."""
