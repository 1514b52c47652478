"""Find the queued `auto` jobs that an idle processor finishes sooner than a GPU.

Example: the GPU needs 600 s more for its current job, and computes 40 times as fast as the processor. A job of 100 s on
the processor would end after 602.5 s on the GPU, so the processor takes it. A job of 700 s on the processor would end
after 617.5 s on the GPU, so it stays queued for the GPU.
"""

import math
import sqlite3
from itertools import islice

from difflogic.config.document import is_policy
from difflogic.config.schema import Config
from difflogic.devices.cost import EVALUATIONS_PER_S, cost_of
from difflogic.serve.store.claims import ALIVE_S
from difflogic.serve.store.jobs import JobRecord, goal_of
from difflogic.serve.store.queue import turns_of
from difflogic.serve.store.records import Records, engines_of, job_of
from difflogic.system.processor import cores

MOST = 32
"""Maximum number of queued jobs to consider, low since an idle processor polls several times a second."""


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
    """Return the number of gate evaluations in a training, or 0 for agents, which the processor always trains."""
    if job.config is None or is_policy(job.config):
        return 0
    return cost_of(Config.from_dict(job.config), job.asked.population).evaluations
