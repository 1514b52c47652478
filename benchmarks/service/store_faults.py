"""Damage a store by each of `store_cases.CASES`, such as removed, truncated, swapped or old files, and check it.

Nothing is lost: each job exists with all its fields, and each file of a job is in the job's folder or in lost+found.
Nothing is duplicated: no job, no claim, and no write by an earlier worker. The service reports a refusal or a repair in
one sentence, and reports nothing if nothing had to be repaired.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.service import jobs
from benchmarks.service.outcome import Outcome
from difflogic.errors import StoreError
from difflogic.serve.store.files import JOBS, LOST
from difflogic.serve.store.job_file import NAME
from difflogic.serve.store.jobs import STATUS_AFTER, JobRecord, JobSpec, LeaseLostError
from difflogic.serve.store.store import Store

KEPT = (
    "owner", "name", "kind", "config", "options", "source", "priority", "engine", "lost_tries", "created", "started",
    "ended", "reason", "result", "number",
)  # fmt: skip
"""Fields of a job that must not change; its status does, since a running job is queued again."""
RUN = "checkpoint.safetensors"
LAST = "a job of the last minute"
KEY = "the key of the last job"
FOREVER_S = 1e9


@dataclass
class Filled:
    """Closed store with all kinds of jobs, and the contents that must survive damage."""

    folder: Path
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Expected fields of jobs that must still exist, by id."""
    ids: dict[str, str] = field(default_factory=dict)
    """Ids of jobs by name."""
    files: Counter[str] = field(default_factory=Counter)
    """Digests of all files in the folders of jobs."""
    held: tuple[str, int] = ("", 0)
    """Id and lease of the running job."""
    spec: JobSpec | None = None
    """Specification of the last job, which was submitted with the key KEY."""

    def path(self, name: str) -> Path:
        return self.folder / JOBS / self.ids[name]

    def note(self, store: Store) -> None:
        """Record the present jobs and files of the store as the expected ones."""
        found = store.jobs(limit=1000)
        self.jobs, self.ids = {each.id: standing(each) for each in found}, {each.name: each.id for each in found}
        self.files = digests(self.folder)


def standing(job: JobRecord) -> dict[str, Any]:
    status = STATUS_AFTER[job.wanted] if job.status == "running" else job.status
    return {name: getattr(job, name) for name in KEPT} | {"status": status}


def digests(store: Path) -> Counter[str]:
    """Return the digests of all files in the folders of jobs and in lost+found, except records."""
    return digests_in(store / JOBS) + digests_in(store / LOST)


def digests_in(folder: Path) -> Counter[str]:
    kept = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(NAME)]
    return Counter(hashlib.sha256(path.read_bytes()).hexdigest() for path in kept)


def fill(folder: Path) -> Filled:
    """Create a store of eight jobs with files, in every status, and with a post-processing job."""
    filled, store, spec = Filled(folder), Store.open(folder), jobs.spec_of(jobs.config())
    for status in ("done", "failed", "cancelled", "paused", "running", "queued"):
        job, _ = store.submit("ann", replace(spec, name=status, priority=-10 if status == "queued" else 0))
        run = store.job_folder(job.id).run
        run.mkdir(parents=True)
        (run / RUN).write_bytes(_content(status))
        if status in ("done", "failed", "running"):
            claimed = store.claim("w", "cpu", {"cpu"}, FOREVER_S)
            assert claimed is not None
            store.heartbeat(job.id, claimed[1], FOREVER_S, progress=50, saved_progress=50)
            filled.held = job.id, claimed[1]
            if status != "running":
                progress = {"progress": 1500, "hard_loss": 0, "result": {"attempts": [1]}} if status == "done" else {}
                store.finish(
                    job.id, claimed[1], status, None if progress else "There was not enough memory.", **progress
                )
        elif status != "queued":
            store.ask(job.id, "cancel" if status == "cancelled" else "pause")
    source = store.jobs(text="done")[0]
    store.submit("ann", JobSpec("export", "follow-up", source=source.id, options={"formats": ["c"]}))
    store.edit(store.submit("bob", replace(spec, name="x"))[0].id, name="bob's", priority=3)
    filled.note(store)
    store.close()
    return filled


def _content(name: str) -> bytes:
    return name.encode() * 100


def add_last(filled: Filled, store: Store) -> None:
    """Submit another job, which an earlier copy of the store does not contain."""
    filled.spec = replace(jobs.spec_of(jobs.config()), name=LAST)
    store.submit("cid", filled.spec, KEY)
    filled.note(store)


@dataclass(frozen=True)
class Case:
    """Damage to a store, and the expected message."""

    strike: Callable[[Filled], None]
    said: str | None
    """Part of the expected sentence; None if no message is expected."""
    refused: bool = False
    """True if the store is refused until it is rebuilt on request."""
    lost: tuple[str, ...] = ()
    """Names of jobs without a record or a database: their files must be in lost+found."""


class _Sentences(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


@contextmanager
def heard() -> Iterator[list[str]]:
    """Record the service's log messages of level WARNING and above."""
    handler, logger = _Sentences(), logging.getLogger("difflogic.serve")
    logger.addHandler(handler)
    try:
        yield handler.found
    finally:
        logger.removeHandler(handler)


def copied(filled: Filled, folder: Path) -> Filled:
    """Copy the store to another folder, where it can be damaged."""
    shutil.copytree(filled.folder, folder)
    return replace(filled, folder=folder, jobs=copy.deepcopy(filled.jobs), files=filled.files.copy())


def try_case(filled: Filled, case: Case) -> list[str]:
    """Damage the store, reopen it, and return descriptions of all errors."""
    with heard() as sentences:
        try:
            case.strike(filled)
            sentences.clear()
            store, refusal = reopened(filled.folder)
        except StoreError as error:
            return [f"unusable: {error}"]
        wrong = [] if bool(refusal) == case.refused else [f"refused: {refusal}"]
        wrong += judged_words([refusal] if refusal else sentences, case.said)
    wrong += judged(filled, store, case.lost)
    store.close()
    return wrong


def reopened(folder: Path) -> tuple[Store, str | None]:
    """Open the store, rebuilding it after a refusal; return the store and the message of the refusal, or None."""
    before = digests(folder)
    try:
        return Store.open(folder), None
    except StoreError as error:
        assert digests(folder) == before, "a refusal changes nothing"
        return Store.open(folder, rebuild=True), str(error)


def judged_words(sentences: list[str], expected: str | None) -> list[str]:
    if expected is None:
        return [f"said: {each}" for each in sentences]
    if len(sentences) != 1 or expected not in sentences[0] or "\n" in sentences[0] or not sentences[0].endswith("."):
        return [f"said {sentences}, expected one sentence with {expected!r}"]
    return []


def judged(filled: Filled, store: Store, lost: tuple[str, ...] = ()) -> list[str]:
    """Return descriptions of lost, changed or duplicated jobs and files."""
    gone = {filled.ids[name] for name in lost}
    expected = {job: said for job, said in filled.jobs.items() if job not in gone}
    listed = store.jobs(limit=1000)
    found = {job.id: standing(job) for job in listed}
    wrong = [f"{len(listed)} jobs, expected {len(expected)}"] if len(listed) != len(expected) else []
    for job, said in expected.items():
        now = found.get(job, {})
        wrong += [
            f"{said['name']}: {name} is {now.get(name)!r}" for name in said if now.get(name, "gone") != said[name]
        ]
    if missing := filled.files - digests(filled.folder):
        wrong.append(f"{missing.total()} files are gone")
    if not all((filled.folder / JOBS / job).is_dir() for job in expected):
        wrong.append("a job has no folder")
    for name, job in filled.ids.items():
        run = filled.folder / JOBS / job / "run" / RUN
        if run.exists() and run.read_bytes() != _content(name):
            wrong.append(f"{name} has the run of another job")
    return wrong + _twice(filled, store)


def _twice(filled: Filled, store: Store) -> list[str]:
    wrong = []
    if filled.spec is not None and store.submit("cid", filled.spec, KEY)[1]:
        wrong.append("the same request made a second job")
    if filled.held[0] in filled.jobs and store.job(filled.held[0]).status != "running":
        try:
            store.finish(*filled.held, "done")
            wrong.append("a worker of before finished a job that it holds no more")
        except LeaseLostError:
            pass
    claimed = [store.claim("new", "cpu", engines, FOREVER_S) for engines in [{"cpu"}] * 9 + [set()] * 3]
    twice = [job for job, count in Counter(each[0].id for each in claimed if each).items() if count > 1]
    return wrong + [f"{job} was claimed twice" for job in twice]


def strike_all(folder: Path, cases: dict[str, Case]) -> Outcome:
    """Try each case on a separate copy of a store; return the outcome of all cases."""
    outcome = Outcome("the store struck")
    begin = time.monotonic()
    filled = fill(folder / "store")
    for number, (name, case) in enumerate(cases.items()):
        outcome.hit(name)
        outcome.wrong += [f"{name}: {each}" for each in try_case(copied(filled, folder / str(number) / "store"), case)]
    outcome.seconds = time.monotonic() - begin
    return outcome
