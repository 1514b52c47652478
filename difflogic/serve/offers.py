"""What workers offer, and which trainings wait for something else: a worker for them may come at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from difflogic.serve.leases import ALIVE_S, TRAINS
from difflogic.serve.records import Records, change, engines_of


class Offers(Records):
    """The part of a Store that says why a job waits."""

    def offered(self) -> set[str]:
        """What trainings may ask for, by the workers that were seen of late."""
        with self.database.reading() as connection:
            return offered(connection, self.clock())

    def explain(self, engines: Collection[str]) -> None:
        """Say of each training that waits whether it is for an engine that is none of these, which workers offer."""
        marks = ", ".join("?" * len(engines))
        query = (
            f"SELECT id, engine, waits_for FROM jobs WHERE status = 'queued' AND {TRAINS} "
            f"AND (engine NOT IN ({marks}) OR waits_for IS NOT NULL)"
        )
        with self.database.reading() as connection:
            rows = connection.execute(query, tuple(engines)).fetchall()
        changed = {row["id"]: words for row in rows if (words := missing(row["engine"], engines)) != row["waits_for"]}
        if not changed:
            return
        with self.database.writing() as connection:
            for job, words in changed.items():
                row = connection.execute("SELECT status FROM jobs WHERE id = ?", (job,)).fetchone()
                if row is not None and row["status"] == "queued":
                    change(connection, job, waits_for=words)


def offered(connection: sqlite3.Connection, now: float) -> set[str]:
    """What trainings may ask for, by the workers that were seen of late."""
    rows = connection.execute("SELECT engines FROM workers WHERE seen > ?", (now - ALIVE_S,))
    return {engine for row in rows for engine in engines_of(row)}


def missing(engine: str, engines: Collection[str]) -> str | None:
    """A sentence where the engine is not among those that workers offer."""
    if engine in engines:
        return None
    if not engines:
        return "No worker is there to train it."
    return f"No worker offers {engine}: those that are there offer {', '.join(sorted(engines))}."
