"""Where the jobs that wait stand: their turns are played through as workers will take them.

An example with one worker, where ann was served last:

    waits   owner   is taken   because
    a1      ann     2nd        ben's turn comes before hers
    a2      ann     3rd        hers again, nobody else has a job
    b1      ben     1st        he was served longest ago
"""

import sqlite3
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache

from difflogic.serve.store.claims import ALIVE_S, QUEUED
from difflogic.serve.store.records import Records, engines_of

WAITING = (
    "SELECT id, owner, kind = 'train' AS trains, engine, device, priority, number "
    f"FROM {QUEUED} ORDER BY priority DESC, number"
)


@dataclass(frozen=True)
class Turn:
    """Where a job stands that waits."""

    id: str
    owner: str
    position: int | None
    """How many of those that wait for the same workers are taken before it, and 1; None: no worker that is there takes
    it."""


Lane = tuple[str, tuple[str, ...]]
"""A worker, by what it takes: its device and its engines."""


@dataclass
class _Queue:
    """The jobs of one owner that the same workers take, in their order."""

    owner: str
    lanes: frozenset[int]
    trains: bool
    jobs: deque[sqlite3.Row] = field(default_factory=deque)


def turns_of(store: Records) -> dict[str, Turn]:
    """The turn of every job that waits, by its id, in the order in which they are taken."""
    with store.database.reading() as connection:
        waiting = connection.execute(WAITING).fetchall()
        if not waiting:
            return {}
        workers = connection.execute("SELECT * FROM workers WHERE seen > ?", (store.clock() - ALIVE_S,)).fetchall()
        served = {(row["owner"], row["trains"]): row["turn"] for row in connection.execute("SELECT * FROM turns")}
    lanes = [(row["device"], engines_of(row)) for row in workers]
    if all(engines for _, engines in lanes):  # one is started where a follow-up waits
        lanes.append(("", ()))
    return _played(_queues(waiting, lanes), served)


def _queues(waiting: Collection[sqlite3.Row], lanes: list[Lane]) -> list[_Queue]:
    """The jobs in queues of which only the first one can be next."""
    there = {device for device, _ in lanes}

    @cache
    def takers(trains: int, engine: str, device: str | None) -> frozenset[int]:
        # As `NextJob` has it: a training goes on where it was, as long as that is there.
        stays = trains and device is not None and device in there
        return frozenset(
            number
            for number, (here, engines) in enumerate(lanes)
            if ((here == device if stays else engine in engines) if trains else not engines)
        )

    found: dict[tuple[str, int, frozenset[int]], _Queue] = {}
    for job in waiting:
        lanes_of = takers(job["trains"], job["engine"], job["device"])
        key = (job["owner"], job["trains"], lanes_of)
        found.setdefault(key, _Queue(job["owner"], lanes_of, bool(job["trains"]))).jobs.append(job)
    return list(found.values())


def _played(queues: list[_Queue], served: dict[tuple[str, int], int]) -> dict[str, Turn]:
    turns: dict[str, Turn] = {}
    taken = Counter[frozenset[int]]()
    latest = max(served.values(), default=0)
    taking = [each for each in queues if each.lanes]
    while taking:
        queue = min(
            taking,
            key=lambda each: (
                -each.jobs[0]["priority"], served.get((each.owner, each.trains), -1), each.jobs[0]["number"],
            ),
        )  # fmt: skip
        job = queue.jobs.popleft()
        if not queue.jobs:
            taking.remove(queue)
        latest += 1
        served[queue.owner, queue.trains] = latest
        before = sum(count for lanes, count in taken.items() if lanes & queue.lanes)
        taken[queue.lanes] += 1
        turns[job["id"]] = Turn(job["id"], queue.owner, before + 1)
    rest = (Turn(job["id"], queue.owner, None) for queue in queues for job in queue.jobs)
    return turns | {each.id: each for each in rest}
