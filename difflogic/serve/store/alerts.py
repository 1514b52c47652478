"""Ends of jobs that are still to be told to webhooks. They are noted with the end itself, and stay until they are told.

A job that is cancelled ended as its owner wished, and nobody is told.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.serve.store.jobs import JobRecord, Status, outcome

TOLD: tuple[Status, ...] = ("done", "failed")
"""The ends that are told."""
MOST = 10_000
"""So many wait at most; the oldest is forgotten first."""
WAITS_S = (10.0, 60.0, 300.0, 1800.0, 7200.0)
"""Seconds before each new try; after the last one an alert is given up."""
FIELDS = (
    "id", "name", "kind", "owner", "status", "reason", "tags", "created", "ended", "epoch", "hard_loss", "compared",
    "active_gates", "score",
)  # fmt: skip
"""What is told of a job."""


@dataclass(frozen=True)
class Alert:
    """One end of a job, for one address."""

    id: int
    url: str | None
    """The job's own webhook; None: the operator's."""
    job: str
    owner: str
    body: str
    """JSON."""
    tries: int


def note(connection: sqlite3.Connection, job: JobRecord) -> None:
    """Note that a job ended, in the transaction that ends it: for the operator's webhook, and for its own."""
    about = {name: getattr(job, name) for name in FIELDS}
    body = json.dumps({"event": "job.ended", "job": {**about, "outcome": outcome(vars(job))}})
    for url in [None, *([job.webhook] if job.webhook else [])]:
        # As late as what waits for the same address already: one that is dead costs one try at a time, however many
        # jobs end.
        connection.execute(
            "INSERT INTO alerts (url, job, owner, body, due) "
            "SELECT ?1, ?2, ?3, ?4, coalesce(max(due), 0) FROM alerts WHERE url IS ?1",
            (url, job.id, job.owner, body),
        )
    connection.execute("DELETE FROM alerts WHERE id <= (SELECT max(id) FROM alerts) - ?", (MOST,))


def due(connection: sqlite3.Connection, now: float, limit: int = 100) -> Sequence[Alert]:
    """The messages that are due, the oldest first."""
    query = "SELECT id, url, job, owner, body, tries FROM alerts WHERE due <= ? ORDER BY due, id LIMIT ?"
    return [Alert(**dict(row)) for row in connection.execute(query, (now, limit))]


def forget(connection: sqlite3.Connection, alert: Alert) -> None:
    """It was told, or nobody is to be told."""
    connection.execute("DELETE FROM alerts WHERE id = ?", (alert.id,))


def failed(connection: sqlite3.Connection, alert: Alert, now: float) -> bool:
    """Try again later, after ever longer waits, with all for the same address; False where it is given up."""
    if alert.tries >= len(WAITS_S):
        forget(connection, alert)
        return False
    connection.execute("UPDATE alerts SET tries = tries + 1 WHERE id = ?", (alert.id,))
    until = now + WAITS_S[alert.tries]
    connection.execute("UPDATE alerts SET due = max(due, ?) WHERE url IS ?", (until, alert.url))
    return True
