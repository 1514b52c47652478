"""What becomes of jobs when a machine of a Ray cluster is lost: a real cluster of three nodes on this machine."""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.service import jobs
from benchmarks.service.outcome import Outcome
from benchmarks.service.same import differences
from difflogic.serve.cluster import ClusterSupervisor
from difflogic.serve.store.store import Store
from difflogic.system.cluster import connected

JOBS = 4
"""For each kill: more than machines, so that one waits for whoever is free."""


@contextmanager
def nodes() -> Iterator[Any]:
    """A cluster whose head computes nothing, and two machines with a core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()
        gc.collect()  # here, and not later: Ray leaves sockets of lost machines open


def kill_nodes(folder: Path, count: int, seed: int = 0) -> Outcome:
    """`count` times, a machine is killed at a random epoch of its job, and another one joins."""
    outcome, draw = Outcome("a machine is lost"), random.Random(seed)
    config = jobs.config()
    expected = jobs.by_hand(config, folder / "hand")
    store = Store.open(folder / "store")
    begin = time.monotonic()
    with nodes() as cluster, ClusterSupervisor(connected(f"ray:{cluster.address}", "this"), store.folder, ["cpu"]):
        for _ in range(count):
            made = [store.submit("bench", jobs.spec_of(config))[0].id for _ in range(JOBS)]
            jobs.wait(lambda: len(store.workers()) == 2, "both machines")
            at = draw.randrange(config.train.eval_interval, config.train.epochs)
            job, lost = _halfway(store, at)
            before = store.job(job)
            cluster.remove_node(next(each for each in cluster.list_all_nodes() if each.node_id.startswith(lost)), False)
            begun = time.monotonic()
            outcome.hit(before.phase)
            jobs.wait(lambda job=job: store.job(job).lost_tries == 1, "the loss to be seen")
            outcome.detected_s.append(time.monotonic() - begun)
            later = cluster.add_node(num_cpus=1).node_id[:8]
            while not _works(store, later):  # others are quick, and leave nothing
                made.append(store.submit("bench", jobs.spec_of(config))[0].id)
                jobs.wait(lambda each=made[-1]: store.job(each).status != "queued", "a worker")
            for each in made:
                jobs.ended(store, each)
                _compare(store, each, expected, outcome)
    if store.workers():
        outcome.wrong.append("workers were left")
    outcome.seconds = time.monotonic() - begin
    return outcome


def _halfway(store: Store, epoch: int) -> tuple[str, str]:
    """A job that has come to an epoch, and has saved, and the beginning of its machine's id."""
    found: list[tuple[str, str]] = []

    def there() -> bool:
        held = [(each.job, each.name.partition("-")[0]) for each in store.workers() if each.job is not None]
        found[:] = [
            (job, node) for job, node in held if store.job(job).progress >= epoch and store.job(job).saved_progress
        ]
        return bool(found)

    jobs.wait(there, "a job to be saved", 0.002)
    return found[0]


def _works(store: Store, node: str) -> bool:
    """Whether a machine has a job."""
    return any(each.job is not None and each.name.startswith(node) for each in store.workers())


def _compare(store: Store, job: str, expected: Path, outcome: Outcome) -> None:
    outcome.jobs += 1
    found = store.job(job)
    what = (
        differences(store.job_folder(job).run, expected)
        if found.status == "done"
        else [f"{found.status}: {found.reason}"]
    )
    if store.job_folder(job).log.read_text().count(" done\n") != 1:
        what.append("was not finished exactly once")
    if what:
        outcome.wrong.append(f"{job}: {', '.join(what[:5])}")
    else:
        store.delete(job)
