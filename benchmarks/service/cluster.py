"""Test the loss of machines of a Ray cluster, with three nodes on this machine."""

from __future__ import annotations

import gc
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.service import jobs
from benchmarks.service.outcome import Outcome
from benchmarks.service.same import differences
from difflogic.errors import StoreError
from difflogic.serve.cluster import ClusterSupervisor, connected
from difflogic.serve.store.files import STORE
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.sweep import QUEUE, SWEEP, sweep
from difflogic.sweeps import Spec, Sweep, trial_rows
from difflogic.sweeps.course import LEDGER
from difflogic.train.signals import Stop

TRIALS = 30
"""Number of trials of a sweep, enough for a machine that joins in the middle."""
JOBS = 4
"""Number of jobs per kill, more than machines, so that some jobs wait."""


@contextmanager
def nodes() -> Iterator[Any]:
    """Run a Ray cluster with a head that runs no jobs and two machines of one core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        gc.collect()  # closes sockets of lost machines, which Ray leaves open


def kill_nodes(folder: Path, count: int, seed: int = 0) -> Outcome:
    """Kill a machine at a random epoch of its job, and add another machine, `count` times."""
    outcome, draw = Outcome("a machine is lost"), random.Random(seed)
    config = jobs.config()
    expected = jobs.by_hand(config, folder / "hand")
    store = Store.open(folder / "store")
    begin = time.monotonic()
    with nodes() as cluster, ClusterSupervisor(connected(f"ray:{cluster.address}", "this"), store.folder, ["cpu"]):
        while outcome.events < count:
            made = [store.submit("bench", jobs.spec_of(config))[0].id for _ in range(JOBS)]
            jobs.wait(lambda: len(store.workers()) == 2, "both machines")
            at = draw.randrange(config.train.eval_interval, config.train.epochs // 2)
            job, lost = _halfway(store, at)
            before = store.job(job)
            cluster.remove_node(next(each for each in cluster.list_all_nodes() if each.node_id.startswith(lost)), False)
            begun = time.monotonic()
            jobs.wait(lambda job=job: store.job(job).lost_tries or store.job(job).is_over, "the loss to be seen")
            if store.job(job).lost_tries:  # otherwise the job ended before the kill
                outcome.hit(before.phase)
                outcome.detected_s.append(time.monotonic() - begun)
            later = cluster.add_node(num_cpus=1).node_id[:8]
            while not _works(store, later):  # other workers may claim the jobs first
                made.append(store.submit("bench", jobs.spec_of(config))[0].id)
                jobs.wait(lambda each=made[-1]: store.job(each).status != "queued", "a worker")
            for each in made:
                jobs.ended(store, each)
                _compare(store, each, expected, outcome)
    if store.workers():
        outcome.wrong.append("workers were left")
    outcome.seconds = time.monotonic() - begin
    return outcome


def kill_nodes_of_sweep(folder: Path, count: int, seed: int = 0) -> Outcome:
    """Kill a machine during a sweep on a cluster, and add another machine, `count` times."""
    outcome, draw = Outcome("a machine of a sweep is lost"), random.Random(seed)
    spec = Spec.of(config=jobs.config(), over={"seed": range(TRIALS)}, metric="hard_loss", method="grid")
    whole = sweep(spec, out=folder / "whole", devices=["cpu"], workers=2)
    begin = time.monotonic()
    with nodes() as cluster:
        for number in range(count):
            _strike(cluster, spec, whole, folder / f"sweep-{number}", draw.randrange(TRIALS // 2), outcome)
    outcome.seconds = time.monotonic() - begin
    return outcome


def _strike(cluster: Any, spec: Spec, whole: Sweep, out: Path, after: int, outcome: Outcome) -> None:
    """Run a sweep, and remove the machine of the first trial in training with a number of at least `after`."""
    done: list[Sweep] = []

    def go() -> None:
        # The sweep runs in a thread, which receives no signals, so it has an explicit `stop`.
        done.append(sweep(spec, out=out, devices=["cpu"], workers=f"ray:{cluster.address}", stop=Stop()))

    going = threading.Thread(target=go)
    going.start()
    jobs.wait((out / QUEUE / STORE).exists, "the queue")
    store = Store.existing(out / QUEUE, durable=False)
    held, lost = _trained(store, after)
    outcome.hit(held.phase)
    cluster.remove_node(next(each for each in cluster.list_all_nodes() if each.node_id.startswith(lost)), False)
    later = cluster.add_node(num_cpus=1).node_id[:8]
    worked = _worked_until(store, later, going)
    going.join()
    outcome.jobs += TRIALS
    if not worked:
        outcome.wrong.append(f"{out.name}: the machine that joined got no work")
    outcome.wrong += [f"{out.name}: {each}" for each in _differences(done[0], whole)]
    shutil.rmtree(out)


def _trained(store: Store, after: int) -> tuple[JobRecord, str]:
    """Wait for a trial in training with a number of at least `after`; return the trial and its machine's id prefix."""
    found: list[tuple[JobRecord, str]] = []

    def there() -> bool:
        held = {each.job: each.name.partition("-")[0] for each in store.workers()}
        trials = [each for each in store.trials(SWEEP) if each.phase == "training" and each.id in held]
        found[:] = [(each, held[each.id]) for each in trials if each.options["trial"] >= after]
        return bool(found)

    jobs.wait(there, "a trial to be trained", 0.002)
    return found[0]


def _worked_until(store: Store, node: str, going: threading.Thread) -> bool:
    """Wait for the end of a sweep; return whether machine `node` ran a trial."""
    worked = False
    while going.is_alive():
        with suppress(StoreError):  # the queue is removed at the end
            worked |= _works(store, node)
        going.join(0.02)
    return worked


def _differences(done: Sweep, whole: Sweep) -> list[str]:
    rows = [[{**row, "seconds": None} for row in trial_rows(each)] for each in (done, whole)]
    wrong = [] if rows[0] == rows[1] else ["another table"]
    if len((done.path / LEDGER).read_text().splitlines()) != TRIALS:
        wrong.append("a trial was kept twice, or not at all")
    for each in whole.trials:
        wrong += differences(done.path / each.folder, whole.path / each.folder)
    return wrong


def _halfway(store: Store, epoch: int) -> tuple[str, str]:
    """Wait for a job in training with a checkpoint, from `epoch` on; return its id and its machine's id prefix."""
    found: list[tuple[str, str]] = []

    def there() -> bool:
        held = {each.job: each.name.partition("-")[0] for each in store.workers() if each.job is not None}
        trained = [job for job in map(store.job, held) if job.phase == "training" and job.saved_progress]
        found[:] = [(job.id, held[job.id]) for job in trained if job.progress >= epoch]
        return bool(found)

    jobs.wait(there, "a job to be saved", 0.002)
    return found[0]


def _works(store: Store, node: str) -> bool:
    """Return whether the machine with this id prefix runs a job."""
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
