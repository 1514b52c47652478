"""Whatever happens to the files of a store: no job is lost, none is there twice, and a sentence says so."""

import json
import os
import re
import sqlite3
import stat
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.service import store_cases, store_faults, store_world
from benchmarks.service.store_faults import FOREVER_S, Filled
from difflogic.errors import StoreError
from difflogic.runs import manifest
from difflogic.serve.store import clock as clocks
from difflogic.serve.store import files, job_file, machine, records
from difflogic.serve.store.jobs import DiskFullError, JobSpec, StoreLostError
from difflogic.serve.store.store import Store
from tests.sampled import sampled
from tests.serve.live import serving
from tests.serve.test_store import ENGINES, submit


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return store_faults.fill(tmp_path_factory.mktemp("template") / "store")


@pytest.fixture
def filled(template: Filled, tmp_path: Path) -> Filled:
    return store_faults.copied(template, tmp_path / "filled" / "store")


CASES = store_cases.CASES | store_world.CASES
FILES, FOLDERS = (files.STORE, machine.NAME, "store.lock"), (files.JOBS, files.WORKERS, files.LOST)


@pytest.mark.parametrize("case", sampled(CASES, [*CASES][::3]))
def test_a_struck_store(filled, case):
    assert store_faults.try_case(filled, CASES[case]) == []


def test_a_missing_database_is_not_an_empty_store(filled, said):
    """Every command but `serve`, which makes it again, refuses: before, `gc` deleted all folders as orphaned."""
    store_cases.removed(filled)
    for options in (("--keep-days", 0), ("--quota", 0.000001)):
        errors = said("gc", filled.folder, *options, code=1).err
        assert "has folders of jobs but no database: start `difflogic serve" in errors
    assert store_faults.digests(filled.folder) == filled.files


def test_a_record_says_the_newest_of_a_job(store, spec):
    """Also where many change it at the same time, and without what only a worker of now needs."""
    job = submit(store, spec)
    for number in range(3):
        store.edit(job.id, name=f"name {number}")
    _, lease = store.claim("w", "cpu", ENGINES, 60)
    store.heartbeat(job.id, lease, 60, progress=7)
    path = store.job_folder(job.id).path
    record = job_file.read(path)
    assert (record.job["name"], record.job["status"], record.job["progress"]) == ("name 2", "running", 0)
    assert "lease_until" not in record.job
    store.finish(job.id, lease, "done", progress=12)
    assert job_file.read(path).job["progress"] == 12
    assert [each.name for each in path.iterdir()] == [job_file.NAME]


def test_the_slower_of_two_changes_does_not_leave_its_record(store, spec, monkeypatch):
    job = submit(store, spec)
    publish = job_file.Prepared.publish

    def slow(prepared):
        monkeypatch.setattr(job_file.Prepared, "publish", publish)
        store.edit(job.id, name="second")
        publish(prepared)

    monkeypatch.setattr(job_file.Prepared, "publish", slow)
    store.edit(job.id, name="first")
    assert store.job(job.id).name == job_file.read(store.job_folder(job.id).path).job["name"] == "second"


def test_two_that_write_the_record_of_one_version_do_not_meet(store, spec, caplog):
    """Before, they wrote to one name: the quicker renamed it, and the slower said that it could not be written."""
    job = submit(store, spec)
    folder = store.job_folder(job.id).path
    with store.database.reading() as connection:
        row = connection.execute("SELECT * FROM jobs").fetchone()
        first, second = (job_file.prepare(folder, connection, row) for _ in range(2))
    store._publish(first)
    assert job_file.read(folder).job["id"] == job.id
    store._publish(second)
    assert not caplog.records
    assert [each.name for each in folder.iterdir()] == [job_file.NAME]


def test_a_record_that_cannot_be_written_refuses_the_change(store, spec, monkeypatch):
    job = submit(store, spec)

    def full(descriptor, data):
        os.write(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(job_file.files, "write_all", full)
        for change in (lambda: submit(store, spec), lambda: store.edit(job.id, name="other")):
            with pytest.raises(DiskFullError, match="nothing was changed"):
                change()
    assert store.jobs() == [job]
    assert len(list((store.folder / files.JOBS).iterdir())) == 1
    assert submit(store, spec)


def test_records_of_a_newer_difflogic_are_refused(filled):
    path = filled.path("done") / job_file.NAME
    path.write_text(path.read_text().replace('"schema": ', '"schema": 9'))
    store_cases.removed(filled)
    with pytest.raises(StoreError, match="use a newer difflogic"):
        Store.open(filled.folder)
    assert store_faults.digests(filled.folder) == filled.files


def edited(change):
    """A record as `change` leaves its data."""

    def strike(path: Path) -> None:
        change(data := json.loads(path.read_text()))
        path.write_text(json.dumps(data))

    return strike


def changed(**columns: object):
    return edited(lambda data: data["job"].update(columns))


def asked(**fields: object):
    return edited(lambda data: data["job"]["asked"].update(fields))


def outside(**values: object):
    return edited(lambda data: data.update(values))


def in_place_of(make):
    def strike(path: Path) -> None:
        path.rename(path.with_name("elsewhere")) if path.exists() else None
        make(path)

    return strike


ODD = {
    "number 2**70": changed(number=2**70),
    "number of all": changed(number=2**63 - 1),
    "version 2**70": outside(version=2**70),
    "version in words": outside(version="57"),
    "schema 0": outside(schema=0),
    "a request without a key": outside(key={"created": 1.0}),
    "1e999": lambda path: path.write_text(path.read_text().replace('"progress": 1500', '"progress": 1e999')),
    "no number": lambda path: path.write_text(path.read_text().replace('"trained_s": 0.0', '"trained_s": NaN')),
    "lease abc": changed(lease="abc"),
    "wanted xyz": changed(wanted="xyz"),
    "half a character": changed(name="\ud800"),
    "a missing column": edited(lambda data: data["job"].pop("asked")),
    "a null column": changed(asked=None),
    "a null option": asked(options=None),
    "a flag of three values": asked(request={"until_solved": 2}),
    "no configuration": asked(config="no JSON"),
    "no date": changed(ended="yesterday"),
    "an id like a path": changed(id="../../etc/passwd"),
    "a list": lambda path: path.write_text("[]"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "bytes": lambda path: path.write_bytes(bytes(range(256))),
    "a folder": in_place_of(Path.mkdir),
    "a pipe": in_place_of(os.mkfifo),
    "a link": in_place_of(lambda path: path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("odd", sampled(ODD, [*ODD][::4]))
@pytest.mark.parametrize("has_database", [False, True])
def test_invalid_record_hides_no_other_job(filled, odd, has_database):
    """Made again from the folders, the store has all others, and says which folder it could not take."""
    ODD[odd](filled.path("done") / job_file.NAME)
    if not has_database:
        store_cases.removed(filled)
    with store_faults.heard() as sentences:
        store = Store.open(filled.folder)
    assert len(store.jobs()) == (8 if has_database else 7)
    if not has_database:
        assert len(sentences) == 1
        assert f"in {files.LOST}: {filled.ids['done']} (" in sentences[0]
        assert (filled.folder / files.LOST / filled.ids["done"] / "run" / store_faults.RUN).is_file()
    store.submit("ann", store.jobs()[0].spec())
    store.close()
    assert len(Store.open(filled.folder, rebuild=True).jobs()) == (9 if has_database else 8), "and it is as good as new"


@pytest.mark.parametrize("is_signed", [True, False])  # rows of older versions have no checksum
@pytest.mark.parametrize("word", ["done", "bob", "cancelled", '"epochs": 1500', "There was not", "20"])
def test_changed_cell_is_restored_from_its_record(template, tmp_path, word, is_signed):
    """Each letter stands in a row, or in an index: SQLite finds nothing wrong with either."""
    place, whole = template.ids.get(word, word).encode(), tmp_path / "whole"
    filled = store_faults.copied(template, whole)
    with closing(sqlite3.connect(whole / files.STORE)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("UPDATE jobs SET checksum = NULL WHERE ?", (not is_signed,))
    matches = [*re.finditer(re.escape(place), (whole / files.STORE).read_bytes())]
    for match in matches[:: 1 + len(matches) // 8]:
        struck = store_faults.copied(filled, tmp_path / str(match.start()))
        with (struck.folder / files.STORE).open("r+b") as file:
            file.seek(match.end() - 1)
            file.write(b"1" if place[-1:].isdigit() else b"z")
        store = Store.open(struck.folder)
        assert store_faults.judged(struck, store) == []
        assert store.counts_by_owner().keys() == {"ann", "bob"}
        store.close()


def test_changed_name_of_a_column_is_refused(filled):
    path = filled.folder / files.STORE
    path.write_bytes(path.read_bytes().replace(b" recorded INTEGER", b" cecorded INTEGER"))
    with pytest.raises(StoreError, match="the schema is malformed: restore"):
        Store.open(filled.folder)


def test_each_run_goes_back_to_its_job(filled):
    store_cases.runs_swapped(filled)
    store = Store.open(filled.folder)
    for seed in (1, 2):
        (job,) = store.jobs(text=f"seed {seed}")
        assert manifest.read(store.job_folder(job).run)["config"] == job.config


def test_a_run_that_says_nothing_stays_where_it_is(filled):
    """A pipe in the place of its manifest, for which one would wait for ever."""
    os.mkfifo(filled.path("done") / "run" / manifest.NAME)
    (filled.path("paused") / "run" / manifest.NAME).write_text("[]")
    assert store_faults.judged(filled, Store.open(filled.folder)) == []


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        (files.STORE, lambda it: it.symlink_to("elsewhere"), "is a symbolic link, but a store expects a file there"),
        (files.STORE, os.mkfifo, "is neither a file nor a folder, but a store expects a file"),
        *((name, Path.mkdir, "is a folder, but a store expects a file") for name in FILES),
        *((name, Path.touch, "is a file, but a store expects a folder") for name in FOLDERS),
    ],
)
def test_path_of_another_kind_is_refused_by_name(filled, name, make, words):
    in_place_of(make)(filled.folder / name)
    with pytest.raises(StoreError) as error:
        Store.open(filled.folder)
    assert str(error.value).startswith(f"{filled.folder / name} {words}")


def test_file_in_place_of_a_folder_is_put_aside(filled):
    path = filled.path("queued")
    path.rename(filled.folder.with_name("elsewhere"))
    path.write_text("not a folder")
    with store_faults.heard() as sentences:
        store = Store.open(filled.folder)
    assert len(sentences) == 1
    assert f"no folder was found for {filled.ids['queued']}" in sentences[0]
    assert job_file.read(path).id == filled.ids["queued"]
    assert (filled.folder / files.LOST / filled.ids["queued"]).read_text() == "not a folder"
    assert len(store.jobs()) == 8


def moved_away(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    for path in folder.glob("store.sqlite3*"):
        path.rename(folder / "elsewhere" / path.name)


def replaced(folder: Path) -> None:
    moved_away(folder)
    (folder / files.STORE).write_bytes((folder / "elsewhere" / files.STORE).read_bytes())


LOSSES = {
    "removed": lambda folder: [path.unlink() for path in folder.glob("store.sqlite3*")],
    "database removed": lambda folder: (folder / files.STORE).unlink(),
    "log removed": lambda folder: (folder / f"{files.STORE}-wal").unlink(),
    "emptied": lambda folder: os.truncate(folder / files.STORE, 0),
    "replaced": replaced,
    "store moved": lambda folder: folder.rename(folder.with_name("elsewhere")),
}


@pytest.mark.parametrize("loss", sampled(LOSSES, {"replaced", "store moved"}))
def test_a_server_notices_that_its_database_is_lost(tmp_path, spec, loss):
    """It acknowledges nothing more, and what it did acknowledge is found by the next one, the newest progress too."""
    sentence = "The database of the store was removed or replaced while it was in use: restart the server"
    with serving(tmp_path / "store") as live, live.client() as client:
        made = [client.post("/jobs", json={"preset": "checkerboard"}).json()["id"] for _ in range(3)]
        _, lease = live.store.claim("w", "cpu", ENGINES, FOREVER_S)
        live.store.heartbeat(made[0], lease, FOREVER_S, progress=7)
        LOSSES[loss](live.store.folder)
        for answer in (client.post("/jobs", json={"preset": "checkerboard"}), client.get("/ready")):
            assert answer.status_code == 503
            assert answer.json()["error"]["message"].startswith(sentence)
        with pytest.raises(StoreLostError):
            live.store.heartbeat(made[0], lease, FOREVER_S)
    store, _ = store_faults.reopened(tmp_path / ("elsewhere" if loss == "store moved" else "store"))
    assert {job.id: (job.status, job.owner) for job in store.jobs()} == {
        job: ("running" if loss == "store moved" and job == made[0] else "queued", "ann") for job in made
    }
    if loss != "emptied":  # what was in it cannot be read any more
        assert store.job(made[0]).progress == 7


def test_a_database_that_comes_back_is_used_again(store, spec):
    job = submit(store, spec)
    moved_away(store.folder)
    with pytest.raises(StoreLostError):
        store.jobs()
    for path in (store.folder / "elsewhere").iterdir():
        path.rename(store.folder / path.name)
    assert store.jobs() == [job]
    assert submit(store, spec)


def test_a_late_server_overwrites_nothing(store, spec):
    """Its database was lost and made again by another one, in which the job went on."""
    job = submit(store, spec)
    LOSSES["removed"](store.folder)
    other = Store.open(store.folder)
    other.edit(job.id, name="newer")
    with pytest.raises(StoreLostError):
        store.edit(job.id, name="older")
    assert job_file.read(store.job_folder(job.id).path).job["name"] == "newer"


def fail_twice(store, spec):
    submit(store, spec)
    for _ in range(2):
        job, lease = store.claim("w", "cpu", ENGINES, 60)
        store.fail_try(job.id, lease, "it fell")


def test_waits_do_not_mind_a_clock_that_is_set(tmp_path, spec, monkeypatch):
    store, real = Store.open(tmp_path), time.time
    fail_twice(store, spec)
    for days in (-1, 1):
        monkeypatch.setattr(time, "time", lambda days=days: real() + days * 86400)
        assert abs(Store.open(tmp_path).clock() - real()) < 60
    up = clocks.up_s
    monkeypatch.setattr(clocks, "up_s", lambda: up() + 2)
    assert store.claim("w", "cpu", ENGINES, 60) is not None


def test_no_wait_is_longer_than_the_longest(store, spec, clock):
    fail_twice(store, spec)
    assert store.claim("w", "cpu", ENGINES, 60) is None
    clock.now -= 86400
    assert store.claim("w", "cpu", ENGINES, 60) is not None


def test_another_start_of_the_machine_has_another_clock(tmp_path, monkeypatch):
    Store.open(tmp_path).close()
    monkeypatch.setattr(clocks, "boot_id", lambda: "another")
    monkeypatch.setattr(clocks, "up_s", lambda: 5.0)
    assert abs(Store.open(tmp_path).clock() - time.time()) < 60


def test_full_disk_is_reported_by_the_server_and_by_jobs(tmp_path, spec, monkeypatch):
    free = [records.MIN_FREE_BYTES]
    monkeypatch.setattr(records.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free[0]))
    with serving(tmp_path) as live, live.client() as client:
        store = live.store
        store.register_worker("w", "cpu", "a processor", 1, ["auto", "cpu"])
        early = submit(store, spec)
        follow_up, _ = store.submit("ann", JobSpec("export", "follow-up", source=early.id))
        assert client.get("/ready").status_code == 200
        free[0] -= 1
        store.explain_waiting(store.offered_engines())
        assert {store.job(job.id).waits_for for job in (early, follow_up)} == {records.FULL}
        for answer in (client.get("/ready"), client.post("/jobs", json={"preset": "checkerboard"})):
            assert (answer.status_code, answer.json()["error"]["message"]) == (503, records.FULL)
        assert len(store.jobs()) == 2
        free[0] += 1
        store.explain_waiting(store.offered_engines())
        assert {job.waits_for for job in store.jobs()} == {None}
        assert client.get("/ready").status_code == 200


def test_store_is_private(tmp_path, spec):
    store = Store.open(tmp_path / "store")
    submit(store, spec)
    store.close()
    for path in (store.folder, *store.folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    again = Store.open(store.folder)
    submit(again, spec)
    open_ones = [path for path in (store.folder, *store.folder.rglob("*")) if path.stat().st_mode & 0o077]
    assert open_ones == []
    (tmp_path / "a file").touch()
    tmp_path.chmod(0o755)
    submit(Store.open(tmp_path), spec)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / files.STORE).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / files.JOBS).stat().st_mode) == 0o700


def test_the_command_makes_a_database_again(filled, monkeypatch, said):
    store_cases.half(filled)
    monkeypatch.setenv("DIFFLOGIC_TOKEN", "too short")
    serve = ("serve", filled.folder, "--workers", "none")
    assert f"start `difflogic serve {filled.folder} --rebuild`" in said(*serve, code=1).err
    errors = said(*serve, "--rebuild", code=2).err  # its token is refused
    assert "was rebuilt from the folders of 8 jobs (4 queued, 1 paused, 1 done, 1 failed, 1 cancelled)" in errors
    assert len(Store.existing(filled.folder).jobs()) == 8
    assert (filled.folder / files.LOST / files.STORE).is_file()


def test_repeated_request_gets_the_same_job(store, spec):
    job, _ = store.submit("ann", spec, "k")
    store.edit(job.id, name="edited")
    LOSSES["removed"](store.folder)
    again = Store.open(store.folder)
    assert again.submit("ann", spec, "k") == (again.job(job.id), False)
    with pytest.raises(StoreError, match="another request"):
        again.submit("ann", replace(spec, name="other"), "k")
