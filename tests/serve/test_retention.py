"""`gc` deletes what may go, and nothing else."""

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest

from difflogic.errors import StoreError
from difflogic.serve.store import cleanup
from difflogic.serve.store.cleanup import collect, count, housekeeping
from difflogic.serve.store.jobs import JobSpec, UnknownJobError
from difflogic.serve.store.store import Store
from tests.serve.service import wait

DAY = cleanup.DAY_S


def served(store, seconds):
    """Add `seconds` to the time that the store was served, by its own count."""
    store.database.write("UPDATE clock SET counted = counted + ?", seconds)


@pytest.fixture
def jobs(store, spec, clock):
    """One of each status by name, of 1000 bytes each; those that ended did so a day after another."""
    made = {}
    for status in ("done", "failed", "cancelled", "paused", "running", "queued"):
        job, _ = store.submit("ann", replace(spec, name=status, priority=10 if status != "queued" else -10))
        if status not in ("queued", "paused"):
            job, lease = store.claim("w", "cpu", {"auto"}, 60)
        if status == "paused":
            store.ask(job.id, "pause")
        elif status not in ("queued", "running"):
            if status == "cancelled":
                store.ask(job.id, "cancel")
                store.release(job.id, lease)
            else:
                store.finish(job.id, lease, status)
            served(store, DAY)
        place = store.job_folder(job.id)
        place.run.mkdir(parents=True)
        (place.run / "checkpoint").write_bytes(bytes(1000))
        made[status] = job.id
    return made


def left(store, *names):
    """Bytes of the jobs, their records included."""
    files = (path for name in names for path in store.job_folder(name).path.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files)


def four(store, jobs):
    """A quota for the four that ended last, or have not."""
    return left(store, *list(jobs.values())[2:]) + 100


def gone(store, jobs):
    return {name for name, job in jobs.items() if not store.job_folder(job).path.exists()}


def test_by_age(store, jobs):
    found = collect(store, keep_days=1.5)
    assert [each.name for each in found.removed] == [jobs["done"], jobs["failed"]]
    assert gone(store, jobs) == {"done", "failed"}
    with pytest.raises(UnknownJobError):
        store.job(jobs["done"])
    assert found.bytes_left == left(store, *list(jobs.values())[2:])


def test_by_quota_the_oldest_first(store, jobs):
    assert collect(store, quota=left(store, *jobs.values())).removed == []
    found = collect(store, quota=four(store, jobs))
    assert [each.name for each in found.removed] == [jobs["done"], jobs["failed"]]
    assert collect(store, quota=0).bytes_left == left(store, *list(jobs.values())[3:])
    assert gone(store, jobs) == {"done", "failed", "cancelled"}, "what waits, runs or pauses stays"


def test_dry_deletes_nothing(store, jobs):
    found = collect(store, quota=0, dry=True)
    assert [each.name for each in found.removed] == [jobs[name] for name in ("done", "failed", "cancelled")]
    assert found.bytes_left == left(store, *list(jobs.values())[3:])
    assert gone(store, jobs) == set()


def test_source_of_post_processing_stays(store, jobs):
    follow_up, _ = store.submit("ann", JobSpec("simplify", "small", source=jobs["done"]))
    collect(store, quota=0)
    assert gone(store, jobs) == {"failed", "cancelled"}
    store.ask(follow_up.id, "cancel")
    collect(store, quota=0)
    assert gone(store, jobs) == {"done", "failed", "cancelled"}


def test_a_job_that_someone_retries_meanwhile_stays(store, jobs, monkeypatch):
    listed = store.jobs()
    monkeypatch.setattr(store, "jobs", lambda limit: listed)
    store.retry(jobs["failed"])
    collect(store, quota=0)
    assert gone(store, jobs) == {"done", "cancelled"}


def test_the_command(tmp_path, spec, said):
    store = Store.open(tmp_path)
    job, _ = store.submit("ann", spec)
    store.ask(job.id, "cancel")
    served(store, DAY)
    out = said("gc", tmp_path, "--quota", 0.000001, "--dry-run").out
    assert out.endswith("\n1 job would be deleted, 0.0 MB; 0.0 MB remain.\n")
    answer = json.loads(said("gc", tmp_path, "--keep-days", 0, "--json").out)
    assert ([each["name"] for each in answer["removed"]], answer["bytes_left"]) == ([job.id], 0)
    assert "Nothing to delete" in said("gc", tmp_path, code=2).err
    assert "No store in" in said("gc", tmp_path / "nowhere", "--keep-days", 1, code=2).err


def test_failed_deletion_is_reported(store, jobs, monkeypatch):
    refuse = Mock(side_effect=PermissionError(13, "Permission denied", "x"))
    monkeypatch.setattr("difflogic.serve.store.files.shutil.rmtree", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        collect(store, quota=0)


def test_a_server_makes_room_by_itself(store, jobs, monkeypatch, caplog):
    monkeypatch.setattr(cleanup, "COUNT_S", 0.02)
    with housekeeping(store.folder, None, None):
        pass
    assert gone(store, jobs) == set()
    with caplog.at_level("INFO", "difflogic.serve"), housekeeping(store.folder, None, four(store, jobs)):
        wait(lambda: len(gone(store, jobs)) == 2, "two jobs to go")
    assert gone(store, jobs) == {"done", "failed"}
    said = [(each.getMessage(), each.fields["name"]) for each in caplog.records]
    assert [event for event, name in said if name == jobs["done"]] == ["to be removed", "removed"]


def test_the_time_for_which_a_store_is_served_is_counted(store, clock):
    def counted():
        return store.database.rows("SELECT counted FROM clock")[0][0]

    assert not count(store), "it has just begun"
    for _ in range(3):
        clock.now += 50
        assert count(store)
    assert counted() == 150
    clock.now += 3600
    assert not count(store), "it was closed for an hour"
    assert counted() == 150


@pytest.mark.parametrize("days", [400, -400])
@pytest.mark.parametrize("whole", [True, False])
def test_a_clock_that_is_set_deletes_nothing(store, jobs, clock, days, whole):
    count(store)
    clock.now += 50
    assert count(store)
    if whole:
        clock.now += days * DAY
    else:
        wall = clock.now + days * DAY
        store.wall_clock = lambda: wall
    assert not count(store), "no collection at a moment that nobody knows"
    assert collect(store, keep_days=30).removed == []
    submitted, _ = store.submit("ann", store.job(jobs["queued"]).spec())
    store.ask(submitted.id, "cancel")  # ended, by that clock
    assert collect(store, keep_days=5).removed == []


@pytest.mark.parametrize("column", ["ended", "made"])
def test_job_ended_by_a_wrong_clock_is_not_deleted_by_age(store, jobs, column):
    """It ended before it began, or before its store did."""
    if column == "ended":
        store.database.write("UPDATE jobs SET ended = '1970-01-02T00:00:00+00:00' WHERE id = ?", jobs["done"])
    else:
        store.database.write("UPDATE clock SET made = '2999-01-01T00:00:00+00:00'")
    assert jobs["done"] not in {each.name for each in collect(store, keep_days=0.5).removed}


def test_nothing_of_the_last_day_goes_for_the_quota(store, jobs):
    """A rebuilt store has no record of how long its jobs have been over."""
    store.close()
    again = Store.open(store.folder, rebuild=True)
    assert collect(again, keep_days=0.5, quota=0).removed == []
    served(again, DAY)
    removed = {each.name for each in collect(again, quota=0).removed}
    assert removed == {jobs[name] for name in ("done", "failed", "cancelled")}
