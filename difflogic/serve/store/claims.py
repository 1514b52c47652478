"""Choose the next job of a worker, and list the engines that workers offer."""

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from difflogic.serve.store.records import engines_of

GRACE_S = 10.0
"""Seconds after the end of a lease for the supervisor to end its worker, before others may take the job."""
# Workers without a job mark themselves as seen every 5 s, and those with one at every heartbeat: a minute of silence is
# far more than a busy machine explains.
ALIVE_S = 60.0
"""Seconds for which a worker that was not seen keeps the jobs of its device."""
BACK_OFF_S = (0.0, 1.0, 5.0, 20.0)
"""Seconds before the second try, the third, and so on; the last one counts for all that follow."""
SWEEPS = "sweeps"
"""Name in place of a device of a worker that runs sweeps, whose trials are jobs of their own."""
READY = "(not_before <= ? OR not_before > ?)"
"""SQL term for a job whose back-off is over, with `ready_at`."""
TRAINS = "kind IN ('train', 'sweep')"
"""SQL term for a job that needs a device: a sweep begins when there is one for its trials."""
QUEUED = "jobs INDEXED BY queue WHERE status = 'queued'"
"""SQL source of waiting jobs, whose indexed columns are read without the rows, which have kilobytes."""
OTHER_KINDS = "jobs INDEXED BY other_kinds WHERE status = 'queued' AND kind != 'train'"
"""SQL source of waiting jobs that are no trainings, which are read often, among thousands that are."""
NAMES = "SELECT value FROM json_each(?)"
"""SQL query for the names in a JSON list, which needs one parameter for any length."""
PARENT = "SELECT 1 FROM jobs AS sweep WHERE sweep.id = jobs.parent AND sweep.status != 'running'"
"""SQL query with a row if a trial's sweep is paused or over: then it is not trained."""


@dataclass(frozen=True)
class NextJob:
    """Choice of a worker's next job at one moment.

    A training that ran on a device before stays there, so that a run does not change its engine; another device may
    only take it if that one has had no worker for ALIVE_S.
    """

    device: str
    engines: list[str]
    now: float
    only: str | None = None
    """Ids of the trainings that may be chosen, in JSON, or None for all."""

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
        # Among jobs of the same priority the owner who was served longest ago, or never, is next, and of an owner the
        # oldest job: a thousand jobs of one owner do not delay another's. A job in back-off is skipped.
        turn = "(SELECT turn FROM turns WHERE turns.owner = jobs.owner AND trains = ?)"
        first = f"SELECT number FROM {kind} AND {READY} ORDER BY priority DESC, {turn}, number LIMIT 1"
        row: sqlite3.Row | None = connection.execute(
            f"SELECT * FROM jobs WHERE number = ({first})", (*values, *ready_at(self.now), bool(self.engines))
        ).fetchone()
        return row

    def took(self, connection: sqlite3.Connection, owner: str) -> None:
        """Record that it was this owner's turn."""
        connection.execute(
            "INSERT OR REPLACE INTO turns SELECT ?, ?, coalesce(max(turn), 0) + 1 FROM turns",
            (owner, bool(self.engines)),
        )

    def overdue(self, connection: sqlite3.Connection) -> sqlite3.Row | None:
        # Other workers wait GRACE_S longer than the supervisor, which has ended the old process by then, so that two
        # never write into the same folder. The run folder's own lock is the last safeguard.
        query = "SELECT * FROM jobs WHERE status = 'running' AND lease_until < ? LIMIT 1"
        row: sqlite3.Row | None = connection.execute(query, (self.now - GRACE_S,)).fetchone()
        return row


def ready_at(now: float) -> tuple[float, float]:
    """Return the parameters of READY: a back-off longer than the longest was set by another clock, and is over."""
    return now, now + BACK_OFF_S[-1]


def offered(connection: sqlite3.Connection, now: float) -> set[str]:
    """Return the engines of the workers that were seen within ALIVE_S."""
    rows = connection.execute("SELECT engines FROM workers WHERE seen > ?", (now - ALIVE_S,))
    return {engine for row in rows for engine in engines_of(row)}


def missing(engine: str, engines: Collection[str]) -> str | None:
    """Return a sentence if no worker offers an engine, or else None."""
    if engine in engines:
        return None
    if not engines:
        return "There is no worker to train it."
    return f"No worker offers the engine {engine}: the workers offer {', '.join(sorted(engines))}."
