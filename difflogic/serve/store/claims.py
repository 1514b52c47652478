"""Which job a worker takes next, and which engines workers offer."""

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from difflogic.serve.store.records import engines_of

GRACE_S = 10.0
"""Seconds after the end of a lease in which the supervisor ends its worker: only then others may take the job."""
# Workers without a job mark themselves as seen every 5 s, and those with one at every heartbeat, so that a minute of
# silence is far more than a busy machine explains.
ALIVE_S = 60.0
"""A worker that was not seen for so long does not keep the jobs of its device from others."""
BACK_OFF_S = (0.0, 1.0, 5.0, 20.0)
"""Seconds before the second try, the third, and so on; the last one counts for all that follow."""
SWEEPS = "sweeps"
"""In the place of a device: the worker conducts sweeps, whose trials are jobs of their own."""
READY = "(not_before <= ? OR not_before > ?)"
"""In SQL, a job whose back-off is over, with `ready_at`."""
TRAINS = "kind IN ('train', 'sweep')"
"""In SQL, the jobs that need a device: a sweep begins when there is one for its trials."""
QUEUED = "jobs INDEXED BY queue WHERE status = 'queued'"
"""In SQL, the jobs that wait; of what the index holds no row is read, for each of these has kilobytes."""
OTHER_KINDS = "jobs INDEXED BY other_kinds WHERE status = 'queued' AND kind != 'train'"
"""In SQL, those of them that are no trainings. They are looked for often, among thousands that are."""
NAMES = "SELECT value FROM json_each(?)"
"""In SQL, the names of a list in JSON: a list in the query would have as many marks, and none where it is empty."""
PARENT = "SELECT 1 FROM jobs AS sweep WHERE sweep.id = jobs.parent AND sweep.status != 'running'"
"""In SQL, whether a trial's sweep is paused or over: then it is not trained."""


@dataclass(frozen=True)
class NextJob:
    """How a worker's next job is chosen, at one moment.

    A training that ran on a device before stays there, so that a run does not change its engine in the middle; only
    where that device has had no worker for ALIVE_S may another take it.
    """

    device: str
    engines: list[str]
    now: float
    only: str | None = None
    """The ids of the trainings that may be chosen, in JSON, or None for all."""

    def next(self, connection: sqlite3.Connection) -> sqlite3.Row | None:
        trainings = (
            f"{QUEUED} AND kind = 'train' AND NOT EXISTS ({PARENT}) AND (? IS NULL OR id IN ({NAMES})) AND (device = ? "
            f"OR engine IN ({NAMES}) AND (device IS NULL OR device NOT IN (SELECT device FROM workers WHERE seen > ?)))"
        )
        kind, values = f"{OTHER_KINDS} AND kind != 'sweep'", list[Any]()
        if self.engines:
            kind, values = trainings, [self.only, self.only, self.device, json.dumps(self.engines), self.now - ALIVE_S]
        elif self.device == SWEEPS:
            kind = f"{OTHER_KINDS} AND kind = 'sweep' AND engine IN ({NAMES})"
            values = [json.dumps(sorted(offered(connection, self.now)))]
        # Among jobs of the same priority the owner who was served longest ago is next, or never was, and of an owner
        # the oldest job: who submits a thousand jobs does not hold up who submits one. A job in back-off is passed
        # over, and does not hold up those behind it.
        turn = "(SELECT turn FROM turns WHERE turns.owner = jobs.owner AND trains = ?)"
        first = f"SELECT number FROM {kind} AND {READY} ORDER BY priority DESC, {turn}, number LIMIT 1"
        row: sqlite3.Row | None = connection.execute(
            f"SELECT * FROM jobs WHERE number = ({first})", (*values, *ready_at(self.now), bool(self.engines))
        ).fetchone()
        return row

    def took(self, connection: sqlite3.Connection, owner: str) -> None:
        """Note that it was this owner's turn."""
        connection.execute(
            "INSERT OR REPLACE INTO turns SELECT ?, ?, coalesce(max(turn), 0) + 1 FROM turns",
            (owner, bool(self.engines)),
        )

    def overdue(self, connection: sqlite3.Connection) -> sqlite3.Row | None:
        # Other workers wait GRACE_S longer than the supervisor, so that two never train into the same folder: by then
        # the old process has been ended, and the run folder's own lock is the last safeguard.
        query = "SELECT * FROM jobs WHERE status = 'running' AND lease_until < ? LIMIT 1"
        row: sqlite3.Row | None = connection.execute(query, (self.now - GRACE_S,)).fetchone()
        return row


def ready_at(now: float) -> tuple[float, float]:
    """The values of READY. No back-off is longer than the longest: one that seems so was set by another clock."""
    return now, now + BACK_OFF_S[-1]


def offered(connection: sqlite3.Connection, now: float) -> set[str]:
    """The engines that trainings may ask for at a moment, by the workers that were seen within ALIVE_S."""
    rows = connection.execute("SELECT engines FROM workers WHERE seen > ?", (now - ALIVE_S,))
    return {engine for row in rows for engine in engines_of(row)}


def missing(engine: str, engines: Collection[str]) -> str | None:
    """A sentence where the engine is not among those that workers offer."""
    if engine in engines:
        return None
    if not engines:
        return "There is no worker to train it."
    return f"No worker offers the engine {engine}: the workers offer {', '.join(sorted(engines))}."
