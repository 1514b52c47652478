"""Store all jobs and their states in one SQLite file that servers and workers share.

    store = Store.open(Path("difflogic-jobs"))
    job, created = store.submit("operator", JobSpec("train", "first", config.to_dict()))
    job, lease = store.claim("cpu-1", "cpu", {"auto", "cpu"}, lease_s=60)
    store.heartbeat(job.id, lease, 15, progress=7)
    store.finish(job.id, lease, "done")

A worker claims a job under a lease, which ends unless a heartbeat extends it. Each lease has a new number, so that the
previous worker cannot write to the job: see `difflogic.serve.store.leases`. A job is on the disk when `submit` returns.
"""

import hashlib
import json
import sqlite3
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import filelock

from difflogic.errors import NotFoundError, StoreError
from difflogic.serve.store import clock, database, files, mount, recovery
from difflogic.serve.store.claims import QUEUED, missing, offered
from difflogic.serve.store.database import Database
from difflogic.serve.store.files import JOBS, STORE
from difflogic.serve.store.jobs import (
    ASKED,
    ENDED,
    ON_DEVICES,
    STATUS_AFTER,
    ConflictError,
    DiskFullError,
    JobRecord,
    JobSpec,
    QueueFullError,
    Wanted,
    goal_of,
    new_id,
)
from difflogic.serve.store.leases import Leases
from difflogic.serve.store.machine import Occupancy
from difflogic.serve.store.records import FULL, LISTED, as_stored, checksum, find, insert, is_intact, job_of, tick
from difflogic.system.files import quoted

KEPT_DELETIONS = 1000
EDITABLE = frozenset(("name", "priority", "tags"))
REMEMBER_S = 7 * 24 * 3600.0
"""Seconds for which an idempotency key is stored after its first use."""


class Store(Leases):
    """Store of jobs that all threads of a process may use. Methods raise StoreError for disk errors.

    Methods with a parameter `owner` raise UnknownJobError for a job of another owner.
    """

    @classmethod
    def open(cls, folder: Path, durable: bool = True, rebuild: bool = False) -> Self:
        """Open the store in `folder`, after creating, migrating or rebuilding it if necessary.

        `durable=False` (see Database) is for workers, whose supervisor has compared database and folders. `rebuild`
        replaces an existing database, which is moved to lost+found. Raises StoreError if database and folders do not
        match, or if another machine uses the store.
        """
        mount.refuse_shared(folder)
        try:
            files.check_kinds(folder)
            files.make_private(folder)
            (folder / JOBS).mkdir(mode=0o700, parents=True, exist_ok=True)
            occupancy = Occupancy(folder)
            store = cls(folder, Database(folder / STORE, durable, occupancy.beat))
            # The first process that opens the store after an update migrates it, under a lock.
            with filelock.FileLock(folder / "store.lock", mode=0o600):
                recovery.provide(folder, rebuild)
                database.migrate(store.database.path)
            with store.database.writing() as connection:
                store.clock = clock.begun(connection)
                if durable:
                    recovery.reconcile(folder, connection)
                    store.database.rescue = partial(recovery.rescue, folder)
        except OSError as error:
            where = f" ({error.filename})" if error.filename not in (None, str(folder)) else ""
            raise StoreError(f"Cannot use {folder} as a store: {error.strerror or error}{where}.") from error
        return store

    @classmethod
    def existing(cls, folder: Path, durable: bool = True) -> Self:
        """Open the existing store in `folder`. Raises NotFoundError if there is none."""
        if not (folder / STORE).is_file():
            if recovery.has_folders(folder):
                raise StoreError(
                    f"The store {folder} has folders of jobs but no database: start `difflogic serve {quoted(folder)}` "
                    "to rebuild it."
                )
            raise NotFoundError(f"No store in {folder}: expected a folder with which `difflogic serve` was started.")
        return cls.open(folder, durable)

    # reading ------------------------------------------------------------------------------------------

    def job(self, job: str, owner: str | None = None) -> JobRecord:
        """Return the job with the id `job`. Raises UnknownJobError."""
        with self.database.reading() as connection:
            return job_of(find(connection, job, owner))

    def counts_by_owner(self, owner: str | None = None) -> dict[str, dict[str, int]]:
        """Return the number of jobs per owner and status."""
        counts: dict[str, dict[str, int]] = {}
        query = (
            "SELECT owner, status, count(*) AS jobs FROM jobs WHERE parent IS NULL AND (? IS NULL OR owner = ?) "
            "GROUP BY owner, status ORDER BY owner"
        )
        for row in self.database.rows(query, owner, owner):
            counts.setdefault(row["owner"], {})[row["status"]] = row["jobs"]
        return counts

    def counts(self) -> dict[str, int]:
        """Return the number of jobs per status."""
        return dict(sum(map(Counter, self.counts_by_owner().values()), Counter[str]()))

    def owned(self) -> list[tuple[str, str, str, int]]:
        """Return the id, owner, status and version of every job."""
        return [tuple(row) for row in self.database.rows("SELECT id, owner, status, version FROM jobs")]

    def tags(self, owner: str | None = None) -> dict[str, int]:
        """Return the number of jobs per tag."""
        query = (
            "SELECT value, count(*) AS jobs FROM jobs INDEXED BY tagged, json_each(jobs.tags) "
            "WHERE tags != '[]' AND (? IS NULL OR owner = ?) GROUP BY value ORDER BY lower(value)"
        )
        return {row["value"]: row["jobs"] for row in self.database.rows(query, owner, owner)}

    def queue_age(self) -> float:
        """Return the seconds since the oldest queued job was submitted, or 0 if no job is queued."""
        first = f"SELECT min(number) FROM {QUEUED} AND parent IS NULL"
        oldest = self.database.row(f"SELECT created FROM jobs WHERE number = ({first})")
        return 0.0 if oldest is None else max(0.0, self.clock() - datetime.fromisoformat(oldest[0]).timestamp())

    def version(self) -> int:
        return int(self.database.rows("SELECT version FROM clock")[0][0])

    def changes(self, since: int, owner: str | None = None, limit: int = 1000) -> list[JobRecord]:
        """Return the jobs with a version above `since` in their newest state, sorted by version."""
        query = (
            f"SELECT {LISTED} FROM jobs WHERE version > ? AND parent IS NULL AND (? IS NULL OR owner = ?) "
            "ORDER BY version LIMIT ?"
        )
        return [job_of(row) for row in self.database.rows(query, since, owner, owner, limit)]

    def trials(self, sweep: str, over: bool = False) -> list[JobRecord]:
        """Return the jobs of a sweep's trials or, with `over`, only of trials that have ended."""
        query = "SELECT * FROM jobs WHERE parent = ?" + (f" AND status IN {ENDED}" if over else "")
        return [job_of(row) for row in self.database.rows(query, sweep)]

    def deletions(self, since: int, owner: str | None = None) -> list[tuple[int, str, str]]:
        """Return (version, id, owner) of jobs deleted after version `since`, at most the newest KEPT_DELETIONS."""
        query = "SELECT * FROM deletions WHERE version > ? AND (? IS NULL OR owner = ?) ORDER BY version"
        return [(row["version"], row["id"], row["owner"]) for row in self.database.rows(query, since, owner, owner)]

    def check_writable(self) -> None:
        """Raise StoreError if the store cannot be written, or if its disk is too full for jobs."""
        if self.is_full():
            raise DiskFullError(FULL)
        # This write changes nothing, and fails on a disk that is full or mounted read-only.
        self.database.write("UPDATE clock SET version = version")

    # writing ------------------------------------------------------------------------------------------

    def submit(
        self, owner: str, spec: JobSpec, idempotency_key: str | None = None, most: int | None = None
    ) -> tuple[JobRecord, bool]:
        """Queue a new job and return it with True; if the key was used before, return the earlier job with False.

        `most` is the maximum number of queued jobs of `owner`. Raises ConflictError if the key was used for another
        specification, QueueFullError if the owner has `most` queued jobs, and DiskFullError.
        """
        with self._recorded() as connection:
            if idempotency_key is not None:
                # The hash detects a key that is used for two distinct requests.
                request = hashlib.sha256(json.dumps(asdict(spec), sort_keys=True).encode()).hexdigest()
                # Key and job are one transaction: of two simultaneous requests the second gets the first one's job.
                if (earlier := self._earlier(connection, owner, idempotency_key, request)) is not None:
                    return earlier, False
            if most is not None:
                query = "SELECT count(*) FROM jobs WHERE status = 'queued' AND owner = ? AND parent IS NULL"
                # The key is checked first: a client that repeats a request gets its job even if the queue is full.
                if connection.execute(query, (owner,)).fetchone()[0] >= most:
                    raise QueueFullError(
                        f"You already have {most} queued jobs, the maximum: cancel some, or retry later."
                    )
            if spec.parent is None and self.is_full():  # a trial is queued even then, since its sweep was accepted
                raise DiskFullError(FULL)
            job = self._insert(connection, new_id(), owner, spec)
            if idempotency_key is not None:
                values = (owner, idempotency_key, request, job.id, self.clock())
                connection.execute("INSERT INTO idempotency VALUES (?, ?, ?, ?, ?)", values)
            return job, True

    def knows_key(self, owner: str, key: str) -> bool:
        """Return whether `owner` has submitted a job with this idempotency key."""
        return self.database.row("SELECT 1 FROM idempotency WHERE owner = ? AND key = ?", owner, key) is not None

    def _earlier(self, connection: sqlite3.Connection, owner: str, key: str, request: str) -> JobRecord | None:
        connection.execute("DELETE FROM idempotency WHERE created < ?", (self.clock() - REMEMBER_S,))
        query = "SELECT * FROM idempotency WHERE owner = ? AND key = ?"
        row = connection.execute(query, (owner, key)).fetchone()
        if row is None:
            return None
        if row["request"] != request:
            raise ConflictError("This Idempotency-Key was used for another request: use a new one.")
        return job_of(find(connection, row["job"], owner))

    def _insert(self, connection: sqlite3.Connection, job: str, owner: str, spec: JobSpec) -> JobRecord:
        # If there are no workers at all, no reason is stored, since jobs may be submitted before workers start.
        engines = offered(connection, self.clock())
        version = tick(connection)
        waits_for = missing(spec.engine, engines) if spec.kind in ON_DEVICES and engines else None
        values = as_stored(vars(spec)) | {
            "id": job,
            "waits_for": FULL if self.is_full() else waits_for,
            "owner": owner,
            "created": self._now(),
            "goal": goal_of(spec.config),
            "version": version,
            "recorded": version,
        }
        insert(connection, values)
        return job_of(find(connection, job))

    def ask(self, job: str, action: Wanted, owner: str | None = None) -> JobRecord:
        """Cancel, pause or requeue a job: after its worker has saved it if the job is running, otherwise immediately.

        A requeued job is queued again. Raises ConflictError if the job is over, or is paused and not to be cancelled.
        """
        with self._recorded() as connection:
            row = find(connection, job, owner)
            status = row["status"]
            if status == "running":
                # A later pause does not replace a cancel.
                return self.change(connection, job, wanted="cancel" if row["wanted"] == "cancel" else action)
            if status in ENDED or (status == "paused" and action != "cancel"):
                raise ConflictError(f"Cannot {action} the job {job}, which is {status}.")
            if action == "requeue":
                return job_of(row)
            return self.change(connection, job, status=STATUS_AFTER[action], waits_for=None)

    def resume(self, job: str, owner: str | None = None) -> JobRecord:
        """Queue a paused job, or withdraw a pending request to pause. Raises ConflictError for any other job."""
        with self._recorded() as connection:
            row = find(connection, job, owner)
            # The worker has not stopped yet, and continues if the request to pause is withdrawn.
            if row["status"] == "running" and row["wanted"] == "pause":
                return self.change(connection, job, wanted=None)
            if row["status"] != "paused":
                raise ConflictError(f"The job {job} is {row['status']}: only a paused job can be resumed.")
            return self.change(connection, job, **_REQUEUED)

    def retry(self, job: str, owner: str | None = None) -> JobRecord:
        """Queue a failed or cancelled job, which continues from its checkpoint. Raises ConflictError for other jobs."""
        with self._recorded() as connection:
            status = find(connection, job, owner)["status"]
            if status not in ("failed", "cancelled"):
                advice = " To train it again, clone it." if status == "done" else ""
                raise ConflictError(f"The job {job} is {status}: only failed or cancelled jobs can be retried.{advice}")
            return self.change(connection, job, **_REQUEUED)

    def train_on(self, trial: str, until: int | None) -> JobRecord:
        """Queue a trial again for its next rung, which ends at epoch or step `until`."""
        with self._recorded() as connection:
            job = job_of(find(connection, trial))
            request = {name: getattr(job, name) for name in ASKED} | {"options": job.options | {"until": until}}
            return self.change(connection, trial, **as_stored(request), **_REQUEUED, result=None)

    def edit(self, job: str, owner: str | None = None, **changes: Any) -> JobRecord:
        """Set columns of a job to the `changes` that are not None. Raises StoreError for a column not in EDITABLE."""
        values = {name: value for name, value in changes.items() if value is not None}
        if others := sorted(values.keys() - EDITABLE):
            raise StoreError(f"Only {', '.join(sorted(EDITABLE))} of a job can be edited, not {', '.join(others)}.")
        with self._recorded() as connection:
            row = find(connection, job, owner)
            return self.change(connection, job, **as_stored(values)) if values else job_of(row)

    def delete(self, job: str, owner: str | None = None, only_over: bool = False) -> None:
        """Delete a job and its files.

        Raises ConflictError if the job, or a job that reads its files, runs; with `only_over`, if the job is not over.
        """
        if self.job(job, owner).status != "running":
            for trial in self.trials(job):
                self.delete(trial.id)
        with ExitStack() as undo:
            with self.database.writing() as connection:
                row = find(connection, job, owner)
                if row["status"] == "running" or (only_over and row["status"] not in ENDED):
                    raise ConflictError(f"The job {job} is {row['status']}: cancel it first.")
                query = "SELECT id, kind FROM jobs WHERE source = ? AND status = 'running' AND kind != 'train'"
                reader = connection.execute(query, (job,)).fetchone()
                if reader is not None:
                    raise ConflictError(
                        f"The running {reader['kind']} job {reader['id']} uses the job {job}: cancel that job first."
                    )
                self._forget(connection, job, row["owner"], row["parent"] is None)
                files.throw_away(self.folder, job)
                undo.callback(files.take_back, self.folder, job)
            undo.pop_all()
        try:
            files.empty(self.folder, job)
        except OSError as error:
            raise StoreError(f"The job {job} was deleted, but not all of its files: {error}.") from error

    def _forget(self, connection: sqlite3.Connection, job: str, owner: str, listed: bool) -> None:
        version = tick(connection)
        connection.execute("DELETE FROM jobs WHERE id = ?", (job,))
        connection.execute("DELETE FROM idempotency WHERE job = ?", (job,))
        if listed:  # only the newest are kept; listeners that missed more list all jobs again
            connection.execute("INSERT INTO deletions VALUES (?, ?, ?)", (version, job, owner))
            newest = "SELECT version FROM deletions ORDER BY version DESC LIMIT ?"
            connection.execute(f"DELETE FROM deletions WHERE version NOT IN ({newest})", (KEPT_DELETIONS,))

    # sessions of the web page: hashes of cookies, never the cookies -----------------------------------------------

    def open_session(self, digest: str, owner: str, seconds: float) -> None:
        """Store a session that lasts `seconds`; `digest` is the hash of the session's cookie."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE expires < ?", (self.clock(),))
            values = {"hash": digest, "owner": owner, "expires": self.clock() + seconds}
            signed = (*values.values(), checksum(values))
            connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)", signed)

    def session_owner(self, digest: str) -> str | None:
        """Return the owner of a session, or None if the session does not exist or has expired."""
        row = self.database.row("SELECT * FROM sessions WHERE hash = ? AND expires >= ?", digest, self.clock())
        return None if row is None or not is_intact(row) else str(row["owner"])

    def close_session(self, digest: str) -> None:
        self.database.write("DELETE FROM sessions WHERE hash = ?", digest)

    # state frames -------------------------------------------------------------------------------------------

    def watch(self, job: str, seconds: float) -> None:
        """Request state frames from the worker of a job for the next `seconds`."""
        # This time is not shown to users, so it needs no new version. A second listener can only extend it.
        until = self.clock() + seconds
        self.database.write("UPDATE jobs SET watched_until = max(watched_until, ?) WHERE id = ?", until, job)


_REQUEUED: dict[str, Any] = {"status": "queued", "reason": None, "wanted": None, "vain_tries": 0, "not_before": 0.0}
"""Column values of a job that a user queues again."""
