"""A job is one worker's at a time, and who lost it can write no more."""

from dataclasses import replace

import pytest

from difflogic.config import agent_presets
from difflogic.config.document import is_policy
from difflogic.config.schema import Config
from difflogic.devices.cost import EVALUATIONS_PER_S, cost_of
from difflogic.errors import StoreError
from difflogic.serve.store.claims import ALIVE_S, GRACE_S
from difflogic.serve.store.jobs import ConflictError, LeaseLostError
from difflogic.serve.store.leases import MAX_TRIES
from difflogic.serve.store.presence import Presence
from difflogic.serve.store.queue import turns_of
from difflogic.system.processor import cores

ENGINES = {"auto", "cpu"}


def claim(store, worker="w", device="cpu", engines=ENGINES):
    return store.claim(worker, device, engines, 60)


def test_by_priority_then_age(store, spec):
    names = [("a", 0), ("b", 5), ("c", 0), ("d", 5)]
    for name, priority in names:
        store.submit("ann", replace(spec, name=name, priority=priority))
    assert [claim(store)[0].name for _ in names] == ["b", "d", "a", "c"]
    assert claim(store) is None


def test_owners_take_turns(store, spec):
    jobs = [("ann", 0)] * 4 + [("ben", 0)] * 2 + [("cas", -1), ("ann", 1)]
    for owner, priority in jobs:
        store.submit(owner, replace(spec, priority=priority))
        store.submit(owner, replace(spec, kind="export", config=None, source="x", priority=priority))
    # Ann's urgent job was her turn: Ben is next. Post-processing jobs have separate turns, here the same.
    fair = ["ann", "ben", "ann", "ben", "ann", "ann", "ann", "cas"]
    assert [claim(store)[0].owner for _ in jobs] == fair
    assert [claim(store, engines=())[0].owner for _ in jobs] == fair


def test_post_processing_is_for_workers_without_device(store, spec, clock):
    store.submit("ann", replace(spec, priority=10))
    assert not store.awaits("follow-ups")
    assert claim(store, engines=()) is None
    follow_up = replace(spec, kind="export", config=None, source="x", engine="gpu")
    store.submit("ann", follow_up)
    store.submit("ann", replace(follow_up, name="urgent", priority=1))
    assert store.awaits("follow-ups")
    assert claim(store)[0].kind == "train"
    assert claim(store) is None
    job, lease = claim(store, device="follow-ups", engines=())
    assert (job.name, job.device) == ("urgent", "cpu")
    store.fail_try(job.id, lease, "it fell")
    assert claim(store, engines=())[0].name == "urgent", "its first back-off is none"
    assert claim(store, engines=())[0].name == spec.name
    assert not store.awaits("follow-ups")


def test_idle_processor_takes_what_it_finishes_before_the_gpu(store, spec):
    """A GPU 1,000 times as fast as the processor, which needs 10 s more for its job."""
    config, gpu = Config.from_dict(spec.config), ["auto", "gpu", "gpu:0"]

    def submitted(seconds, **fields):
        epoch = cost_of(config, 1).evaluations / config.train.epochs
        epochs = round(seconds * EVALUATIONS_PER_S * cores() / 2 / epoch)
        return store.submit("ann", replace(spec, config=config.with_(train={"epochs": epochs}).to_dict(), **fields))[0]

    def spare():
        return claim(store, engines=["cpu", "reference"])

    store.register_worker("g", "gpu:0", "a GPU", 1, gpu)
    store.register_worker("w", "cpu", "a processor", 2, ["cpu", "reference"])
    long, short = submitted(10_000), submitted(1)
    assert spare() is None, "the GPU is free"
    lease = claim(store, "g", "gpu:0", gpu)[1]
    assert spare() is None, "nobody knows yet how fast the GPU is"
    store.heartbeat(long.id, lease, 60, progress=0, progress_per_s=long.goal / 10)
    slow, other = submitted(12), submitted(1, engine="gpu")
    job, lease = spare()
    assert (job.id, job.device) == (short.id, "cpu")
    assert spare() is None, f"{slow.id} ends sooner on the GPU, and {other.id} needs one"
    store.release(short.id, lease)
    assert turns_of(store)[short.id].position == 1, "it stays on the processor"
    assert spare()[0].id == short.id
    store.submit("ann", replace(spec, config=agent_presets.PRESETS["cartpole"].to_dict()))
    assert is_policy(spare()[0].config), "the processor trains agents in any case"


def test_trials_go_with_their_sweep(store, spec, clock):
    """They are trained while it runs, listed nowhere, and deleted with it; it begins where a worker has its engine."""
    sweep = store.submit("ann", replace(spec, kind="sweep"))[0]
    assert not store.awaits("sweeps"), "there is nobody to train its trials"
    store.register_worker("w", "cpu", "a processor", 1, ENGINES)
    assert store.awaits("sweeps")
    assert claim(store, "f", "follow-ups", ()) is None
    assert claim(store) is None
    held, lease = claim(store, "s", "sweeps", ())
    assert held.id == sweep.id
    trial = replace(spec, options={"trial": 0, "until": 5}, parent=sweep.id)
    first, second = (store.submit("ann", trial, most=1)[0].id for _ in range(2))
    since = store.version()
    job, number = claim(store)
    assert job.id == first
    assert store.heartbeat(first, number, 60, progress=1).wanted is None
    assert [each.id for each in store.jobs()] == [each.id for each in store.changes(0)] == [sweep.id]
    assert store.counts() == {"running": 1}
    store.finish(first, number, "done", result={"status": "paused"})
    assert [each.id for each in store.trials(sweep.id, over=True)] == [first]
    again = store.train_on(first, None)
    assert (again.status, again.options, again.result) == ("queued", {"trial": 0, "until": None}, None)
    job, number = claim(store)
    store.release(sweep.id, lease)  # its worker ends, and no other has it yet
    assert store.heartbeat(job.id, number, 60).wanted == "requeue"
    store.release(job.id, number)
    assert claim(store) is None
    assert claim(store, "s", "sweeps", ())[0].id == sweep.id
    assert {claim(store)[0].id for _ in range(2)} == {first, second}
    assert store.job(first).spec().parent is None, "a copy of a trial is a training"
    store.ask(sweep.id, "cancel")
    store.expire_worker("s", "it fell")
    with pytest.raises(ConflictError, match="is running"):
        store.delete(sweep.id)
    store.expire_worker("w", "it fell")
    store.delete(sweep.id)
    assert store.trials(sweep.id) == []
    assert store.changes(since) == []
    assert not any((store.folder / "jobs").iterdir())


def test_a_follow_up_that_fell_twice_is_not_awaited_at_once(store, spec, clock):
    store.submit("ann", replace(spec, kind="export", config=None, source="x"))
    for _ in range(2):
        job, lease = claim(store, engines=())
        store.fail_try(job.id, lease, "it fell")
    assert not store.awaits("follow-ups")
    clock.now += 1
    assert store.awaits("follow-ups")


def test_job_without_a_worker_has_a_reason(store, spec, clock):
    early = store.submit("ann", replace(spec, engine="gpu:1"))[0]
    assert early.waits_for is None, "the workers of a server that has just begun are about to come"
    store.register_worker("w", "cpu", "a processor", 1, ["auto", "cpu"])
    store.register_worker("f", "follow-ups", "", 2)
    words = "No worker offers the engine gpu:1: the workers offer auto, cpu."
    late = store.submit("ann", replace(spec, engine="gpu:1"))[0]
    fine = store.submit("ann", spec)[0]
    follow_up = store.submit("ann", replace(spec, kind="export", config=None, source="x", engine="gpu:1"))[0]
    assert (late.waits_for, fine.waits_for, follow_up.waits_for) == (words, None, None)
    store.explain_waiting(store.offered_engines())
    assert store.job(early.id).waits_for == words
    version = store.version()
    store.explain_waiting(store.offered_engines())
    assert store.version() == version, "what is said already is no change"

    store.explain_waiting(())
    assert store.job(fine.id).waits_for == "No worker is running that can train the job."
    store.explain_waiting({"auto", "gpu:1"})
    assert {job.waits_for for job in store.jobs()} == {None}

    store.explain_waiting(store.offered_engines())
    assert store.ask(late.id, "cancel").waits_for is None
    claimed, _ = claim(store, "g", "gpu:1", ["gpu:1"])
    assert (claimed.id, claimed.waits_for) == (early.id, None)
    clock.now += ALIVE_S + 1
    assert store.offered_engines() == set()


def test_job_stays_on_its_device_while_that_has_a_worker(store, spec, clock):
    store.submit("ann", spec)
    store.register_worker("g", "gpu:0", "a GPU", 1)
    job, lease = claim(store, "g", "gpu:0", {"auto", "gpu"})
    store.release(job.id, lease)
    assert claim(store) is None
    clock.now += ALIVE_S + 1
    assert claim(store)[0].device == "cpu"


def test_a_heartbeat_prolongs_and_tells(store, spec, clock):
    store.submit("ann", spec)
    store.register_worker("w", "cpu", "a processor", 1)
    job, lease = claim(store)
    version = store.version()
    told = {"phase": "training", "progress": 3, "soft_loss": 1.5, "progress_per_s": 9.0}
    assert not store.heartbeat(job.id, lease, 15, **told).watched
    seen = store.job(job.id)
    assert (seen.phase, seen.progress, seen.soft_loss, seen.version) == ("training", 3, 1.5, version + 1)
    store.watch(job.id, 10)
    assert store.heartbeat(job.id, lease, 15, memory=7, progress=3).watched
    assert store.version() == version + 1, "nothing new is no change"
    attempts = {"attempts": [{"number": 1}]}
    for _ in range(2):
        store.heartbeat(job.id, lease, 15, result=attempts)
    assert (store.job(job.id).result, store.version()) == (attempts, version + 2), "what came of attempts so far"
    worker = store.workers()[0]
    assert (worker.job, worker.memory, worker.seen) == (job.id, 7, clock.now)
    clock.now += 14
    assert store.overdue_job("w") is None
    clock.now += 2
    assert store.overdue_job("w").id == job.id


def test_worker_without_its_lease_cannot_write(store, spec, clock):
    store.submit("ann", spec)
    job, old = claim(store)
    clock.now += 60 + GRACE_S + 1
    again, new = claim(store, "other")
    assert (again.id, again.lost_tries, new > old) == (job.id, 1, True)
    for call in (
        lambda: store.heartbeat(job.id, old, 60, progress=5),
        lambda: store.finish(job.id, old, "done"),
        lambda: store.release(job.id, old),
        lambda: store.fail_try(job.id, old, "it fell"),
    ):
        with pytest.raises(LeaseLostError):
            call()
    assert store.job(job.id).progress == 0
    store.finish(job.id, new, "done", progress=12)
    with pytest.raises(LeaseLostError):
        store.heartbeat(job.id, new, 60)


def test_late_heartbeat_keeps_an_unclaimed_job(store, spec, clock):
    store.submit("ann", spec)
    job, lease = claim(store)
    clock.now += 3600
    store.heartbeat(job.id, lease, 15)
    assert claim(store, "other") is None


def lose(store, clock, saved=0):
    clock.now += 60
    job, lease = claim(store)
    store.heartbeat(job.id, lease, 15, saved_progress=saved)
    return store.expire_worker("w", "it was killed")[0]


def test_tries_without_progress_are_bounded(store, spec, clock):
    store.submit("ann", spec)
    for number in range(1, MAX_TRIES):
        job = lose(store, clock)
        assert (job.status, job.lost_tries) == ("queued", number)
        assert f"Try {number} of {MAX_TRIES}" in job.reason
    job = lose(store, clock)
    assert (job.status, job.lost_tries) == ("failed", MAX_TRIES)
    assert "Stopped" in job.reason
    assert "it was killed" in job.reason
    assert job.ended is not None
    assert store.retry(job.id).reason is None
    assert lose(store, clock).status == "queued"


def test_a_new_checkpoint_is_progress(store, spec, clock):
    store.submit("ann", spec)
    for number in range(1, 3 * MAX_TRIES):
        assert lose(store, clock, saved=number).status == "queued"


@pytest.mark.parametrize(("asked", "becomes"), [("cancel", "cancelled"), ("pause", "paused"), ("requeue", "queued")])
def test_request_to_stop_survives_a_lost_worker(store, spec, asked, becomes):
    store.submit("ann", spec)
    job, _ = claim(store)
    store.ask(job.id, asked)
    assert store.expire_worker("w", "it was killed")[0].status == becomes


def test_dead_workers_are_expired(store, spec):
    for name in ("alive", "dead", "idle"):
        store.submit("ann", spec)
        store.register_worker(name, "cpu", "a processor", 1)
    here = Presence(store.folder, "alive")
    held = {name: claim(store, name)[0].id for name in ("alive", "dead")}
    Presence(store.folder, "dead").close()
    assert [job.id for job in store.expire_dead_workers()] == [held["dead"]]
    assert [each.name for each in store.workers()] == ["alive"]
    assert store.job(held["alive"]).status == "running"
    here.close()
    assert [job.id for job in store.expire_dead_workers()] == [held["alive"]]
    assert store.expire_dead_workers() == []


def test_a_worker_tells_of_known_columns_alone(store, spec):
    """Its words become SQL: also where Python leaves assertions out."""
    job, _ = store.submit("ann", spec)
    _, lease = store.claim("w", "cpu", {"auto"}, 60)
    other = {"owner = 'bob', epoch": 1}
    for tell in (
        lambda: store.heartbeat(job.id, lease, 60, **other),
        lambda: store.release(job.id, lease, **other),
        lambda: store.finish(job.id, lease, "done", **other),
    ):
        with pytest.raises(StoreError, match="A worker may report"):
            tell()
    assert store.job(job.id).status == "running"


def test_a_workers_name_leads_nowhere_else(store):
    with pytest.raises(StoreError, match="at most 80 characters from a-z"):
        Presence(store.folder, "../../elsewhere")


def test_a_new_attempt_is_progress(store, clock, spec):
    """Its checkpoints are counted from 0 again, and the tries since the last one too."""
    job, _ = store.submit("ann", replace(spec, request={"restarts": 2}))
    for attempt in range(1, MAX_TRIES + 2):
        _, lease = store.claim("w", "cpu", {"auto"}, 60)
        store.heartbeat(job.id, lease, 60, attempt=attempt, saved_progress=10 - attempt)
        assert store.fail_try(job.id, lease, "it fell").status == "queued"
        clock.now += 100


def test_the_life_of_a_job_is_as_the_module_tells_it(store, spec, clock):
    """The numbers of the worked example at the head of `store/leases.py`."""

    def standing(job):
        with store.database.reading() as connection:
            row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
        until = None if row["lease_until"] is None else round(row["lease_until"] - begun, 1)
        ready = round(max(0.0, row["not_before"] - begun), 1)
        return [row["lease"], until, row["lost_tries"], row["vain_tries"], row["saved_progress"], ready]

    def at(seconds):
        clock.now = begun + seconds

    begun = clock.now
    job, _ = store.submit("ann", spec)
    _, old = store.claim("cpu-1", "cpu", ENGINES, 30)
    assert standing(job.id)[:5] == [1, 30, 0, 0, 0]
    at(25)
    store.heartbeat(job.id, old, 30)
    assert standing(job.id)[:5] == [1, 55, 0, 0, 0]
    at(40)
    store.heartbeat(job.id, old, 12)
    assert standing(job.id)[:5] == [1, 52, 0, 0, 0]
    at(60)
    store.heartbeat(job.id, old, 12, saved_progress=100)
    assert standing(job.id)[:5] == [1, 72, 0, 0, 100]
    at(72.5)
    assert store.overdue_job("cpu-1").id == job.id
    store.expire_worker("cpu-1", "its worker hung while training, and was ended")
    assert standing(job.id) == [2, None, 1, 1, 100, 72.5]
    at(72.8)
    assert store.claim("cpu-2", "cpu", ENGINES, 30)[1] == 3
    assert standing(job.id)[:5] == [3, 102.8, 1, 1, 100]
    at(75)
    with pytest.raises(LeaseLostError):
        store.heartbeat(job.id, old, 12)
    at(90)
    store.expire_worker("cpu-2", "its worker was killed")
    assert standing(job.id) == [4, None, 2, 2, 100, 91]
    assert store.claim("cpu-3", "cpu", ENGINES, 30) is None
    at(91)
    assert store.claim("cpu-3", "cpu", ENGINES, 30)[1] == 5
    assert standing(job.id)[:5] == [5, 121, 2, 2, 100]
