"""Compute the positions of queued jobs by simulating the order in which workers will take them.

Example with one worker, after ann was served last:

    queued  owner   is taken   because
    a1      ann     2nd        ann was served after ben
    a2      ann     3rd        no other owner has a queued job
    b1      ben     1st        ben was served longest ago
"""

import sqlite3
from collections import Counter, defaultdict, deque
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from difflogic.serve.store.claims import ALIVE_S, QUEUED
from difflogic.serve.store.records import Records, engines_of

WAITING = (
    "SELECT id, owner, kind = 'train' AS trains, engine, device, priority, number "
    f"FROM {QUEUED} ORDER BY priority DESC, number"
)


@dataclass(frozen=True)
class Turn:
    """Position of a queued job."""

    id: str
    owner: str
    position: int | None
    """Position (from 1) among the jobs queued for the same workers, or None if no current worker can take the job."""


Lane = tuple[str, tuple[str, ...]]
"""Worker in the simulation, by device and engines."""


Queues = dict[tuple[str, int, frozenset[int]], deque[sqlite3.Row]]
"""Jobs in order of the queue, by owner, by whether they are trainings, and by the numbers of the lanes that can take
them; only the first job of each entry can be next."""


def turns_of(store: Records) -> dict[str, Turn]:
    """Return the position of each queued job by id, in the order in which workers will take the jobs."""
    with store.database.reading() as connection:
        waiting = connection.execute(WAITING).fetchall()
        if not waiting:
            return {}
        workers = connection.execute("SELECT * FROM workers WHERE seen > ?", (store.clock() - ALIVE_S,)).fetchall()
        served = {(row["owner"], row["trains"]): row["turn"] for row in connection.execute("SELECT * FROM turns")}
    lanes = [(row["device"], engines_of(row)) for row in workers]
    if all(engines for _, engines in lanes):  # a post-processing worker is started for a waiting job
        lanes.append(("", ()))
    return _simulated(_queues(waiting, lanes), served)


def _queues(waiting: Collection[sqlite3.Row], lanes: list[Lane]) -> Queues:
    devices = {device for device, _ in lanes}

    @cache
    def takers(trains: int, engine: str, device: str | None) -> frozenset[int]:
        # As in `NextJob`: a training stays on its device while the device has a worker.
        stays = trains and device is not None and device in devices
        return frozenset(
            number
            for number, (lane, engines) in enumerate(lanes)
            if ((lane == device if stays else engine in engines) if trains else not engines)
        )

    queues: Queues = defaultdict(deque)
    for job in waiting:
        queues[job["owner"], job["trains"], takers(job["trains"], job["engine"], job["device"])].append(job)
    return queues


def _simulated(queues: Queues, served: dict[tuple[str, int], int]) -> dict[str, Turn]:
    turns: dict[str, Turn] = {}
    taken = Counter[frozenset[int]]()
    latest = max(served.values(), default=0)

    def order(key: tuple[str, int, frozenset[int]]) -> tuple[int, int, int]:
        first = queues[key][0]
        return -first["priority"], served.get(key[:2], -1), first["number"]

    while taking := [key for key, jobs in queues.items() if key[2] and jobs]:
        owner, trains, lanes = key = min(taking, key=order)
        job = queues[key].popleft()
        latest += 1
        served[owner, trains] = latest
        before = sum(count for others, count in taken.items() if others & lanes)
        taken[lanes] += 1
        turns[job["id"]] = Turn(job["id"], owner, before + 1)
    rest = (Turn(job["id"], job["owner"], None) for jobs in queues.values() for job in jobs)
    return turns | {turn.id: turn for turn in rest}
