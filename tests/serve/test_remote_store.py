"""The store for a worker elsewhere, with the actor in this process: what it sends, and when it is refused."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from difflogic.errors import StoreError
from difflogic.runs import checkpoint
from difflogic.serve.store.jobs import JobSpec, LeaseLostError, UnknownJobError
from difflogic.serve.store.store import Store
from difflogic.serve.worker import remote_store
from difflogic.serve.worker.remote_store import RemoteStore, StoreActor

ENGINES = ("auto", "cpu")
ROWS, LAST = "run/metrics.jsonl", f"run/{checkpoint.NAME}"


class Away:
    """A machine elsewhere: its store, and all that it sent."""

    def __init__(self, home: Store, folder: Path) -> None:
        self.sent: list[tuple[str, int | None, bytes]] = []
        self.actor = StoreActor(home.folder)
        self.actor._store.clock = home.clock
        self.store = RemoteStore(self.ask, folder, "lab2")
        self.store.register_worker("one", "cpu", "cpu", os.getpid(), ENGINES)

    def ask(self, method: str, *given: Any) -> Any:
        if method == "tell":
            self.sent += given[3][0]
        return getattr(self.actor, method)(*given)

    def take(self) -> tuple[str, int, Path]:
        claimed = self.store.claim("one", "cpu", ENGINES, 30.0)
        assert claimed is not None
        return claimed[0].id, claimed[1], self.store.job_folder(claimed[0].id).path

    def write(self, job: str, name: str, text: str, mode: str = "w") -> None:
        path = self.store.job_folder(job).path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write(text)


@pytest.fixture
def away(store: Store, tmp_path: Path) -> Iterator[Away]:
    made = Away(store, tmp_path / "away")
    yield made
    made.actor.forget("one")


def test_a_job_goes_there_and_comes_back(store: Store, spec: JobSpec, away: Away) -> None:
    """Only new lines of a growing file are sent; a checkpoint is put in its place after what came before it."""
    made = store.submit("ann", spec)[0].id
    home = store.job_folder(made).path
    (home / "run").mkdir()
    (home / ROWS).write_text("1\n")
    job, lease, folder = away.take()
    assert (job, (folder / ROWS).read_text()) == (made, "1\n")
    assert [(each.name, each.device, each.host) for each in store.workers()] == [("one", "lab2/cpu", "lab2")]
    assert store.expire_dead_workers() == [], "its lock is held here"
    for name, text, mode in ((LAST, "a", "w"), (ROWS, "2\n", "a"), (".lock", "", "w"), ("run/x.tmp", "x", "w")):
        away.write(job, name, text, mode)
    store.ask(job, "pause")
    assert away.store.heartbeat(job, lease, 30.0, 1, progress=2, saved_progress=2).wanted == "pause"
    assert away.sent == [(ROWS, 2, b"2\n"), (LAST, None, b"a")]
    away.write(job, ROWS, "3\n", "a")
    away.store.heartbeat(job, lease, 30.0, 1, progress=3)
    away.store._sent_at = 0.0
    away.store.prolong(job, lease, 30.0)
    assert len(away.sent) == 2, "it was looked at a moment ago; a thread beside the work sends none"
    (folder / LAST).unlink()
    assert away.store.release(job, lease, progress=3).status == "paused"
    assert {path.name for path in home.rglob("*") if path.is_file()} == {"job.json", "metrics.jsonl"}
    assert (home / ROWS).read_text() == "1\n2\n3\n"
    assert not folder.exists()
    away.store.unregister_worker("one")
    away.actor.forget("one")
    assert store.workers() == []


def test_it_begins_with_the_circuit_of_another_job(store: Store, spec: JobSpec, away: Away) -> None:
    first = store.submit("ann", spec)[0]
    job, lease, _ = away.take()
    away.write(job, "run/circuit.json", "{}")
    away.store.finish(job, lease, "done")
    later = [store.submit("ann", JobSpec("train", "later", spec.config, source=first.id))[0].id for _ in range(2)]
    job, lease, _ = away.take()
    assert job == later[0]
    assert (away.store.job_folder(away.store.job(first.id)).run / "circuit.json").read_text() == "{}"
    away.store.finish(job, lease, "done")
    store.delete(first.id)
    assert away.take()[0] == later[1]
    with pytest.raises(UnknownJobError):
        away.store.job(first.id)


def test_worker_that_lost_a_job_writes_nothing_to_it(store: Store, spec: JobSpec, away: Away) -> None:
    store.submit("ann", spec)
    job, lease, _ = away.take()
    away.write(job, LAST, "old")
    away.store.heartbeat(job, lease, 30.0, 1, saved_progress=1)
    store.expire_worker("one", "its machine was lost")
    away.write(job, LAST, "late")
    with pytest.raises(LeaseLostError):
        away.store.heartbeat(job, lease, 30.0, 1, saved_progress=2)
    home = store.job_folder(job).path
    assert (home / LAST).read_text() == "old"
    assert [path.name for path in home.rglob("*.tmp")] == []


def test_unwritten_files_are_sent_again_completely(store: Store, spec: JobSpec, away: Away, monkeypatch) -> None:
    store.submit("ann", spec)
    job, lease, _ = away.take()
    away.write(job, ROWS, "1\n")
    away.store.heartbeat(job, lease, 30.0, 1, saved_progress=1)
    away.write(job, ROWS, "2\n", "a")
    with monkeypatch.context() as full:
        full.setattr(remote_store, "_place", Mock(side_effect=OSError(28, "No space left")))
        with pytest.raises(StoreError, match=r"Cannot write the files of the job .*: No space left"):
            away.store.heartbeat(job, lease, 30.0, 1, saved_progress=2)
    assert store.job(job).saved_progress == 1
    away.store.heartbeat(job, lease, 30.0, 1, saved_progress=2)
    assert away.sent[-1] == (ROWS, None, b"1\n2\n")
    assert (store.job_folder(job).path / ROWS).read_text() == "1\n2\n"
