"""A machine elsewhere that trains a server's jobs: `difflogic worker https://lab:8765`.

It has a store and workers of its own, with all that watches over them, and between the two stores stands a Relay:

    the server's store       Relay                          this machine's store
    a job is queued     ->   claims it, under a lease,  ->  the same job, with the files that it has so far
                             and takes its files
    rows, checkpoints   <-   sends what has changed,    <-  a worker trains it
    and progress             then says how far it is
    somebody pauses it  ->   hears of it                ->  its worker saves and stops
    done                <-   sends the last files       <-  done

Where this machine is lost, or cut off for longer than its lease, the job is queued again over there, and goes on from
the last checkpoint that arrived, bit for bit. A relay that comes back late is refused, and forgets the job here.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from urllib.parse import quote

import difflogic
from difflogic.errors import ServiceError, StoreError
from difflogic.runs import checkpoint
from difflogic.serve.client import Client
from difflogic.serve.log import log_event
from difflogic.serve.store import mount
from difflogic.serve.store.jobs import ENDED, JobRecord, Wanted
from difflogic.serve.store.leases import PROGRESS
from difflogic.serve.store.store import Store
from difflogic.serve.worker.devices import engines_of
from difflogic.serve.worker.supervisor import Supervisor

REMOTE = "remote-"
"""How the names of workers on other machines begin."""
POLL_S = 0.5
LEASE_S = 30.0
"""Seconds of silence after which the server gives a job to others."""
SEND_S = 1.0
"""Seconds between two looks for files to send, where no new checkpoint is told."""
WATCHED_S = 10.0
GROWING = (".jsonl", ".csv", ".txt")
"""Endings of files to which lines are added: of these only what is new is sent."""
LAST = (checkpoint.BEST, checkpoint.PREVIOUS, checkpoint.NAME)
"""What is sent after all other files, in this order: a checkpoint is of use where all that came before it is there."""
LOST = 409


class Home(Client):
    """What a relay asks of the server. Raises ServiceError."""

    def register(self, name: str, device: str, engines: Sequence[str]) -> None:
        here = {"host": platform.node() or "unknown", "version": difflogic.__version__}
        body = {"name": name, "device": device, "engines": list(engines), **here}
        self.call("PUT", f"/remote/workers/{name}", json=body)

    def unregister(self, name: str) -> None:
        self.call("DELETE", f"/remote/workers/{name}")

    def claim(self, name: str, claim: str) -> Any:
        # As often as it takes: under the same name the server gives the same job.
        return self.call("POST", f"/remote/workers/{name}/claim", json={"lease_s": LEASE_S, "claim": claim}).json()

    def say(self, job: str, what: Literal["heartbeat", "finish", "release"], **body: Any) -> Any:
        """Tell how a job is; the answer to a heartbeat is what somebody asked of it."""
        answer = self.call("POST", f"/remote/jobs/{job}/{what}", json=body)
        return answer.json() if answer.content else None

    def download(self, job: str, kind: Literal["files", "source"], name: str, lease: int, to: Path) -> None:
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with to.open("wb") as file:
            self.save(f"/remote/jobs/{job}/{kind}/{quote(name)}", file, lease=lease)

    def upload(self, job: str, name: str, lease: int, content: bytes, offset: int | None) -> None:
        params = {"lease": lease} | ({} if offset is None else {"offset": offset})
        headers = {"Content-Type": "application/octet-stream"}
        self.call("PUT", f"/remote/jobs/{job}/files/{quote(name)}", params=params, content=content, headers=headers)

    def remove(self, job: str, name: str, lease: int) -> None:
        self.call("DELETE", f"/remote/jobs/{job}/files/{quote(name)}", params={"lease": lease})


@dataclass
class _Sent:
    """A file as it was when it was sent last."""

    inode: int
    modified: int
    size: int


@dataclass
class _Held:
    """A job that is trained here, under a lease over there."""

    id: str
    lease: int
    worker: str
    told: dict[str, Any]
    """Columns as the server knows them."""
    sent: dict[str, _Sent] = field(default_factory=dict)
    sent_at: float = 0.0
    beat_at: float = 0.0
    asked: Wanted | None = None
    lost: bool = False


class Relay:
    """Takes jobs from a server for the workers of a store on this machine, and sends home what they make of them."""

    def __init__(self, home: Home, store: Store, devices: Sequence[str], name: str | None = None) -> None:
        """`name`: that of this machine, in its workers' names; a random one unless it is given."""
        self._home, self._store = home, store
        prefix = f"{REMOTE}{name or secrets.token_hex(4)}"
        # Each device is a worker of its own over there, which has one job at a time, as it has here.
        self._workers = {f"{prefix}-{each.replace(':', '-')}": each for each in devices}
        self._engines = {name: engines_of(each, devices) for name, each in self._workers.items()}
        self._listed: set[str] = set()
        self._held: dict[str, _Held] = {}
        self._claims: dict[str, str] = {}
        """What each worker calls the claim of which it has no answer, or whose job is not here yet."""
        self._trouble = ""

    def register(self) -> None:
        """Have the server list the workers. Raises ServiceError where it refuses them, or cannot be reached."""
        for name in self._workers:
            self._list(name)

    def run(self, stop: threading.Event) -> None:
        """Relay until `stop` is set."""
        while not stop.wait(POLL_S):
            self.turn()

    def turn(self) -> None:
        """Tell of every job, and take one for each worker that has none."""
        for held in list(self._held.values()):
            self._guarded(partial(self._relay, held))
        for name in self._workers:
            if all(held.worker != name for held in self._held.values()):
                self._guarded(partial(self._take, name))

    def _guarded(self, act: Callable[[], None]) -> None:
        """A server that restarts, or a network that is away for a while, is no reason to stop training."""
        try:
            act()
            self._trouble = ""
        except (ServiceError, StoreError, OSError) as error:
            if str(error) != self._trouble:
                log_event("relay", logging.WARNING, why=str(error))
            self._trouble = str(error)

    def close(self) -> None:
        """Hand every job back, once the workers here have saved and stopped."""
        for held in list(self._held.values()):
            self._guarded(partial(self._relay, held, leaving=True))
        for name in self._listed:
            self._guarded(partial(self._home.unregister, name))

    # taking -------------------------------------------------------------------------------------------

    def _take(self, worker: str) -> None:
        if worker not in self._listed:
            self._list(worker)
        try:
            claimed = self._home.claim(worker, self._claims.setdefault(worker, secrets.token_hex(8)))
        except ServiceError as error:
            if error.status == LOST:  # it was away for so long that it is listed no more
                self._listed.discard(worker)
            raise
        if claimed is not None:
            # Where that fails, the next turn claims under the same name: the job is not left to run out its lease.
            self._adopt(worker, claimed)
        del self._claims[worker]

    def _list(self, worker: str) -> None:
        self._home.register(worker, self._workers[worker], self._engines[worker])
        self._listed.add(worker)

    def _adopt(self, worker: str, claimed: dict[str, Any]) -> None:
        job, lease = JobRecord(**claimed["job"]), claimed["lease"]
        if claimed["source"] is not None:
            source = self._store.adopt(JobRecord(**claimed["source"]), "done")
            run = self._store.job_folder(source).run
            for name in claimed["source_files"]:
                self._home.download(job.id, "source", name, lease, run / name)
        # It waits until its files are here: a worker that found none would begin anew.
        adopted = self._store.adopt(job, "paused")
        held = _Held(job.id, lease, worker, {name: getattr(adopted, name) for name in PROGRESS})
        folder = self._store.job_folder(job.id).path
        for name in claimed["files"]:
            self._home.download(job.id, "files", name, lease, folder / name)
            held.sent[name] = _state(folder / name)
        self._held[job.id] = held
        self._store.resume(job.id)
        log_event("job taken", job=job.id, worker=worker)

    # telling ------------------------------------------------------------------------------------------

    def _relay(self, held: _Held, leaving: bool = False) -> None:
        # The record is read before the files are: all that it names is among them then.
        job = self._store.job(held.id)
        if held.lost:
            self._forget(held, job)
            return
        try:
            self._tell(held, job, leaving)
        except ServiceError as error:
            if error.status != LOST:
                raise
            log_event("job lost", logging.WARNING, job=held.id, why=str(error))
            held.lost = True
            self._forget(held, job)

    def _tell(self, held: _Held, job: JobRecord, leaving: bool) -> None:
        now = time.monotonic()
        progress = {name: value for name in PROGRESS if (value := getattr(job, name)) != held.told[name]}
        over = job.status in ENDED or job.status == "paused" or leaving
        if over or "saved_epoch" in progress or now - held.sent_at >= SEND_S:
            self._send(held)
            held.sent_at = now
        if job.status in ("done", "failed"):
            self._home.say(held.id, "finish", lease=held.lease, status=job.status, reason=job.reason, progress=progress)
        elif over:
            self._home.say(held.id, "release", lease=held.lease, progress=progress)
        elif progress or now - held.beat_at >= SEND_S:
            about = {"lease": held.lease, "worker": held.worker, "lease_s": LEASE_S}
            answer = self._home.say(held.id, "heartbeat", **about, progress=progress)
            held.beat_at = now
            held.told |= progress
            self._hear(held, answer)
            return
        if over:
            self._forget(held, job)

    def _hear(self, held: _Held, answer: dict[str, Any]) -> None:
        if answer["watched"]:
            self._store.watch(held.id, WATCHED_S)
        wanted: Wanted | None = answer["wanted"]
        if wanted is not None and wanted != held.asked:
            held.asked = wanted
            # Another machine is to go on with it: here it only has to be saved and stopped.
            self._store.ask(held.id, "pause" if wanted == "requeue" else wanted)

    def _forget(self, held: _Held, job: JobRecord) -> None:
        """Delete a job here that is not ours any more, as soon as no worker has it."""
        if job.status == "running":
            if held.asked != "cancel":
                held.asked = "cancel"
                self._store.ask(held.id, "cancel")
            return
        self._store.delete(held.id)
        self._held.pop(held.id, None)

    def _send(self, held: _Held) -> None:
        """Make the job's files over there what they are here."""
        folder = self._store.job_folder(held.id).path
        found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if _is_result(path)}
        for name, path in sorted(found.items(), key=lambda each: _turn(each[1])):
            self._send_file(held, name, path)
        for name in set(held.sent) - set(found):
            self._home.remove(held.id, name, held.lease)
            del held.sent[name]

    def _send_file(self, held: _Held, name: str, path: Path) -> None:
        try:
            # Its state is read first: what is added meanwhile makes it look new at the next turn.
            state, known = _state(path), held.sent.get(name)
            if known == state:
                return
            grown = known is not None and path.suffix in GROWING and known.inode == state.inode
            begin = known.size if known is not None and grown and known.size <= state.size else None
            with path.open("rb") as file:
                file.seek(begin or 0)
                content = file.read(state.size - (begin or 0))
        except FileNotFoundError:  # replaced or removed a moment ago
            return
        try:
            self._home.upload(held.id, name, held.lease, content, begin)
        except ServiceError as error:
            held.sent.pop(name, None)  # whole, next time
            if error.status != LOST or begin is None:
                raise
            # What was added may be there already, where only the answer was lost. A lease that is lost refuses the
            # whole file too.
            self._send_file(held, name, path)
            return
        held.sent[name] = state


def work(
    home: Home,
    devices: Sequence[str],
    stop: threading.Event,
    max_memory: int | None = None,
    name: str | None = None,
) -> None:
    """Train jobs of a server on the devices of this machine until `stop` is set; then what is under way is saved over
    there. Raises ServiceError where the server takes no workers, or not this one.
    """
    # Nothing here has to last, also not on a container's own mount: what a job has become is sent home as it comes.
    os.environ[mount.ALLOW] = "1"
    with TemporaryDirectory(prefix="difflogic-worker-", ignore_cleanup_errors=True) as folder:
        store = Store.open(Path(folder), durable=False)
        relay = Relay(home, store, devices, name)
        relay.register()
        with Supervisor(Path(folder), devices, max_memory=max_memory):
            relay.run(stop)
        relay.close()


def _state(path: Path) -> _Sent:
    found = path.stat()
    return _Sent(found.st_ino, found.st_mtime_ns, found.st_size)


def _is_result(path: Path) -> bool:
    """Whether a file in a job's folder is sent: not its record, nor locks and files under way."""
    hidden = path.name.startswith((".", "job.json")) or path.suffix == ".tmp"
    return not hidden and path.is_file() and not path.is_symlink()


def _turn(path: Path) -> tuple[int, str]:
    return (LAST.index(path.name) + 1 if path.name in LAST else 0), str(path)
