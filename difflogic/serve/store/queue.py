"""When the jobs that wait begin: their turns are played through as workers will take them.

An example with one worker, whose job has 40 s left; ann was served last, every job takes 60 s:

    waits   owner   is taken   because
    a1      ann     2nd        ben's turn comes before hers
    a2      ann     3rd        hers again, nobody else has a job
    b1      ben     1st        he was served longest ago, and begins in 40 s, a1 in 100 s, a2 in 160 s

A duration that nobody can tell, of a follow-up say, makes unknown what comes after it on the same worker, and no more.
"""

from __future__ import annotations

import heapq
import math
import sqlite3
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass, field

from difflogic.serve.store.claims import ALIVE_S
from difflogic.serve.store.records import Records, engines_of

UNKNOWN = math.inf
"""When a worker becomes free of which nobody can tell."""
RECENT = 50
"""So many trainings that are done say how fast a device is, compared with what is predicted of it."""
WAITING = (
    "SELECT id, owner, kind IN ('train', 'sweep') AS trains, engine, device, priority, number, not_before, "
    "predicted_s, saved_epoch, epochs, attempt, until_solved FROM jobs WHERE status = 'queued' "
    "ORDER BY priority DESC, number"
)
RUNNING = (
    "SELECT id, kind IN ('train', 'sweep') AS trains, device, epoch AS saved_epoch, epochs, epochs_per_s, "
    "predicted_s, attempt, until_solved FROM jobs WHERE status = 'running'"
)
SPEEDS = (
    "SELECT device, sum(trained_s) / sum(1.0 * predicted_s * epoch / epochs) AS factor FROM ("
    "SELECT device, trained_s, predicted_s, epoch, epochs FROM jobs WHERE status = 'done' AND kind = 'train' "
    "AND restarts = 0 AND until_solved = 0 AND predicted_s > 0 AND trained_s > 0 AND epoch > 0 "
    "ORDER BY number DESC LIMIT ?) GROUP BY device"
)


@dataclass(frozen=True)
class Turn:
    """Where a job stands that waits."""

    id: str
    owner: str
    position: int | None
    """How many of those that wait for the same workers are taken before it, and 1; None: no worker that is there takes
    it."""
    begins_s: int | None
    """Seconds until a worker takes it; None: nobody can tell."""
    takes_s: int | None
    """Seconds that it takes on the worker that takes it; None: nobody can tell."""


@dataclass
class _Lane:
    """A worker, and the seconds until it is free."""

    device: str
    engines: tuple[str, ...]
    free: float


@dataclass
class _Queue:
    """The jobs of one owner that the same workers take, in their order."""

    owner: str
    lanes: frozenset[int]
    trains: bool
    jobs: deque[sqlite3.Row] = field(default_factory=deque)


def turns_of(store: Records) -> dict[str, Turn]:
    """The turn of every job that waits, by its id, in the order in which they are taken."""
    now = store.clock()
    with store.database.reading() as connection:
        waiting = connection.execute(WAITING).fetchall()
        if not waiting:
            return {}
        workers = connection.execute("SELECT * FROM workers WHERE seen > ?", (now - ALIVE_S,)).fetchall()
        running = {row["id"]: row for row in connection.execute(RUNNING)}
        factors = {row["device"]: row["factor"] for row in connection.execute(SPEEDS, (RECENT,))}
        served = {(row["owner"], row["trains"]): row["turn"] for row in connection.execute("SELECT * FROM turns")}
    lanes = [_lane(row, running.get(row["job"]), factors) for row in workers]
    if not any(not each.engines for each in lanes):  # one is started where a follow-up waits
        lanes.append(_Lane("", (), UNKNOWN))
    if store.is_full():
        lanes = [_Lane(each.device, each.engines, UNKNOWN) for each in lanes]
    return _played(waiting, lanes, factors, served, now)


def _lane(worker: sqlite3.Row, job: sqlite3.Row | None, factors: dict[str, float]) -> _Lane:
    left = 0.0
    if worker["job"] is not None:
        left = UNKNOWN if job is None else _left(job, factors)
    return _Lane(worker["device"], engines_of(worker), left)


def _left(job: sqlite3.Row, factors: dict[str, float]) -> float:
    """Seconds until a job that runs is done."""
    if job["trains"] and not job["until_solved"] and job["epochs_per_s"]:
        return float(max(0, job["epochs"] - job["saved_epoch"]) / job["epochs_per_s"])
    return _takes(job, job["device"], factors)


def _takes(job: sqlite3.Row, device: str, factors: dict[str, float]) -> float:
    """Seconds that the rest of a job takes on a device.

    What is predicted is the time on two cores: of a GPU it says nothing before one training is done there.
    """
    factor = factors.get(device, None if "gpu" in device else 1.0)
    # Epochs of a later attempt are what the earlier ones left, of how many is not known here.
    if not job["trains"] or job["until_solved"] or job["attempt"] > 1 or job["predicted_s"] is None or factor is None:
        return UNKNOWN
    return float(factor * job["predicted_s"] * (1 - min(1.0, job["saved_epoch"] / max(1, job["epochs"]))))


def _queues(waiting: Collection[sqlite3.Row], lanes: list[_Lane]) -> list[_Queue]:
    """The jobs in queues of which only the first one can be next."""
    there = {each.device for each in lanes}

    def takers(trains: int, engine: str, device: str | None) -> frozenset[int]:
        # As `NextJob` has it: a training goes on where it was, as long as that is there.
        stays = trains and device is not None and device in there
        return frozenset(
            number
            for number, lane in enumerate(lanes)
            if (engine in lane.engines and (not stays or lane.device == device) if trains else not lane.engines)
        )

    known: dict[tuple[int, str, str | None], frozenset[int]] = {}
    found: dict[tuple[str, int, frozenset[int]], _Queue] = {}
    for job in waiting:
        kind = (job["trains"], job["engine"], job["device"])
        lanes_of = known.get(kind)
        if lanes_of is None:
            lanes_of = known[kind] = takers(*kind)
        key = (job["owner"], job["trains"], lanes_of)
        found.setdefault(key, _Queue(job["owner"], lanes_of, bool(job["trains"]))).jobs.append(job)
    return list(found.values())


def _played(
    waiting: Collection[sqlite3.Row],
    lanes: list[_Lane],
    factors: dict[str, float],
    served: dict[tuple[str, int], int],
    now: float,
) -> dict[str, Turn]:
    queues, turns, taken = _queues(waiting, lanes), {}, Counter[frozenset[int]]()
    latest = max(served.values(), default=0)
    # Whichever worker is free first takes the job whose turn it is among those that it can have. A worker of which
    # nobody knows when it is free comes after all others, so that no other one is promised too early a beginning.
    free = [(lane.free, number) for number, lane in enumerate(lanes)]
    heapq.heapify(free)
    while free:
        when, number = heapq.heappop(free)
        queue = min(
            (each for each in queues if each.jobs and number in each.lanes),
            key=lambda each: (
                -each.jobs[0]["priority"], served.get((each.owner, each.trains), -1), each.jobs[0]["number"],
            ),
            default=None,
        )  # fmt: skip
        if queue is None:  # nothing that waits is for this worker
            continue
        job = queue.jobs.popleft()
        latest += 1
        served[queue.owner, queue.trains] = latest
        before = sum(count for lanes_of, count in taken.items() if lanes_of & queue.lanes)
        taken[queue.lanes] += 1
        begins, takes = max(when, job["not_before"] - now), _takes(job, lanes[number].device, factors)
        turns[job["id"]] = Turn(job["id"], queue.owner, before + 1, _whole(begins), _whole(takes))
        heapq.heappush(free, (begins + takes, number))
    rest = (Turn(job["id"], queue.owner, None, None, None) for queue in queues for job in queue.jobs)
    return turns | {each.id: each for each in rest}


def _whole(seconds: float) -> int | None:
    return None if seconds == UNKNOWN else math.ceil(seconds)
