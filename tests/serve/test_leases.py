"""A job is one worker's at a time, and who lost it can write no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from difflogic.serve.jobs import LeaseLostError
from difflogic.serve.leases import ALIVE_S, GRACE_S, MAX_TRIES
from difflogic.serve.presence import Presence

ENGINES = {"auto", "cpu"}


def claim(store, worker="w", device="cpu", engines=ENGINES):
    return store.claim(worker, device, engines, 60)


def test_by_priority_then_age(store, draft):
    names = [("a", 0), ("b", 5), ("c", 0), ("d", 5)]
    for name, priority in names:
        store.submit("ann", replace(draft, name=name, priority=priority))
    assert [claim(store)[0].name for _ in names] == ["b", "d", "a", "c"]
    assert claim(store) is None


def test_only_what_the_device_can(store, draft):
    store.submit("ann", replace(draft, engine="gpu"))
    assert claim(store) is None
    job, _ = claim(store, device="gpu:0", engines={"auto", "gpu", "gpu:0"})
    assert (job.device, job.status, job.phase) == ("gpu:0", "running", "starting")


def test_follow_ups_are_for_who_has_no_device(store, draft, clock):
    store.submit("ann", replace(draft, priority=10))
    assert not store.awaits_follow_up()
    assert claim(store, engines=()) is None
    follow_up = replace(draft, kind="export", config=None, source="x", engine="gpu")
    store.submit("ann", follow_up)
    store.submit("ann", replace(follow_up, name="urgent", priority=1))
    assert store.awaits_follow_up()
    assert claim(store)[0].kind == "train"
    assert claim(store) is None
    job, lease = claim(store, device="follow-ups", engines=())
    assert (job.name, job.device) == ("urgent", "cpu")
    store.fall(job.id, lease, "it fell")
    assert claim(store, engines=())[0].name == "urgent", "its first back-off is none"
    assert claim(store, engines=())[0].name == draft.name
    assert not store.awaits_follow_up()


def test_a_follow_up_that_fell_twice_is_not_awaited_at_once(store, draft, clock):
    store.submit("ann", replace(draft, kind="export", config=None, source="x"))
    for _ in range(2):
        job, lease = claim(store, engines=())
        store.fall(job.id, lease, "it fell")
    assert not store.awaits_follow_up()
    clock.now += 1
    assert store.awaits_follow_up()


def test_what_no_worker_offers_is_said(store, draft, clock):
    early = store.submit("ann", replace(draft, engine="gpu:1"))[0]
    assert early.waits_for is None, "the workers of a server that has just begun are about to come"
    store.enter("w", "cpu", "a processor", 1, ["auto", "cpu"])
    store.enter("f", "follow-ups", "", 2)
    words = "No worker offers gpu:1: those that are there offer auto, cpu."
    late = store.submit("ann", replace(draft, engine="gpu:1"))[0]
    fine = store.submit("ann", draft)[0]
    follow_up = store.submit("ann", replace(draft, kind="export", config=None, source="x", engine="gpu:1"))[0]
    assert (late.waits_for, fine.waits_for, follow_up.waits_for) == (words, None, None)
    store.explain(store.offered())
    assert store.job(early.id).waits_for == words
    version = store.version()
    store.explain(store.offered())
    assert store.version() == version, "what is said already is no change"

    store.explain(())
    assert store.job(fine.id).waits_for == "No worker is there to train it."
    store.explain({"auto", "gpu:1"})
    assert {job.waits_for for job in store.jobs()} == {None}

    store.explain(store.offered())
    assert store.ask(late.id, "cancel").waits_for is None
    claimed, _ = claim(store, "g", "gpu:1", ["gpu:1"])
    assert (claimed.id, claimed.waits_for) == (early.id, None)
    clock.now += ALIVE_S + 1
    assert store.offered() == set()


def test_a_job_goes_on_where_it_was_as_long_as_that_is_there(store, draft, clock):
    store.submit("ann", draft)
    store.enter("g", "gpu:0", "a GPU", 1)
    job, lease = claim(store, "g", "gpu:0", {"auto", "gpu"})
    store.release(job.id, lease)
    assert claim(store) is None
    clock.now += ALIVE_S + 1
    assert claim(store)[0].device == "cpu"


def test_a_beat_prolongs_and_tells(store, draft, clock):
    store.submit("ann", draft)
    store.enter("w", "cpu", "a processor", 1)
    job, lease = claim(store)
    version = store.version()
    assert not store.beat(job.id, lease, 15, phase="training", epoch=3, soft_loss=1.5, epochs_per_s=9.0).watched
    seen = store.job(job.id)
    assert (seen.phase, seen.epoch, seen.soft_loss, seen.version) == ("training", 3, 1.5, version + 1)
    store.watch(job.id, 10)
    assert store.beat(job.id, lease, 15, memory=7, epoch=3).watched
    assert store.version() == version + 1, "nothing new is no change"
    worker = store.workers()[0]
    assert (worker.job, worker.memory, worker.seen) == (job.id, 7, clock.now)
    clock.now += 14
    assert store.overdue("w") is None
    clock.now += 2
    assert store.overdue("w").id == job.id


def test_who_lost_the_lease_can_write_no_more(store, draft, clock):
    store.submit("ann", draft)
    job, old = claim(store)
    clock.now += 60 + GRACE_S + 1
    again, new = claim(store, "other")
    assert (again.id, again.attempts, new > old) == (job.id, 1, True)
    for call in (
        lambda: store.beat(job.id, old, 60, epoch=5),
        lambda: store.finish(job.id, old, "done"),
        lambda: store.release(job.id, old),
        lambda: store.fall(job.id, old, "it fell"),
    ):
        with pytest.raises(LeaseLostError):
            call()
    assert store.job(job.id).epoch == 0
    store.finish(job.id, new, "done", epoch=12)
    with pytest.raises(LeaseLostError):
        store.beat(job.id, new, 60)


def test_a_late_beat_keeps_a_job_that_nobody_took(store, draft, clock):
    store.submit("ann", draft)
    job, lease = claim(store)
    clock.now += 3600
    store.beat(job.id, lease, 15)
    assert claim(store, "other") is None


def test_stopping_in_good_order_is_no_attempt(store, draft):
    store.submit("ann", draft)
    job, lease = claim(store)
    released = store.release(job.id, lease, epoch=4, saved_epoch=4)
    assert (released.status, released.attempts, released.epoch, released.phase) == ("queued", 0, 4, None)


def lose(store, clock, saved=0):
    clock.now += 60
    job, lease = claim(store)
    store.beat(job.id, lease, 15, saved_epoch=saved)
    return store.bury("w", "it was killed")[0]


def test_tries_without_progress_are_bounded(store, draft, clock):
    store.submit("ann", draft)
    for number in range(1, MAX_TRIES):
        job = lose(store, clock)
        assert (job.status, job.attempts) == ("queued", number)
        assert f"Try {number} of {MAX_TRIES}" in job.reason
    job = lose(store, clock)
    assert (job.status, job.attempts) == ("failed", MAX_TRIES)
    assert "Given up" in job.reason
    assert "it was killed" in job.reason
    assert job.ended is not None
    assert store.retry(job.id).reason is None
    assert lose(store, clock).status == "queued"


def test_a_new_checkpoint_is_progress(store, draft, clock):
    store.submit("ann", draft)
    for number in range(1, 3 * MAX_TRIES):
        assert lose(store, clock, saved=number).status == "queued"


def test_a_lost_job_waits_before_it_is_tried_again(store, draft):
    store.submit("ann", draft)
    for _ in range(2):
        job, lease = claim(store)
        store.fall(job.id, lease, "no space left")
    assert claim(store) is None, "the first try again is at once, the second one waits"
    store.clock.now += 2
    assert claim(store) is not None


@pytest.mark.parametrize(("asked", "becomes"), [("cancel", "cancelled"), ("pause", "paused"), ("requeue", "queued")])
def test_what_was_asked_of_a_lost_job_still_holds(store, draft, asked, becomes):
    store.submit("ann", draft)
    job, _ = claim(store)
    store.ask(job.id, asked)
    assert store.bury("w", "it was killed")[0].status == becomes


def test_the_dead_are_found(store, draft):
    for name in ("alive", "dead", "idle"):
        store.submit("ann", draft)
        store.enter(name, "cpu", "a processor", 1)
    here = Presence(store.folder, "alive")
    held = {name: claim(store, name)[0].id for name in ("alive", "dead")}
    Presence(store.folder, "dead").close()
    assert [job.id for job in store.reap()] == [held["dead"]]
    assert [each.name for each in store.workers()] == ["alive"]
    assert store.job(held["alive"]).status == "running"
    here.close()
    assert [job.id for job in store.reap()] == [held["alive"]]
    assert store.reap() == []
