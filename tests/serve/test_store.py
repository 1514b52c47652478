"""The store keeps what it acknowledged, tells every change once, and refuses what a job's state forbids."""

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from difflogic.errors import NotFoundError, StoreError
from difflogic.serve.store import database, files, job_file
from difflogic.serve.store.jobs import ConflictError, JobSpec, UnknownJobError
from difflogic.serve.store.store import KEPT_DELETIONS, REMEMBER_S, Store

ENGINES = {"auto", "cpu"}


def submit(store, spec, owner="ann", **fields):
    return store.submit(owner, replace(spec, **fields))[0]


def running(store, spec, **fields):
    submit(store, spec, **fields)
    return store.claim("w", "cpu", ENGINES, 60)


def test_the_same_key_is_the_same_job(store, spec, clock):
    job, _ = store.submit("ann", spec, "k")
    assert store.submit("ann", spec, "k") == (job, False)
    with pytest.raises(ConflictError, match="another request"):
        store.submit("ann", replace(spec, name="other"), "k")
    assert store.submit("bob", spec, "k")[1]
    clock.now += REMEMBER_S + 1
    assert store.submit("ann", spec, "k")[1]


def test_many_threads_submit_and_claim_each_job_once(store, spec):
    claimed = []

    def work(name):
        for _ in range(5):
            store.submit("ann", spec)
        while (found := store.claim(name, "cpu", ENGINES, 60)) is not None:
            claimed.append(found[0].id)
            store.finish(found[0].id, found[1], "done")
        store.close()

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed)) == 20
    assert store.counts() == {"done": 20}


def test_a_waiting_job_is_cancelled_and_paused_at_once(store, spec):
    job = submit(store, spec)
    assert store.ask(job.id, "pause").status == "paused"
    assert store.claim("w", "cpu", ENGINES, 60) is None
    assert store.resume(job.id).status == "queued"
    cancelled = store.ask(job.id, "cancel")
    assert (cancelled.status, cancelled.ended is not None) == ("cancelled", True)
    assert store.retry(job.id).status == "queued"
    store.ask(job.id, "pause")
    assert store.ask(job.id, "cancel").status == "cancelled"


def test_running_job_gets_requests_to_stop(store, spec):
    job, lease = running(store, spec)
    assert store.heartbeat(job.id, lease, 60).wanted is None
    assert store.ask(job.id, "pause").status == "running"
    assert store.heartbeat(job.id, lease, 60).wanted == "pause"
    assert store.resume(job.id).wanted is None
    store.ask(job.id, "cancel")
    assert store.ask(job.id, "pause").wanted == "cancel", "who asked to cancel is not overruled"
    with pytest.raises(ConflictError, match="running"):
        store.delete(job.id)
    cancelled = store.release(job.id, lease)
    assert (cancelled.status, cancelled.wanted, cancelled.ended is not None) == ("cancelled", None, True)


@pytest.mark.parametrize("ask", ["pause", None])
def test_resume_withdraws_a_pending_pause(store, spec, ask):
    job, lease = running(store, spec)
    store.ask(job.id, "pause")
    assert store.heartbeat(job.id, lease, 60).wanted == "pause"
    if ask is None:  # while the worker saves
        store.resume(job.id)
    assert store.release(job.id, lease).status == ("paused" if ask else "queued")


def test_job_that_is_over_cannot_be_stopped(store, spec):
    job, lease = running(store, spec)
    store.finish(job.id, lease, "done")
    for call in (store.resume, store.retry, lambda job: store.ask(job, "cancel"), lambda job: store.ask(job, "pause")):
        with pytest.raises(ConflictError, match="is done"):
            call(job.id)


def test_every_change_has_a_version_of_its_own(store, spec):
    job = submit(store, spec)
    other = submit(store, spec, owner="bob")
    seen = store.version()
    assert store.changes(seen) == []
    store.edit(job.id, name="new")
    assert [each.name for each in store.changes(seen)] == ["new"]
    assert store.changes(seen, "bob") == []
    assert store.changes(other.version, "ann")[0].version == store.version()
    store.watch(job.id, 5)
    assert store.version() == store.job(job.id).version, "who looks changes nothing"
    store.delete(other.id)
    assert store.deletions(seen) == [(store.version(), other.id, other.owner)]
    assert store.deletions(seen, "ann") == []


@pytest.mark.parametrize(
    ("sort", "order"), [("newest", "dcba"), ("name", "bcda"), ("priority", "cdba"), ("wrong", "cbda")]
)
def test_lists_are_sorted_and_go_on_page_by_page(store, spec, sort, order):
    """Among equal jobs the newest is first; jobs that were never evaluated come last."""
    jobs = {}
    for key, name, priority, wrong in (("a", "x", 0, None), ("b", "A", 0, 7), ("c", "b", 3, 0), ("d", "C", 0, None)):
        jobs[submit(store, replace(spec, name=name, priority=priority)).id] = key
        with store.database.writing() as connection:
            connection.execute("UPDATE jobs SET hard_loss = ? WHERE name = ?", (wrong, name))
    listed, before = "", None
    while found := store.jobs("ann", 1, sort=sort, before=before):
        listed, before = listed + jobs[found[0].id], found[0].number
    assert listed == order


def test_tags_are_stored_counted_and_searched(store, spec):
    tagged = store.submit("ann", replace(spec, tags=["the paper", "größer"]))[0]
    other = store.submit("ann", spec)[0]
    store.submit("ben", replace(spec, tags=["the paper"]))
    assert store.edit(other.id, "ann", tags=["größer"]).tags == ["größer"]
    assert [each.id for each in store.jobs("ann", tag="größer")] == [other.id, tagged.id]
    assert [each.id for each in store.jobs("ann", tag="the paper")] == [tagged.id]
    assert store.jobs("ann", tag="the") == []
    assert store.tags("ann") == {"größer": 2, "the paper": 1}
    assert store.tags() == {"größer": 2, "the paper": 2}
    assert job_file.read(store.job_folder(other.id).path).job["tags"] == '["gr\\u00f6\\u00dfer"]'
    before = store.tags()
    store.close()
    assert Store.open(store.folder, rebuild=True).tags() == before


def test_a_training_is_not_deleted_under_a_follow_up_that_reads_it(store, spec):
    job = submit(store, spec)
    export = submit(store, JobSpec("export", "x", source=job.id))
    store.ask(job.id, "pause")
    _, lease = store.claim("w", "follow-ups", (), 60)
    with pytest.raises(ConflictError, match=f"The running export job {export.id} uses the job"):
        store.delete(job.id)
    store.finish(export.id, lease, "done")
    store.delete(job.id)


def test_deletions_are_forgotten_in_time(store, spec):
    ids = []
    for _ in range(3):
        ids.append(submit(store, spec).id)
        store.delete(ids[-1])
    with store.database.writing() as connection:
        rows = [(10_000 + each, "x", "ann") for each in range(KEPT_DELETIONS)]
        connection.executemany("INSERT INTO deletions VALUES (?, ?, ?)", rows)
    store.delete(submit(store, spec).id)
    kept = [job for _, job, _ in store.deletions(0)]
    assert len(kept) == KEPT_DELETIONS
    assert ids[0] not in kept


@pytest.mark.parametrize("name", ["../../../etc", "", "a" * 17, "A" * 16, "a" * 15 + "\n", "1" * 16])
def test_paths_are_made_of_ids_alone(store, name):
    with pytest.raises(UnknownJobError):
        store.job_folder(name)


def test_sessions_end(store, clock):
    store.open_session("h1", "ann", 60)
    store.open_session("h2", "bob", 600)
    assert (store.session_owner("h1"), store.session_owner("h3")) == ("ann", None)
    clock.now += 61
    assert (store.session_owner("h1"), store.session_owner("h2")) == (None, "bob")
    store.close_session("h2")
    assert store.session_owner("h2") is None
    store.open_session("h3", "ann", 60)
    store.database.write("UPDATE sessions SET owner = 'bob'")  # as a faulty disk would
    assert store.session_owner("h3") is None


def test_a_newer_store_is_refused(tmp_path):
    store = Store.open(tmp_path)
    with store.database.writing() as connection:
        connection.execute("PRAGMA user_version = 99")
    newest = len(database._scripts())
    with pytest.raises(StoreError, match=f"Expected a store of version {newest} or older, but .* has version 99:"):
        Store.open(tmp_path)


def test_older_store_is_migrated_with_a_copy(tmp_path, monkeypatch, spec):
    before = Store.open(tmp_path)
    job = submit(before, spec)
    before.close()
    scripts = database._scripts()
    later = "ALTER TABLE jobs ADD COLUMN later INTEGER NOT NULL DEFAULT 7;"
    monkeypatch.setattr(database, "_scripts", lambda: [*scripts, later])
    assert Store.open(tmp_path).jobs() == [job]
    path = tmp_path / files.STORE
    old = f"{path}.version-{len(scripts)}"
    with closing(sqlite3.connect(path)) as now, closing(sqlite3.connect(old)) as kept:
        assert now.execute("SELECT later FROM jobs").fetchall() == [(7,)]
        assert kept.execute("SELECT id FROM jobs").fetchall() == [(job.id,)]


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path, monkeypatch, spec):
    job = submit(Store.open(tmp_path), spec)
    good = database._scripts()
    broken = [*good, "ALTER TABLE jobs ADD COLUMN later INTEGER; SELECT nonsense FROM nowhere;"]
    monkeypatch.setattr(database, "_scripts", lambda: broken)
    with pytest.raises(StoreError, match="nowhere"):
        Store.open(tmp_path)
    monkeypatch.setattr(database, "_scripts", lambda: good)
    assert Store.open(tmp_path).job(job.id) == job


def test_folder_without_a_store_is_refused(tmp_path):
    (tmp_path / files.STORE).write_text("This is a text and no database." * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store.open(tmp_path)
    with pytest.raises(NotFoundError, match="No store in"):
        Store.existing(tmp_path / "elsewhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Cannot use"):
        Store.open(tmp_path / "file")


def test_a_failed_transaction_leaves_nothing(store, spec):
    def interrupted():
        with store.database.writing() as connection:
            connection.execute("UPDATE clock SET version = 1000")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert store.version() == 0
    assert submit(store, spec).version == 1


def test_full_disk_refuses_a_submission(store, spec):
    with store.database.reading() as connection:
        connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreError, match="full"):
        store.submit("ann", JobSpec("train", "n" * 100_000, spec.config))
    with store.database.reading() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    assert store.submit("ann", spec)[1], "and the store is usable once there is space"


def test_samples_are_read_with_their_job_alone(store, spec):
    options = {"data": "eA==" * 30_000}
    job = store.submit("ann", replace(spec, options=options))[0].id
    assert store.job(job).options == options
    assert [each.options for each in (*store.jobs(), *store.changes(0))] == [{}, {}]
    # As version 1 had them, among what was asked for.
    with store.database.writing() as connection:
        connection.execute("UPDATE jobs SET asked = json_set(asked, '$.options.data', data), data = NULL")
        connection.execute("UPDATE jobs" + database._scripts()[1].partition("UPDATE jobs")[2])
    assert store.job(job).options == options
    assert store.jobs()[0].options == {}
