"""Workers, and the leases under which they hold jobs.

A lease says which worker may write to a job, and until when. Its number grows with every claim and every loss, and each
write names the number: whoever lost the job is refused, however late its write comes. The life of one job, in seconds:

    time   what happens                                   lease  until  lost   vain   saved
                                                                        tries  tries
       0   cpu-1 claims it for 30 s                           1     30      0      0       0
      25   it compiles; a thread beside that prolongs it      1     55      0      0       0
      40   it trains; a heartbeat asks for 12 s more          1     52      0      0       0
      60   a heartbeat after a checkpoint; then it hangs      1     72      0      0     100
    72.5   its supervisor sees that, ends it, and calls
           `expire_worker`: the job is queued again           2      -      1      1     100
    72.8   cpu-2 claims it, and goes on from epoch 100        3  102.8      1      1     100
      75   a write by cpu-1 under lease 1: LeaseLostError
      90   cpu-2 is killed before a newer checkpoint          4      -      2      2     100
      91   the back-off of 1 s is over: cpu-3 claims it       5    121      2      2     100

`lost_tries` counts every loss and is shown. `vain_tries` counts those since the last new checkpoint: at MAX_TRIES the
job has failed, and a checkpoint beyond `tried_progress`, where the last loss was, makes it 1 again. Where the
supervisor has gone together with its worker, another worker takes the job GRACE_S after the end of the lease.
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
from difflogic.serve.store.records import FULL, Records, as_stored, change, engines_of, job_of
from difflogic.serve.store.spare import sooner_here

MAX_TRIES = 5
"""A job has failed once so many leases in a row were lost without a new checkpoint between them."""
# The columns that a heartbeat may set are listed, since their names are written into SQL; all else of a row is the
# store's own business.
PROGRESS = frozenset((
    "phase", "attempt", "progress", "goal", "soft_loss", "hard_loss", "solved", "active_gates", "progress_per_s",
    "saved_progress", "result", "trained_s", "compared", "score",
))  # fmt: skip


@dataclass(frozen=True)
class HeartbeatReply:
    """The answer to a worker's heartbeat."""

    wanted: Wanted | None
    watched: bool
    """True where someone looks at the job, so that state frames are worth making."""


@dataclass(frozen=True)
class Worker:
    """A process that takes jobs."""

    name: str
    device: str
    """`cpu`, `gpu:0`: what it computes on."""
    description: str
    """The device's own name."""
    pid: int
    host: str
    started: str
    seen: float
    """Seconds since 1970."""
    job: str | None
    memory: int | None
    """Bytes that the process takes."""
    progress_per_s: float | None
    engines: tuple[str, ...]
    """What the trainings that it takes may have asked for; none where it does follow-ups."""


class Leases(Records):
    """The part of a Store that workers and their supervisors use."""

    # workers ------------------------------------------------------------------------------------------

    def register_worker(
        self, name: str, device: str, description: str, pid: int, engines: Collection[str] = (), host: str | None = None
    ) -> None:
        """Add a worker that is ready to the list; it holds its Presence, so that its end is seen.

        `host`: the machine that it is on, where that is not this one.
        """
        host = host or platform.node()
        values = (name, device, description, pid, host, self._now(), self.clock(), ",".join(engines))
        self.database.write(
            "INSERT OR REPLACE INTO workers (name, device, description, pid, host, started, seen, engines) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *values,
        )

    def describe_worker(self, name: str, description: str) -> None:
        """Note what the device of a worker is called, once the worker has opened it."""
        self.database.write("UPDATE workers SET description = ? WHERE name = ?", description, name)

    def mark_seen(self, name: str, memory: int | None = None) -> None:
        """Note that a worker without a job is alive; with one, heartbeats do."""
        self.database.write("UPDATE workers SET seen = ?, memory = ? WHERE name = ?", self.clock(), memory, name)

    def workers(self) -> list[Worker]:
        rows = self.database.rows("SELECT * FROM workers ORDER BY device, name")
        names = [each.name for each in fields(Worker)]
        return [Worker(**{name: row[name] for name in names} | {"engines": engines_of(row)}) for row in rows]

    def unregister_worker(self, name: str) -> None:
        """Remove a worker that ends in good order, and holds no job."""
        self.database.write("DELETE FROM workers WHERE name = ?", name)

    # leases -------------------------------------------------------------------------------------------

    def claim(self, worker: str, device: str, engines: Collection[str], lease_s: float) -> tuple[JobRecord, int] | None:
        """The next job for this worker, by priority, then in turns of owners, then age; None where there is none.

        `engines`: what trainings may have asked for; without any they are follow-ups. A training that was on a device
        goes on there, as long as that has a worker. A processor without a job of its own takes one for `auto` that
        waits for a GPU, if the processor finishes it sooner.
        """
        # One moment for all: the read and the claim judge a job by the same clock.
        selection = NextJob(device, list(engines), self.clock())
        # Workers ask a few times a second, mostly in vain: a read neither waits for a writer nor holds one up.
        with self.database.reading() as connection:
            is_idle = selection.overdue(connection) is None and selection.next(connection) is None
        if is_idle:
            spare = sooner_here(self) if "cpu" in engines and "auto" not in engines else []
            if not spare:
                return None
            selection = replace(selection, engines=["auto"], only=json.dumps(spare))
        with self._recorded() as connection:
            # Leases that ended long ago are lost now: this worker may be the only one left to see that.
            while (late := selection.overdue(connection)) is not None:
                self._requeue(connection, late, "its worker made no progress and its lease ended")
            # Searched again inside the transaction, which no other writer overlaps: since the read above another worker
            # may have taken the job.
            row = selection.next(connection)
            if row is None:
                return None
            # A number that was never given out before: a late write by anybody else names a smaller one.
            lease = row["lease"] + 1
            self._assign(connection, worker, row["id"])
            selection.took(connection, row["owner"])
            job = change(
                connection,
                row["id"],
                status="running",
                wanted=None,
                waits_for=None,
                # A job that goes on keeps the time of its first start.
                started=row["started"] or self._now(),
                ended=None,
                device=device if engines else "cpu",
                phase="starting",
                worker=worker,
                lease=lease,
                lease_until=selection.now + lease_s,
            )
            return job, lease

    def awaits(self, device: str) -> bool:
        """Whether there is a job for a worker of follow-ups, or one of sweeps."""
        with self.database.reading() as connection:
            return NextJob(device, [], self.clock()).next(connection) is not None

    def heartbeat(
        self, job: str, lease: int, lease_s: float, memory: int | None = None, **progress: Any
    ) -> HeartbeatReply:
        """Prolong a lease to `lease_s` from now, and note how far the job is: `progress` are columns of PROGRESS.

        Raises LeaseLostError where the job is no longer this worker's, StoreError for other columns.
        """
        columns = _columns(progress)
        with self.database.writing() as connection:
            row, now = self._leased(connection, job, lease), self.clock()
            # Only what is new makes a version, since versions wake listeners; nobody watches the end of the lease.
            changed = {name: value for name, value in columns.items() if row[name] != value}
            # It counts from now, and is not added to the old one: a worker that was nearly silent gets no more time.
            connection.execute("UPDATE jobs SET lease_until = ? WHERE id = ?", (now + lease_s, job))
            if "attempt" in changed:  # its epochs are counted from 1 again: tried_progress would never be passed
                changed |= {"vain_tries": 0, "tried_progress": 0}
            if changed:
                # The next record of the job has it: one for each heartbeat would wear the disk for nothing.
                records.progress(connection, job, **changed)
            connection.execute(
                "UPDATE workers SET seen = ?, memory = COALESCE(?, memory), progress_per_s = ? WHERE name = ?",
                (now, memory, progress.get("progress_per_s", row["progress_per_s"]), row["worker"]),
            )
            # Requests travel back with the heartbeat: workers listen to nothing, and need no port and no thread.
            wanted = row["wanted"]
            if wanted is None and row["parent"] is not None:
                # A trial stops with its sweep, and goes on with it.
                query = f"SELECT 1 FROM jobs WHERE id = ? AND EXISTS ({PARENT})"
                wanted = None if connection.execute(query, (job,)).fetchone() is None else "requeue"
            return HeartbeatReply(wanted, row["watched_until"] > now)

    def prolong(self, job: str, lease: int, lease_s: float) -> None:
        """Prolong a lease to `lease_s` from now, and tell nothing: for a thread beside the one that works.

        Raises LeaseLostError as `heartbeat` does.
        """
        with self.database.writing() as connection:
            row, now = self._leased(connection, job, lease), self.clock()
            connection.execute("UPDATE jobs SET lease_until = ? WHERE id = ?", (now + lease_s, job))
            connection.execute("UPDATE workers SET seen = ? WHERE name = ?", (now, row["worker"]))

    @contextmanager
    def held(self, job: str, lease: int) -> Iterator[None]:
        """Inside, nobody else gets the job: for files that only its holder may put in their place.

        Raises LeaseLostError.
        """
        with self.database.writing() as connection:
            self._leased(connection, job, lease)
            yield

    def finish(
        self, job: str, lease: int, status: Literal["done", "failed"], reason: str | None = None, **progress: Any
    ) -> JobRecord:
        """End a job as `done` or `failed`. Raises as `heartbeat` does."""
        columns = _columns(progress)
        with self._recorded() as connection:
            row = self._leased(connection, job, lease)
            self._assign(connection, row["worker"], None)
            # Check and result are one transaction: a worker that was thought lost fails here, and changes nothing.
            ended = self._now()
            return change(connection, job, **columns | UNLEASED, ended=ended, status=status, reason=reason)

    def release(self, job: str, lease: int, **progress: Any) -> JobRecord:
        """Hand a job back in good order: it becomes what someone asked for, and otherwise waits for the next worker.

        It counts as no lost try. Raises as `heartbeat` does.
        """
        columns = _columns(progress)
        with self._recorded() as connection:
            row = self._leased(connection, job, lease)
            self._assign(connection, row["worker"], None)
            # A pause or cancel decides; a worker that only ends leaves the job queued, without back-off or a lost try.
            status = STATUS_AFTER[row["wanted"]]
            ended = self._now() if status == "cancelled" else None
            return change(connection, job, **columns | UNLEASED, status=status, reason=None, ended=ended)

    def fail_try(self, job: str, lease: int, reason: str) -> JobRecord:
        """Give a job back because this try ended badly, while the worker is well: it counts as a lost lease.

        Raises LeaseLostError as `heartbeat` does.
        """
        with self._recorded() as connection:
            row = self._leased(connection, job, lease)
            self._assign(connection, row["worker"], None)
            return self._requeue(connection, row, reason)

    def overdue_job(self, worker: str) -> JobRecord | None:
        """The job of a worker whose lease has ended without another heartbeat; None while all is well."""
        # Without GRACE_S: the supervisor that asks can end its worker before anybody else gets the job.
        query = "SELECT * FROM jobs WHERE status = 'running' AND worker = ? AND lease_until < ?"
        row = self.database.row(query, worker, self.clock())
        return None if row is None else job_of(row)

    def expire_worker(self, worker: str, reason: str) -> list[JobRecord]:
        """Forget a worker that has ended, and take its jobs from it. Returns them: queued again, or failed."""
        with self._recorded() as connection:
            query = "SELECT * FROM jobs WHERE status = 'running' AND worker = ?"
            held = connection.execute(query, (worker,)).fetchall()
            connection.execute("DELETE FROM workers WHERE name = ?", (worker,))
            return [self._requeue(connection, row, reason) for row in held]

    def expire_dead_workers(self) -> list[JobRecord]:
        """Expire every worker whose process is gone, also of supervisors that are gone. Raises OSError."""
        query = "SELECT name FROM workers UNION SELECT worker FROM jobs WHERE status = 'running'"
        names = [row["name"] for row in self.database.rows(query)]
        # Outside of any transaction, as a file system may be slow; a worker locks its file before it registers.
        gone = [name for name in names if presence.is_gone(self.folder, name)]
        return [job for name in gone for job in self.expire_worker(name, "its worker was killed")]

    # what workers offer -----------------------------------------------------------------------------------

    def offered_engines(self) -> set[str]:
        """Return the engines that trainings may ask for now, by the workers that were seen within ALIVE_S."""
        with self.database.reading() as connection:
            return offered(connection, self.clock())

    def explain_waiting(self, engines: Collection[str]) -> None:
        """Say of each job that waits why: the disk is full, or it is a training for an engine that is none of these."""
        full = self.is_full()
        query = (
            f"SELECT id, {TRAINS} AS trains, engine, waits_for FROM {QUEUED} "
            f"AND (? OR ({TRAINS} AND engine NOT IN ({NAMES})) OR waits_for IS NOT NULL)"
        )
        rows = self.database.rows(query, full, json.dumps([*engines]))
        lacks = [missing(row["engine"], engines) if row["trains"] else None for row in rows]
        reasons = {row["id"]: FULL if full else lack for row, lack in zip(rows, lacks, strict=True)}
        # Nearly always nothing has changed, and a read holds up no writer.
        if not (changed := [row["id"] for row in rows if reasons[row["id"]] != row["waits_for"]]):
            return
        with self.database.writing() as connection:
            for job in changed:
                # Since they were read above, a worker may have taken it, or someone cancelled it.
                row = connection.execute("SELECT status FROM jobs WHERE id = ?", (job,)).fetchone()
                if row is not None and row["status"] == "queued":
                    records.progress(connection, job, waits_for=reasons[job])

    # helpers ------------------------------------------------------------------------------------------

    def _leased(self, connection: sqlite3.Connection, job: str, lease: int) -> sqlite3.Row:
        # A job that was handed back keeps its number until the next claim, hence the status.
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
        """Queue a job again after its lease was lost, with back-off; after MAX_TRIES it has failed.

        The lease number grows here too, and not only with the next claim: a worker that comes back late is refused even
        while nobody else has the job.
        """
        # A checkpoint beyond the last loss is progress: the job may go on failing as long as it goes on.
        tries = 1 if row["saved_progress"] > row["tried_progress"] else row["vain_tries"] + 1
        counted = {"lost_tries": row["lost_tries"] + 1, "vain_tries": tries, "tried_progress": row["saved_progress"]}
        status, ended, text = STATUS_AFTER[row["wanted"]], None, f"Try {tries} of {MAX_TRIES} ended: {reason}."
        if status == "queued" and tries >= MAX_TRIES:
            status = "failed"
            text = f"Given up after {tries} tries without a new checkpoint, the last ended because {reason}."
        if status in ("failed", "cancelled"):
            ended = self._now()
        not_before = self.clock() + BACK_OFF_S[min(tries, len(BACK_OFF_S)) - 1]
        values = UNLEASED | counted | {"lease": row["lease"] + 1, "not_before": not_before}
        return change(connection, row["id"], **values, status=status, reason=text, ended=ended)


def _columns(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Progress as columns hold it.

    Raises StoreError for a name that is not in PROGRESS: names of columns become SQL.
    """
    others = sorted(set(progress) - PROGRESS)
    if others:
        raise StoreError(f"A worker may report {', '.join(sorted(PROGRESS))}, not {', '.join(others)}.")
    return as_stored(progress)


UNLEASED = {"worker": None, "lease_until": None, "wanted": None, "phase": None, "progress_per_s": None}
"""Columns of a job that no worker holds."""
