"""Choose the next job of a worker, and list the engines that the workers offer."""

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from difflogic.serve.store.records import engines_of

GRACE_S = 10.0
"""Seconds that other workers wait after the end of a lease, while the supervisor kills the job's old worker."""
# Workers without a job mark themselves as seen every 5 s, and workers with a job at every heartbeat: a worker that is
# not seen for a minute has ended, even if the machine is busy.
ALIVE_S = 60.0
"""Seconds after which a worker that was not seen counts as gone, so that other devices may take its device's jobs."""
BACK_OFF_S = (0.0, 1.0, 5.0, 20.0)
"""Seconds to wait before the second try, the third try, and so on; the last value applies to all later tries."""
SWEEPS = "sweeps"
"""Device name of the workers that run sweeps, whose trials are separate jobs."""
READY = "(not_before <= ? OR not_before > ?)"
"""SQL condition that a job's back-off is over, with the parameters that `ready_at` returns."""
TRAINS = "kind IN ('train', 'sweep')"
"""SQL condition that a job requires a worker with a device; a sweep requires one for its trials."""
QUEUED = "jobs INDEXED BY queue WHERE status = 'queued'"
"""SQL table and condition for queued jobs; the index avoids reading the rows of several kilobytes."""
OTHER_KINDS = "jobs INDEXED BY other_kinds WHERE status = 'queued' AND kind != 'train'"
"""SQL table and condition for queued jobs other than trainings; the index skips thousands of queued trainings."""
NAMES = "SELECT value FROM json_each(?)"
"""SQL query for the names in a JSON list, which is one parameter for any number of names."""
PARENT = "SELECT 1 FROM jobs AS sweep WHERE sweep.id = jobs.parent AND sweep.status != 'running'"
"""SQL query that returns a row if the sweep of a trial is not running, so that the trial is not trained."""


@dataclass(frozen=True)
class NextJob:
    """Selection of a worker's next job at the time `now`.

    A training stays on the device on which it started, so that its engine does not change. Another device may take the
    training only if no worker of the first device was seen within ALIVE_S.
    """

    device: str
    engines: list[str]
    now: float
    only: str | None = None
    """JSON list with the ids of the trainings that may be selected; None for all."""

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
        # Among jobs of the same priority, the owner who was served longest ago, or never, is next, with the oldest job:
        # a thousand jobs of one owner do not delay the job of another owner. A job in back-off is skipped.
        turn = "(SELECT turn FROM turns WHERE turns.owner = jobs.owner AND trains = ?)"
        first = f"SELECT number FROM {kind} AND {READY} ORDER BY priority DESC, {turn}, number LIMIT 1"
        row: sqlite3.Row | None = connection.execute(
            f"SELECT * FROM jobs WHERE number = ({first})", (*values, *ready_at(self.now), bool(self.engines))
        ).fetchone()
        return row

    def took(self, connection: sqlite3.Connection, owner: str) -> None:
        """Record that a worker has taken a job of `owner`, so that other owners are served first."""
        connection.execute(
            "INSERT OR REPLACE INTO turns SELECT ?, ?, coalesce(max(turn), 0) + 1 FROM turns",
            (owner, bool(self.engines)),
        )

    def overdue(self, connection: sqlite3.Connection) -> sqlite3.Row | None:
        # Other workers wait GRACE_S longer than the supervisor, which has ended the old process by then: two processes
        # never write into the same folder. The lock of the run folder is the last safeguard.
        query = "SELECT * FROM jobs WHERE status = 'running' AND lease_until < ? LIMIT 1"
        row: sqlite3.Row | None = connection.execute(query, (self.now - GRACE_S,)).fetchone()
        return row


def ready_at(now: float) -> tuple[float, float]:
    """Return the parameters of READY, which ignores back-offs above the maximum, since another clock has set them."""
    return now, now + BACK_OFF_S[-1]


def offered(connection: sqlite3.Connection, now: float) -> set[str]:
    """Return the engines of all workers that were seen within ALIVE_S."""
    rows = connection.execute("SELECT engines FROM workers WHERE seen > ?", (now - ALIVE_S,))
    return {engine for row in rows for engine in engines_of(row)}


def missing(engine: str, engines: Collection[str]) -> str | None:
    """Return a message that no worker offers `engine`, or None if it is among the offered `engines`."""
    if engine in engines:
        return None
    if not engines:
        return "No worker is running that can train the job."
    return f"No worker offers the engine {engine}: the workers offer {', '.join(sorted(engines))}."
