"""Damage a store while a server and its worker use it, and a client submits jobs.

Afterwards each acknowledged job must exist once, be done, and have the result of an undisturbed run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import httpx

from benchmarks.service import jobs
from benchmarks.service.outcome import Outcome
from benchmarks.service.same import differences
from benchmarks.service.servers import API, TOKEN, Served
from benchmarks.service.workers import in_training
from difflogic.serve.store.files import STORE
from difflogic.serve.store.store import Store

SENTENCE = "was removed or replaced while it was in use"
SUBMITTED = 4
OTHER = """
import sys
from difflogic.serve.store import machine
machine.here = lambda: machine.Machine("another", "", "another")
from difflogic.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""Program that runs the command line with the identity of another machine."""


class Struck:
    """Server with running and queued jobs, and the jobs that it acknowledged to a client."""

    def __init__(self, folder: Path) -> None:
        self.served = Served(folder / "store")
        self.acknowledged: list[str] = []
        self.wrong: list[str] = []
        self.client = httpx.Client(
            base_url=self.served.address + API,
            headers={"Authorization": f"Bearer {TOKEN}"},
            trust_env=False,
            timeout=30,
        )

    def submit(self) -> httpx.Response:
        answer = self.client.post("/jobs", json={"config": jobs.config().to_dict(), "engine": "cpu"})
        if answer.status_code == 201:
            self.acknowledged.append(answer.json()["id"])
        return answer

    def begin(self) -> None:
        """Start the server, submit jobs, and wait until the first job is in training."""
        self.served.folder.mkdir(parents=True)
        self.served.start()
        for _ in range(SUBMITTED):
            self.submit()
        store = Store.existing(self.served.folder, durable=False)
        in_training(store, self.acknowledged[0], 200)
        store.close()

    def expect_refusal(self) -> None:
        """Record an error unless a submission and `/ready` are refused with SENTENCE."""
        for answer in (self.submit(), self.client.get("/ready")):
            if answer.status_code != 503 or SENTENCE not in answer.json()["error"]["message"]:
                self.wrong.append(f"answered {answer.status_code}: {answer.text[:200]}")

    def restart(self, *options: str) -> None:
        self.served.end(signal.SIGTERM)
        self.served.start(*options)

    def end(self, expected: Path) -> list[str]:
        """Wait for all jobs, compare their runs with `expected`, and return descriptions of all errors."""
        store = Store.existing(self.served.folder, durable=False)
        for job in self.acknowledged:
            found = jobs.ended(store, job)
            what = differences(store.job_folder(job).run, expected) if found.status == "done" else [str(found.reason)]
            if store.job_folder(job).log.read_text().count(" done\n") != 1:
                what.append("was not finished exactly once")
            self.wrong += [f"{job}: {', '.join(what[:5])}"] if what else []
        if len(store.jobs(limit=1000)) != len(self.acknowledged):
            self.wrong.append(f"{len(store.jobs(limit=1000))} jobs, {len(self.acknowledged)} were acknowledged")
        store.close()
        return self.wrong

    def close(self) -> None:
        self.client.close()
        if self.served.process.poll() is None:
            self.served.end(signal.SIGTERM)


def removed(struck: Struck) -> None:
    for path in struck.served.folder.glob(f"{STORE}*"):
        path.unlink()
    struck.expect_refusal()
    struck.restart()


def log_removed(struck: Struck) -> None:
    (struck.served.folder / f"{STORE}-wal").unlink()
    struck.expect_refusal()
    struck.restart("--rebuild")


def replaced_by_an_older_one(struck: Struck) -> None:
    folder = struck.served.folder
    copy = shutil.copy(folder / STORE, folder.with_name("older"))
    struck.submit()
    for path in folder.glob(f"{STORE}*"):
        path.unlink()
    shutil.copy(copy, folder / STORE)
    struck.expect_refusal()
    struck.restart("--rebuild")


def emptied(struck: Struck) -> None:
    os.truncate(struck.served.folder / STORE, 0)
    struck.expect_refusal()
    struck.restart("--rebuild")


def moved_and_back(struck: Struck) -> None:
    folder = struck.served.folder
    away = folder.rename(folder.with_name("away"))
    struck.expect_refusal()
    away.rename(folder)


def made_again_beside_it(struck: Struck) -> None:
    """Remove the database, and start a second server, which rebuilds it while the first server still runs."""
    for path in struck.served.folder.glob(f"{STORE}*"):
        path.unlink()
    second = Served(struck.served.folder)
    with second.running():
        struck.expect_refusal()
        struck.served.end(signal.SIGTERM)
    struck.served.start()


def second_machine(struck: Struck) -> None:
    for command in (
        ["serve", "--port", "0"],
        ["gc", "--keep-days", "0"],
        ["serve", "--rebuild", "--port", "0"],
    ):
        ended = subprocess.run(
            [sys.executable, "-c", OTHER, command[0], str(struck.served.folder), *command[1:]],
            capture_output=True, text=True, timeout=jobs.PATIENCE_S, check=False,
        )  # fmt: skip
        if ended.returncode != 1 or "is used by the machine" not in ended.stderr or ended.stderr.count("\n") != 1:
            struck.wrong.append(f"{command[0]}: exit {ended.returncode}, {ended.stderr[:300]}")


def disk_full(struck: Struck) -> None:
    """Fill the separate disk of the store by a large file."""
    block = struck.served.folder / "large"
    with block.open("wb") as file:
        while True:
            try:
                file.write(bytes(1 << 20))
                file.flush()
            except OSError:
                break
    answer = struck.client.get("/ready")
    if answer.status_code != 503 or "disk" not in json.dumps(answer.json()):
        struck.wrong.append(f"a full disk is answered {answer.status_code}: {answer.text[:200]}")
    for _ in range(3):
        struck.submit()
    block.unlink()
    struck.submit()


BLOWS: dict[str, Callable[[Struck], None]] = {
    "in use: removed": removed,
    "in use: log removed": log_removed,
    "in use: replaced by an older one": replaced_by_an_older_one,
    "in use: emptied": emptied,
    "in use: moved away and back": moved_and_back,
    "in use: made again beside it": made_again_beside_it,
    "in use: a second machine": second_machine,
    "in use: disk full": disk_full,
}
SIZE = "96m"
"""Size of the disk that becomes full: enough for the worker's files and the 16 MiB that a new job requires."""


@contextmanager
def own_disk(folder: Path) -> Iterator[None]:
    """Mount a small disk in memory for the duration of a `with` block; only root may do so."""
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["/bin/umount", str(folder)], check=True)


def strike_all(folder: Path, outcome: Outcome) -> None:
    """Try each kind of damage on a separate server, and add the results to `outcome`."""
    begin = time.monotonic()
    expected = jobs.by_hand(jobs.config(), folder / "hand")
    for number, (name, strike) in enumerate(BLOWS.items()):
        place = folder / f"live-{number}"
        place.mkdir()
        with own_disk(place) if strike is disk_full else nullcontext():
            struck = Struck(place)
            try:
                struck.begin()
                outcome.hit(name)
                strike(struck)
                outcome.wrong += [f"{name}: {each}" for each in struck.end(expected)]
                outcome.jobs += len(struck.acknowledged)
            finally:
                struck.close()
    outcome.seconds += time.monotonic() - begin
