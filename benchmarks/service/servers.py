"""Kill the server while clients submit and watch jobs."""

from __future__ import annotations

import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.service import jobs
from benchmarks.service.outcome import Outcome
from benchmarks.service.same import differences
from benchmarks.service.workers import AIMED
from difflogic.errors import ServiceError
from difflogic.serve.client import API, Client
from difflogic.serve.store.store import Store

LONGEST_S = 6.0
"""Maximum number of seconds from the start of a server to its kill; a job takes less time."""
QUEUE = 2
"""Number of waiting jobs, enough that the worker is never idle."""
TOKEN = "token-of-this-benchmark"


class Served:
    """Process of `difflogic serve` that can be killed and restarted with the same address."""

    def __init__(self, folder: Path, workers: str = "cpu", token: str = TOKEN) -> None:
        self.folder = folder
        self.log, self.screen = folder.with_name("server.log"), folder.with_name("screen.txt")
        self._workers, self._token = workers, token
        # The system chooses a free port. It is closed immediately, and the server uses it again after each kill.
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"

    def start(self, *options: str) -> None:
        """Start the server, and wait until it responds and has a worker. Raises TimeoutError."""
        command = [sys.executable, "-m", "difflogic.cli.main", "serve", str(self.folder)]
        begun = time.perf_counter()
        with self.log.open("a") as log, self.screen.open("a") as screen:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--workers", self._workers, *options],
                env={**os.environ, "DIFFLOGIC_TOKEN": self._token},
                stdout=screen,
                stderr=log,
                start_new_session=True,
            )
        jobs.wait(self._is_ready, "the server")
        self.ready_s = time.perf_counter() - begun

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"The server ended: {self.log.read_text()[-500:]}")
        try:
            return httpx.get(f"{self.address}{API}/ready", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(jobs.PATIENCE_S)

    @contextmanager
    def running(self) -> Iterator[Served]:
        """Run the server for the duration of a `with` block, and end it by SIGTERM."""
        self.start()
        try:
            yield self
        finally:
            self.end(signal.SIGTERM)


class Load:
    """Two client threads: one submits jobs until `over` is set, the other watches one job after the other."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.acknowledged: list[str] = []
        self.keys = 0
        self.reconnects = 0
        self.wrong: list[str] = []
        self.over = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._submit, self._watch)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _submit(self) -> None:
        request = {"config": jobs.config().to_dict(), "engine": "cpu", "name": "short"}
        with httpx.Client(base_url=self.served.address + API, headers=_headers(), trust_env=False) as client:
            while not self.over.is_set():
                self.keys += 1
                self.acknowledged.append(self._submit_one(client, request, secrets.token_urlsafe()))
                while not self.over.wait(0.2) and self._waiting(client) >= QUEUE:
                    pass

    def _submit_one(self, client: httpx.Client, request: dict, key: str) -> str:
        """Repeat the submission of a job with the same key, so that it is one job, until it is acknowledged."""
        while True:
            try:
                answer = client.post("/jobs", json=request, headers={"Idempotency-Key": key}, timeout=10)
                answer.raise_for_status()
                return answer.json()["id"]
            except httpx.TransportError:
                self.reconnects += 1
                time.sleep(0.1)

    def _waiting(self, client: httpx.Client) -> int:
        try:
            answer = client.get("/jobs", params={"status": "queued"}, timeout=10)
        except httpx.TransportError:
            return QUEUE
        return len(answer.json()["jobs"])

    def _watch(self) -> None:
        with Client(self.served.address, TOKEN) as client:
            number = 0
            while not self.over.is_set() or number < len(self.acknowledged):
                if number == len(self.acknowledged):
                    time.sleep(0.05)
                    continue
                self._follow(client, self.acknowledged[number])
                number += 1

    def _follow(self, client: Client, job: str) -> None:
        """Watch a job; record an error unless every row arrives once and in order, despite kills of the server."""
        epoch = 0
        try:
            for event in client.events(job, lost=self._lost):
                for row in event.data if event.name == "rows" else ():
                    if row["epoch"] != epoch + 1:
                        self.wrong.append(f"{job}: a client saw row {row['epoch']} after {epoch}")
                    epoch = row["epoch"]
        except ServiceError as error:
            self.wrong.append(f"{job}: {error}")
            return
        if epoch != jobs.EPOCHS:
            self.wrong.append(f"{job}: a client saw {epoch} rows")

    def _lost(self, why: str) -> None:
        self.reconnects += 1


def kill_servers(folder: Path, count: int, seed: int = 0, longest: float = LONGEST_S) -> Outcome:
    """Kill the server at `count` random moments, most in training, while clients submit and watch jobs."""
    outcome, draw = Outcome("SIGKILL of the server"), random.Random(seed)
    expected = jobs.by_hand(jobs.config(), folder / "hand")
    served = Served(folder / "store")
    served.folder.mkdir()
    begin = time.monotonic()
    served.start()
    store = Store.existing(served.folder, durable=False)
    load = Load(served)
    try:
        load.start()
        for _ in range(count):
            time.sleep(draw.uniform(0, longest))
            if draw.random() < AIMED:
                _wait_for_training(store)
            outcome.hit(next((job.phase for job in store.jobs(status="running")), "no job"))
            served.end(signal.SIGKILL)
            served.start()
        load.over.set()
        load.join()
        for job in load.acknowledged:
            jobs.ended(store, job)
    finally:
        load.over.set()
        served.end(signal.SIGTERM)
    outcome.seconds = time.monotonic() - begin
    _compare(store, load, expected, outcome)
    return outcome


def _wait_for_training(store: Store) -> None:
    jobs.wait(
        lambda: any(job.phase == "training" for job in store.jobs(status="running")), "a job to be trained", 0.002
    )


def _compare(store: Store, load: Load, expected: Path, outcome: Outcome) -> None:
    outcome.jobs, outcome.reconnects = len(load.acknowledged), load.reconnects
    outcome.wrong += load.wrong
    made = {job.id: job for job in store.jobs(limit=1_000_000)}
    if len(made) != load.keys:
        outcome.wrong.append(f"{len(made)} jobs for {load.keys} requests")
    for identity in load.acknowledged:
        job = made.get(identity)
        if job is None or job.status != "done":
            outcome.wrong.append(f"{identity}: {'lost' if job is None else job.status}")
            continue
        what = differences(store.job_folder(identity).run, expected)
        if store.job_folder(identity).log.read_text().count(" done\n") != 1:
            what.append("was not finished exactly once")
        if what:
            outcome.wrong.append(f"{identity}: {', '.join(what[:5])}")


def _headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}
