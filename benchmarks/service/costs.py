"""What the server's answers cost it: seconds of a processor, which other work on the machine changes little.

The store is that of the load: 1000 jobs wait, one is trained, here by hand, so that nothing else computes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.service import load
from benchmarks.service.servers import Served
from benchmarks.store import Line
from difflogic.config import presets
from difflogic.engine.api import EpochMetrics, Evaluation
from difflogic.runs.journal import Journal, Row
from difflogic.serve.api.auth import OPERATOR
from difflogic.serve.store.jobs import JobSpec
from difflogic.serve.store.presence import Presence
from difflogic.serve.store.store import Store

NAME = "by-hand"
EPOCHS = 6000
"""Epochs that are trained before anything is asked."""
HEARTBEAT_S = 0.2
PER_HEARTBEAT = 12
"""Epochs between two heartbeats, as a small job on two cores has them."""
FRAME = {"epoch": 1, "bits": "A" * 4000}
"""A text as long as a frame of a small job."""


class Training:
    """A worker by hand: it writes rows as a run does, and sends heartbeats."""

    def __init__(self, store: Store, spec: JobSpec) -> None:
        self._store = store
        store.submit(OPERATOR, spec)
        self._presence = Presence(store.folder, NAME)
        store.register_worker(NAME, "cpu", "nothing", 1, ["auto"])
        claimed = store.claim(NAME, "cpu", {"auto"}, 1000)
        assert claimed is not None
        self.job, self._lease = claimed[0].id, claimed[1]
        folder = store.job_folder(self.job)
        folder.run.mkdir(parents=True)
        self._frame = folder.frame
        self._journal = Journal(folder.run, [23], [[]])
        folder.gates.write_text("".join(_gates(epoch) for epoch in range(1, EPOCHS + 1, 20)))
        folder.log.write_text("epoch 100: soft loss 12.3, hard loss 4\n" * (EPOCHS // 20))
        self.epoch = 0

    def train(self, epochs: int) -> None:
        self._journal.append([[_row(self.epoch + 1 + number) for number in range(epochs)]])
        self.epoch += epochs
        self._store.heartbeat(self.job, self._lease, 1000, epoch=self.epoch, epochs_per_s=60.0, phase="training")

    def draw(self) -> None:
        self._frame.with_suffix(".new").write_text(json.dumps(FRAME))
        self._frame.with_suffix(".new").replace(self._frame)

    def close(self) -> None:
        self._journal.close()
        self._presence.close()


def _row(epoch: int) -> Row:
    made = Row.of(EpochMetrics(epoch, 1234.5678901234 / epoch), 0.015 * epoch)
    return made.evaluated(Evaluation(130, 120, 3000, 31), 110, 150) if epoch % 20 == 0 else made


def _gates(epoch: int) -> str:
    layers = [{"name": f"layer {number}", "counts": list(range(16))} for number in range(10)]
    return json.dumps({"epoch": epoch, "layers": layers}) + "\n"


@contextmanager
def _prepared(folder: Path, jobs: int) -> Iterator[tuple[Training, str]]:
    """The store, the job that is trained, and one that waits."""
    store = Store.open(folder, durable=False)
    checkerboard = presets.checkerboard().with_(train={"epochs": 1_000_000}).to_dict()
    training = Training(store, JobSpec("train", "checkerboard", checkerboard, priority=10))
    training.train(EPOCHS)
    training.draw()
    lizard = presets.get("lizard").to_dict()
    waits = [store.submit(OPERATOR, JobSpec("train", f"waits {number}", lizard))[0].id for number in range(jobs)]
    try:
        yield training, waits[-1]
    finally:
        training.close()
        store.close()


def measure(folder: Path, reads: int = 200, jobs: int = 1000, clients: int = 100, seconds: float = 10.0) -> Line:
    """A line for the results: of each kind of read the seconds for 1000, and a second's share of listeners."""
    with _prepared(folder, jobs) as (training, waiting), Served(folder, "none").running() as service:
        cost = {name: asyncio.run(_asked(service, path, reads)) for name, path in load.reads_of(training.job).items()}
        cost["priority"] = asyncio.run(_asked(service, f"/jobs/{waiting}", reads, {"priority": 1}))
        listening = asyncio.run(_heard(service, training, clients, seconds))
    return {"case": "costs", "jobs": jobs, "s_per_1000": cost, "clients": clients, "listening_cores": listening}


async def _asked(service: Served, path: str, count: int, body: Any = None) -> float:
    """Seconds of the server for 1000 of these requests."""
    connection = load.Connection(service.address)
    method = "GET" if body is None else "PATCH"
    # Once before the clock starts: the first answer fills caches.
    await connection.ask(method, load.API + path, body)
    before = load.cpu_s(service.process.pid)
    for _ in range(count):
        status, answer = await connection.ask(method, load.API + path, body)
        assert status == 200, answer
    connection.close()
    return round((load.cpu_s(service.process.pid) - before) / count * 1000, 2)


async def _heard(service: Served, training: Training, clients: int, seconds: float) -> float:
    """Seconds of the server for a second of so many listeners, while the job goes on."""
    heard = load.Load()
    paths = [f"{load.API}/jobs/{training.job}/events?after={1 << 40}", f"{load.API}/events"]
    tasks = [asyncio.create_task(load.listen(service.address, paths[number % 2], heard)) for number in range(clients)]
    await asyncio.sleep(load.SETTLE_S)
    before, begun, turn = load.cpu_s(service.process.pid), time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        training.train(PER_HEARTBEAT)
        if turn % 3 == 0:
            training.draw()
        turn += 1
        await asyncio.sleep(HEARTBEAT_S)
    took = (load.cpu_s(service.process.pid) - before) / (time.perf_counter() - begun)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not heard.errors, heard.errors[0]
    assert heard.events
    return round(took, 3)
