"""Compute the positions of queued jobs by simulating the order in which workers will take them.

Example with one worker, after ann was served last:

    queued  owner   is taken   because
    a1      ann     2nd        ann was served after ben
    a2      ann     3rd        no other owner has a queued job
    b1      ben     1st        ben was served longest ago

An idle processor takes a queued `auto` job if it finishes the job sooner than a GPU. Example: the GPU needs 600 s more
for its current job, and computes 40 times as fast as the processor. A job of 100 s on the processor would end after
602.5 s on the GPU, so the processor takes it. A job of 700 s on the processor would end after 617.5 s on the GPU, so it
stays queued for the GPU.
"""

import math
import sqlite3
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from difflogic.config.document import is_policy
from difflogic.config.schema import Config
from difflogic.devices.cost import EVALUATIONS_PER_S, cost_of
from difflogic.serve.store.claims import ALIVE_S, QUEUED
from difflogic.serve.store.jobs import JobRecord, goal_of
from difflogic.serve.store.records import Records, engines_of, job_of
from difflogic.system.processor import cores

MOST = 32
"""Maximum number of queued jobs to consider for an idle processor, which polls several times a second."""
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
"""Worker in the simulation: its device and the engines that it offers."""


@dataclass
class _Queue:
    """Queued jobs of one owner that the same workers can take, in order."""

    owner: str
    lanes: frozenset[int]
    trains: bool
    jobs: deque[sqlite3.Row] = field(default_factory=deque)


def turns_of(store: Records) -> dict[str, Turn]:
    """Return the position of each queued job by id, in the order in which workers will take the jobs."""
    with store.database.reading() as connection:
        waiting = connection.execute(WAITING).fetchall()
        if not waiting:
            return {}
        workers = connection.execute("SELECT * FROM workers WHERE seen > ?", (store.clock() - ALIVE_S,)).fetchall()
        served = {(row["owner"], row["trains"]): row["turn"] for row in connection.execute("SELECT * FROM turns")}
    lanes = [(row["device"], engines_of(row)) for row in workers]
    if all(engines for _, engines in lanes):  # post-processing workers are started on demand
        lanes.append(("", ()))
    return _simulated(_queues(waiting, lanes), served)


def _queues(waiting: Collection[sqlite3.Row], lanes: list[Lane]) -> list[_Queue]:
    """Group jobs by owner and possible workers, so that in each queue only the first job can be next."""
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

    queues: dict[tuple[str, int, frozenset[int]], _Queue] = {}
    for job in waiting:
        takes = takers(job["trains"], job["engine"], job["device"])
        queue = _Queue(job["owner"], takes, bool(job["trains"]))
        queues.setdefault((job["owner"], job["trains"], takes), queue).jobs.append(job)
    return list(queues.values())


def _simulated(queues: list[_Queue], served: dict[tuple[str, int], int]) -> dict[str, Turn]:
    turns: dict[str, Turn] = {}
    taken = Counter[frozenset[int]]()
    latest = max(served.values(), default=0)
    taking = [queue for queue in queues if queue.lanes]

    def order(queue: _Queue) -> tuple[int, int, int]:
        first = queue.jobs[0]
        return -first["priority"], served.get((queue.owner, queue.trains), -1), first["number"]

    while taking:
        queue = min(taking, key=order)
        job = queue.jobs.popleft()
        if not queue.jobs:
            taking.remove(queue)
        latest += 1
        served[queue.owner, queue.trains] = latest
        before = sum(count for lanes, count in taken.items() if lanes & queue.lanes)
        taken[queue.lanes] += 1
        turns[job["id"]] = Turn(job["id"], queue.owner, before + 1)
    rest = (Turn(job["id"], queue.owner, None) for queue in queues for job in queue.jobs)
    return turns | {turn.id: turn for turn in rest}


class _Gpu:
    """GPU with a worker, its speed and the seconds until it is free."""

    def __init__(self, worker: sqlite3.Row, job: JobRecord | None) -> None:
        self.device, self.engines = worker["device"], engines_of(worker)
        # A job that has just begun has no rate yet: its GPU counts as free and infinitely fast.
        self.free_s, self.rate = 0.0, math.inf
        if job is not None and job.progress_per_s:
            self.free_s = max(0, job.goal - job.progress) / job.progress_per_s
            self.rate = _evaluations(job) * job.progress_per_s / goal_of(job.config) or math.inf


def sooner_here(store: Records) -> list[str]:
    """Return the ids of queued jobs that an idle processor would finish sooner than a GPU."""
    turns, sooner, rate = islice(turns_of(store), MOST), [], EVALUATIONS_PER_S * cores() / 2
    with store.database.reading() as connection:
        query = "SELECT * FROM workers WHERE device GLOB 'gpu:*' AND seen > ?"
        workers = connection.execute(query, (store.clock() - ALIVE_S,)).fetchall()
        gpus = [_Gpu(worker, _job(connection, worker["job"])) for worker in workers]
        for job in filter(None, (_job(connection, turn) for turn in turns)):
            offers = [gpu for gpu in gpus if job.engine in gpu.engines and job.device in (None, gpu.device)]
            if job.kind != "train" or not offers:
                continue
            gpu, evaluations = min(offers, key=lambda gpu: gpu.free_s), _evaluations(job)
            ends = gpu.free_s + evaluations / gpu.rate
            if job.engine == "auto" and job.device is None and evaluations / rate < ends:
                sooner.append(job.id)
            else:
                gpu.free_s = ends
    return sooner


def _job(connection: sqlite3.Connection, job: str | None) -> JobRecord | None:
    row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
    return None if row is None else job_of(row)


def _evaluations(job: JobRecord) -> int:
    """Return the number of gate evaluations in a training, or 0 for agents, which a processor trains by default."""
    if job.config is None or is_policy(job.config):
        return 0
    return cost_of(Config.from_dict(job.config), job.asked.population).evaluations
