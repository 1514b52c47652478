"""Positions in the queue: workers take the jobs in the reported order."""

from dataclasses import replace
from pathlib import Path

import pytest

from difflogic.serve.api import usage
from difflogic.serve.store.queue import turns_of
from tests.serve.live import serving

CPU = ["auto", "cpu", "reference"]


def worker(store, name="cpu-1", device="cpu", engines=CPU):
    store.register_worker(name, device, "", 1, engines)


def submit(store, spec, owner="ann", **fields):
    return store.submit(owner, replace(spec, **fields))[0].id


def test_jobs_are_taken_in_the_reported_order(store, spec):
    worker(store)
    submit(store, spec)
    store.claim("cpu-1", "cpu", CPU, 1000)  # it was ann's turn
    for owner in ("ann", "ann", "ben", "ann", "cas", "ben"):
        submit(store, spec, owner, engine="cpu")
    submit(store, spec, "cas", engine="cpu", priority=1)
    stays = submit(store, spec, "ben", priority=2)
    never = submit(store, spec, "ann", engine="gpu", priority=9)
    taken, lease = store.claim("cpu-1", "cpu", CPU, 1000)
    assert taken.id == stays
    store.release(stays, lease)
    told = list(turns_of(store).values())
    assert [each.position for each in told] == [*range(1, 9), None]
    assert told[-1].id == never
    for each in told[:-1]:
        taken, lease = store.claim("cpu-1", "cpu", CPU, 1000)
        assert taken.id == each.id
        store.finish(taken.id, lease, "done")


def test_job_without_a_worker_has_no_position(store, spec, clock):
    job = submit(store, spec)
    assert turns_of(store)[job].position is None
    worker(store)
    assert turns_of(store)[job].position == 1
    clock.now += 1000  # nothing was heard of it for long
    assert turns_of(store)[job].position is None


def test_a_follow_up_waits_for_no_training(store, spec):
    worker(store)
    source = submit(store, spec)
    taken, lease = store.claim("cpu-1", "cpu", CPU, 1000)
    store.finish(taken.id, lease, "done", saved_progress=1)
    submit(store, spec)
    follow = store.submit("ann", replace(spec, kind="export", config=None, source=source))[0].id
    assert turns_of(store)[follow].position == 1


def test_queue_shows_an_owner_only_his_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(usage, "SHARE", 0.0)  # no answer is given twice, however long the first one took
    with serving(tmp_path) as live:
        live.store.register_worker("cpu-1", "cpu", "", 1, CPU)
        with live.client() as ann:
            hers = ann.post("/jobs", json={"preset": "checkerboard"}).json()
            live.store.submit("ben", live.store.job(hers["id"]).spec())
            second = ann.post("/jobs", json={"preset": "checkerboard"}).json()["id"]
            waiting = ann.get("/queue").json()["waiting"]
            found = {each["id"]: each["turn"] for each in waiting}
            assert found == {hers["id"]: "next in the queue", second: "position 3 in the queue"}
            only = ann.get("/queue", params={"ids": second}).json()["waiting"]
            assert [each["id"] for each in only] == [second]
            assert ann.get(f"/jobs/{second}").json()["words"]["turn"] == "position 3 in the queue"
            assert ann.get("/queue", params={"ids": "x"}).status_code == 422


def test_queries_of_the_queue_read_no_rows(store, spec):
    """Rows have kilobytes and thousands may wait: workers look for jobs many times a second, by an index alone."""
    worker(store)
    asked: list[str] = []
    with store.database.reading() as connection:
        connection.set_trace_callback(asked.append)
        turns_of(store)
        store.explain_waiting(CPU)
        for device, engines in (("cpu", CPU), ("follow-ups", []), ("sweeps", [])):
            store.claim("cpu-1", device, engines, 10)
        store.counts()
        store.queue_age()
        connection.set_trace_callback(None)
        questions = [query for query in asked if "INDEXED BY" in query or "GROUP BY" in query]
        assert len(questions) == 7
        for query in questions:
            plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert any("jobs USING COVERING INDEX" in each for each in plan), plan
