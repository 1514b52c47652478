"""Workers and what they hold. A lost lease is counted, and five in a row without a new checkpoint are enough."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from difflogic.serve import presence
from difflogic.serve.jobs import Job, LeaseLostError, Status, Wanted
from difflogic.serve.records import Records, change, engines_of, job_of

MAX_TRIES = 5
"""Leases lost without a new checkpoint between them: then the job has failed."""
BACK_OFF_S = (0.0, 1.0, 5.0, 20.0)
"""Before the second try, the third, ..."""
GRACE_S = 10.0
"""After the end of a lease, for whoever watches over its worker to end it: only then others may take the job."""
ALIVE_S = 60.0
"""A worker that was not seen for so long does not keep the jobs of its device from others."""
LOST: dict[Wanted | None, Status] = {"cancel": "cancelled", "pause": "paused", None: "queued", "requeue": "queued"}
"""What a job becomes that its worker left, by what was asked of it."""
TRAINS = "kind = 'train'"
QUEUED_FOLLOW_UPS = "jobs INDEXED BY follow_ups_by_turn WHERE status = 'queued' AND kind != 'train'"
"""In SQL, the jobs in the queue that need no device: among thousands that do, they are looked for often."""
PROGRESS = frozenset(
    ("phase", "epoch", "soft_loss", "hard_loss", "solved", "active_gates", "epochs_per_s", "saved_epoch")
)


@dataclass(frozen=True)
class Answer:
    """What a worker hears when it beats."""

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
    epochs_per_s: float | None
    engines: tuple[str, ...]
    """What the trainings that it takes may have asked for; none where it does follow-ups."""


class Leases(Records):
    """The part of a Store that workers use."""

    # workers ------------------------------------------------------------------------------------------

    def enter(self, name: str, device: str, description: str, pid: int, engines: Collection[str] = ()) -> None:
        """A worker is ready; it holds its Presence."""
        values = (name, device, description, pid, presence.host(), self._now(), self.clock(), ",".join(engines))
        with self.database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO workers (name, device, description, pid, host, started, seen, engines) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def describe(self, name: str, description: str) -> None:
        """A worker opened its device and knows what it is called."""
        with self.database.writing() as connection:
            connection.execute("UPDATE workers SET description = ? WHERE name = ?", (description, name))

    def see(self, name: str, memory: int | None = None) -> None:
        """A worker without a job is alive."""
        with self.database.writing() as connection:
            connection.execute("UPDATE workers SET seen = ?, memory = ? WHERE name = ?", (self.clock(), memory, name))

    def workers(self) -> list[Worker]:
        with self.database.reading() as connection:
            rows = connection.execute("SELECT * FROM workers ORDER BY device, name").fetchall()
        return [Worker(**dict(row) | {"engines": engines_of(row)}) for row in rows]

    def leave(self, name: str) -> None:
        """A worker without a job ends."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM workers WHERE name = ?", (name,))

    # leases -------------------------------------------------------------------------------------------

    def claim(self, worker: str, device: str, engines: Collection[str], lease_s: float) -> tuple[Job, int] | None:
        """The next job for this worker, by priority, then age; None where there is none.

        `engines`: what trainings may have asked for; without any they are follow-ups. A training that was on a device
        goes on there, as long as that has a worker.
        """
        turn = _Turn(worker, device, list(engines), self.clock())
        with self.database.reading() as connection:
            if turn.overdue(connection) is None and turn.next(connection) is None:
                return None
        with self.database.writing() as connection:
            while (late := turn.overdue(connection)) is not None:
                self._lose(connection, late, "its worker made no progress and its lease ended")
            row = turn.next(connection)
            if row is None:
                return None
            lease = row["lease"] + 1
            self._hold(connection, worker, row["id"])
            job = change(
                connection,
                row["id"],
                status="running",
                wanted=None,
                waits_for=None,
                started=row["started"] or self._now(),
                ended=None,
                device=device if engines else "cpu",
                phase="starting",
                worker=worker,
                lease=lease,
                lease_until=turn.now + lease_s,
            )
            return job, lease

    def awaits_follow_up(self) -> bool:
        """Whether one is queued that may begin."""
        with self.database.reading() as connection:
            query = f"SELECT 1 FROM {QUEUED_FOLLOW_UPS} AND not_before <= ? LIMIT 1"
            return connection.execute(query, (self.clock(),)).fetchone() is not None

    def beat(self, job: str, lease: int, lease_s: float, memory: int | None = None, **progress: Any) -> Answer:
        """The worker goes on: its lease lasts from now for `lease_s`. `progress` are columns of PROGRESS.

        Raises LeaseLostError where the job is no longer this worker's.
        """
        assert progress.keys() <= PROGRESS, progress
        with self.database.writing() as connection:
            row = self._held(connection, job, lease)
            now = self.clock()
            changed = {name: value for name, value in progress.items() if row[name] != value}
            connection.execute("UPDATE jobs SET lease_until = ? WHERE id = ?", (now + lease_s, job))
            if changed:
                change(connection, job, **changed)
            connection.execute(
                "UPDATE workers SET seen = ?, memory = COALESCE(?, memory), epochs_per_s = ? WHERE name = ?",
                (now, memory, progress.get("epochs_per_s", row["epochs_per_s"]), row["worker"]),
            )
            return Answer(row["wanted"], row["watched_until"] > now)

    def finish(
        self,
        job: str,
        lease: int,
        status: Literal["done", "failed"],
        reason: str | None = None,
        result: dict[str, Any] | None = None,
        **progress: Any,
    ) -> Job:
        """The worker is through with the job, which is `done` or `failed` now.

        Raises LeaseLostError as `beat` does.
        """
        assert progress.keys() <= PROGRESS, progress
        found = {} if result is None else {"result": json.dumps(result)}
        with self.database.writing() as connection:
            row = self._held(connection, job, lease)
            self._hold(connection, row["worker"], None)
            ended = {"ended": self._now()}
            return change(connection, job, **_FREE, **ended, status=status, reason=reason, **found, **progress)

    def release(self, job: str, lease: int, **progress: Any) -> Job:
        """The worker stopped in good order: the job is what was asked of it, and else waits for the next worker.

        Who asked may have thought better of it meanwhile. Raises LeaseLostError as `beat` does.
        """
        with self.database.writing() as connection:
            row = self._held(connection, job, lease)
            self._hold(connection, row["worker"], None)
            status = LOST[row["wanted"]]
            ended = self._now() if status == "cancelled" else None
            return change(connection, job, **_FREE, status=status, reason=None, ended=ended, **progress)

    def fall(self, job: str, lease: int, reason: str) -> Job:
        """The worker is well, but this try ended badly: it counts as one lost. Raises LeaseLostError as `beat` does."""
        with self.database.writing() as connection:
            row = self._held(connection, job, lease)
            self._hold(connection, row["worker"], None)
            return self._lose(connection, row, reason)

    def overdue(self, worker: str) -> Job | None:
        """The job of a worker that did not beat in time."""
        with self.database.reading() as connection:
            query = "SELECT * FROM jobs WHERE status = 'running' AND worker = ? AND lease_until < ?"
            row = connection.execute(query, (worker, self.clock())).fetchone()
        return None if row is None else job_of(row)

    def bury(self, worker: str, reason: str) -> list[Job]:
        """Take from a worker that ended what it held. Returns what became of it: queued again, or failed."""
        with self.database.writing() as connection:
            held = connection.execute(
                "SELECT * FROM jobs WHERE status = 'running' AND worker = ?", (worker,)
            ).fetchall()
            connection.execute("DELETE FROM workers WHERE name = ?", (worker,))
            return [self._lose(connection, row, reason) for row in held]

    def reap(self) -> list[Job]:
        """Bury every worker that is gone, however it ended. Raises OSError."""
        with self.database.reading() as connection:
            query = "SELECT name FROM workers UNION SELECT worker FROM jobs WHERE status = 'running'"
            names = [row["name"] for row in connection.execute(query)]
        gone = [name for name in names if presence.is_gone(self.folder, name)]
        return [job for name in gone for job in self.bury(name, "its worker was killed")]

    def _held(self, connection: sqlite3.Connection, job: str, lease: int) -> sqlite3.Row:
        query = "SELECT * FROM jobs WHERE id = ? AND lease = ? AND status = 'running'"
        row = connection.execute(query, (job, lease)).fetchone()
        if row is None:
            raise LeaseLostError(f"The job {job} is no longer held under lease {lease}.")
        assert isinstance(row, sqlite3.Row)
        return row

    def _hold(self, connection: sqlite3.Connection, worker: str, job: str | None) -> None:
        connection.execute(
            "UPDATE workers SET job = ?, seen = ?, epochs_per_s = NULL WHERE name = ?", (job, self.clock(), worker)
        )

    def _lose(self, connection: sqlite3.Connection, row: sqlite3.Row, reason: str) -> Job:
        """Queue a job again, with back-off, or give it up."""
        tries = 1 if row["saved_epoch"] > row["tried_epoch"] else row["tries"] + 1
        counted = {"attempts": row["attempts"] + 1, "tries": tries, "tried_epoch": row["saved_epoch"]}
        status, ended, text = LOST[row["wanted"]], None, f"Try {tries} of {MAX_TRIES} ended: {reason}."
        if status == "queued" and tries >= MAX_TRIES:
            status = "failed"
            text = f"Given up after {tries} tries without a new checkpoint, the last ended because {reason}."
        if status in ("failed", "cancelled"):
            ended = self._now()
        return change(
            connection,
            row["id"],
            **_FREE
            | {"lease": row["lease"] + 1, "not_before": self.clock() + BACK_OFF_S[min(tries, len(BACK_OFF_S)) - 1]},
            **counted,
            status=status,
            reason=text,
            ended=ended,
        )


_FREE = {"worker": None, "lease_until": None, "wanted": None, "phase": None, "epochs_per_s": None}
"""Of a job that nobody holds."""


@dataclass(frozen=True)
class _Turn:
    """Which job is a worker's next, at a moment."""

    worker: str
    device: str
    engines: list[str]
    now: float

    def next(self, connection: sqlite3.Connection) -> sqlite3.Row | None:
        marks = ", ".join("?" * len(self.engines))
        trainings = (
            f"jobs WHERE status = 'queued' AND {TRAINS} AND engine IN ({marks}) AND (device IS NULL OR device = ? OR "
            "device NOT IN (SELECT device FROM workers WHERE seen > ?))"
        )
        kind, values = QUEUED_FOLLOW_UPS, []
        if self.engines:
            kind, values = trainings, [*self.engines, self.device, self.now - ALIVE_S]
        row: sqlite3.Row | None = connection.execute(
            f"SELECT * FROM {kind} AND not_before <= ? ORDER BY priority DESC, number LIMIT 1", (*values, self.now)
        ).fetchone()
        return row

    def overdue(self, connection: sqlite3.Connection) -> sqlite3.Row | None:
        query = "SELECT * FROM jobs WHERE status = 'running' AND lease_until < ? LIMIT 1"
        row: sqlite3.Row | None = connection.execute(query, (self.now - GRACE_S,)).fetchone()
        return row
