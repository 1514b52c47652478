"""When the jobs that wait begin is what the workers then do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from difflogic.cli.screen.waiting import turn_words
from difflogic.serve.client import Client
from difflogic.serve.store.queue import turns_of
from tests.serve.live import ANN, serving

CPU = ["auto", "cpu", "reference"]


def worker(store, name="cpu-1", device="cpu", engines=CPU):
    store.register_worker(name, device, "", 1, engines)


def submit(store, spec, owner="ann", predicted_s=60, **fields):
    return store.submit(owner, replace(spec, predicted_s=predicted_s, **fields))[0].id


def test_turns_come_as_they_were_told(store, spec):
    """Owners in turns, priorities, engines, a device that a job was on: who asks for a job gets what was told."""
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


def test_seconds_are_those_of_what_is_before(store, spec, clock):
    worker(store)
    running = submit(store, spec, predicted_s=100)
    taken, lease = store.claim("cpu-1", "cpu", CPU, 1000)
    store.heartbeat(running, lease, 1000, epoch=taken.epochs // 2, epochs_per_s=taken.epochs / 2 / 40)
    first, second = submit(store, spec, predicted_s=30), submit(store, spec, predicted_s=30)
    turns = turns_of(store)
    assert [(turns[each].position, turns[each].begins_s) for each in (first, second)] == [(1, 40), (2, 70)]
    # What was measured corrects what was predicted: here everything takes twice as long.
    store.finish(running, lease, "done", epoch=taken.epochs, trained_s=200.0)
    turns = turns_of(store)
    assert [(each.begins_s, each.takes_s) for each in turns.values()] == [(0, 60), (60, 60)]
    # A checkpoint halfway leaves half of it, and a worker more halves the wait of the second.
    worker(store, "cpu-2")
    assert [each.begins_s for each in turns_of(store).values()] == [0, 0]


@pytest.mark.parametrize("fields", [{"until_solved": True}, {"predicted_s": None}, {"engine": "gpu"}])
def test_what_nobody_can_tell_is_unknown_and_its_order_is_not(store, spec, fields):
    device, engines = ("gpu:0", ["gpu"]) if "engine" in fields else ("cpu", CPU)
    worker(store, "w", device, engines)
    ids = [submit(store, spec, **{"engine": engines[-1], **fields}) for _ in range(3)]
    turns = turns_of(store)
    assert [(turns[each].position, turns[each].begins_s) for each in ids] == [(1, 0), (2, None), (3, None)]
    worker(store, "w2", "cpu", ["cpu"])  # of which it is known when it is free, but it takes none of these
    known = submit(store, spec, engine="cpu") if "engine" in fields else None
    assert known is None or turns_of(store)[known].begins_s == 0


def test_nobody_waits_for_a_worker_that_is_not_there(store, spec, clock):
    job = submit(store, spec)
    assert turns_of(store)[job].position is None
    worker(store)
    assert turns_of(store)[job].position == 1
    clock.now += 1000  # nothing was heard of it for long
    assert turns_of(store)[job].position is None


def test_follow_ups_begin_at_once_where_a_lane_is_free(store, spec):
    worker(store)
    source = submit(store, spec)
    taken, lease = store.claim("cpu-1", "cpu", CPU, 1000)
    store.finish(taken.id, lease, "done", saved_epoch=1)
    follow = store.submit("ann", replace(spec, kind="export", config=None, source=source))[0].id
    assert (turns_of(store)[follow].position, turns_of(store)[follow].begins_s) == (1, None)
    worker(store, "follow-ups", "follow-ups", [])
    assert turns_of(store)[follow].begins_s == 0


def test_a_long_queue_is_told_quickly_and_whole(store, spec):
    worker(store)
    ids = [submit(store, spec, owner) for _ in range(40) for owner in ("ann", "ben", "cas")]
    turns = turns_of(store)
    assert {turns[each].position for each in ids} == set(range(1, 121))
    owners = [store.job(each).owner for each in turns]
    assert owners == ["ann", "ben", "cas"] * 40


def test_each_owner_is_told_of_his_own(tmp_path: Path):
    with serving(tmp_path) as live:
        live.store.register_worker("cpu-1", "cpu", "", 1, CPU)
        with live.client() as ann:
            hers = ann.post("/jobs", json={"preset": "checkerboard"}).json()
            live.store.submit("ben", live.store.job(hers["id"]).spec())
            second = ann.post("/jobs", json={"preset": "checkerboard"}).json()["id"]
            seconds = hers["predicted_s"]
            assert seconds > 10
            waiting = ann.get("/queue").json()["waiting"]
            found = {each["id"]: (each["position"], each["begins_s"], each["takes_s"]) for each in waiting}
            assert found == {hers["id"]: (1, 0, seconds), second: (3, 2 * seconds, seconds)}
            only = ann.get("/queue", params={"ids": second}).json()["waiting"]
            assert [each["id"] for each in only] == [second]
            assert ann.get("/queue", params={"ids": "x"}).status_code == 422
        with Client(live.address, ANN) as client:
            assert client.turns([second, hers["id"]]).keys() == found.keys()


@pytest.mark.parametrize(
    ("position", "begins", "words"),
    [
        (None, None, None),
        (1, 0, "it is next and it starts now."),
        (3, None, "its position in the queue is 3; its start time is unknown."),
        (3, 300, "its position in the queue is 3 and it starts in about 5 min."),
        (2, 7500, "its position in the queue is 2 and it starts in about 2 h 5 min."),
    ],
)
def test_in_words(position, begins, words):
    assert turn_words({"position": position, "begins_s": begins}) == words
