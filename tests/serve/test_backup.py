"""A backup of a store in use is a store in which everything goes on."""

import os
import re
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from difflogic.runs import checkpoint
from difflogic.serve.store import backup
from difflogic.serve.store.backup import back_up
from difflogic.serve.store.files import STORE
from difflogic.serve.store.store import Store
from difflogic.serve.worker.supervisor import Supervisor
from difflogic.system.files import Output
from tests.serve.acting import acting
from tests.serve.service import by_hand, ended, held, short_config, spec_of
from tests.train.tiny import assert_same_run

pytestmark = pytest.mark.usefixtures("compiled")


def unpacked(file, folder):
    """As a person does it: the early releases of Python 3.11 have no safe way."""
    folder.mkdir()
    subprocess.run(["tar", "-xf", file, "-C", folder], check=True)
    return Store.existing(folder)


@pytest.mark.exhaustive
def test_a_backup_while_jobs_run(tmp_path, said):
    live = Store.open(tmp_path / "live")
    live.open_session("hash", "ann", 3600)
    with acting(live.folder):
        job = live.job(held(live, short_config(), 200))
        waiting, _ = live.submit("bob", spec_of(short_config(), engine="gpu"))
        assert "2 jobs" in said("backup", live.folder, tmp_path / "copy.tar.gz").out
        assert live.job(job.id).status == "running", "it did not notice"
        live.ask(job.id, "cancel")
        ended(live, job.id)
    copy = unpacked(tmp_path / "copy.tar.gz", tmp_path / "copy")
    assert {each.id: each.status for each in copy.jobs()} == {job.id: "queued", waiting.id: "queued"}
    assert (copy.workers(), copy.session_owner("hash")) == ([], None)
    assert checkpoint.read(copy.job_folder(job.id).run).epoch >= 50
    with Supervisor(copy.folder, ["cpu"]):
        assert ended(copy, job.id).lost_tries == 0
    begins = re.findall(r"from epoch (\d+)\n", copy.job_folder(job.id).log.read_text())
    assert (begins[0], len(begins)) == ("0", 2)
    assert int(begins[1]) >= 50
    assert_same_run(copy.job_folder(job.id).run, by_hand(short_config(), tmp_path / "hand"))


@pytest.mark.parametrize(("wanted", "status"), [("cancel", "cancelled"), ("pause", "paused"), ("requeue", "queued")])
def test_backup_applies_the_request_to_stop_a_running_job(store, spec, tmp_path, monkeypatch, wanted, status):
    """And a process that is killed meanwhile leaves no copy of the database."""
    job, _ = store.submit("ann", spec)
    store.claim("w", "cpu", {"auto", "cpu"}, 60)
    store.ask(job.id, wanted)
    monkeypatch.setattr(backup, "_add_job", lambda *_: copies.extend(tmp_path.glob("**/*.sqlite3")))
    copies = []
    back_up(store, Output(tmp_path / "copy.tar"))
    assert copies == [store.folder / STORE]
    again = unpacked(tmp_path / "copy.tar", tmp_path / "copy").job(job.id)
    assert (again.status, again.wanted, bool(again.ended)) == (status, None, status == "cancelled")


def test_nothing_secret_and_nothing_passing_is_in_it(store, spec, tmp_path):
    job, _ = store.submit("ann", spec)
    (store.folder / "token").write_text("secret")
    place = store.job_folder(job.id)
    place.run.mkdir(parents=True)
    for name in ("metrics.jsonl", "checkpoint.safetensors", ".lock", "circuit.json.tmp"):
        (place.run / name).write_text(name)
    place.frame.write_text("{}")
    place.log.write_text("a line\n")
    assert back_up(store, Output(tmp_path / "copy.tar")) == 1
    assert (tmp_path / "copy.tar").stat().st_mode & 0o77 == 0
    with tarfile.open(tmp_path / "copy.tar") as archive:
        held = archive.getnames()
    under = f"jobs/{job.id}"
    assert held[:3] == ["store.sqlite3", f"{under}/job.json", f"{under}/run/checkpoint.safetensors"]
    assert set(held[3:]) == {f"{under}/run/metrics.jsonl", f"{under}/log.txt"}, "checkpoints before metrics"


def test_a_backup_goes_through_a_pipe(store, spec, tmp_path):
    """To another machine, say: nothing of it is kept here."""
    store.submit("ann", spec)
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        read = pool.submit((tmp_path / "pipe").read_bytes)
        assert back_up(store, Output(tmp_path / "pipe")) == 1
        (tmp_path / "copy.tar").write_bytes(read.result())
    assert len(unpacked(tmp_path / "copy.tar", tmp_path / "copy").jobs()) == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy", "copy.tar", "pipe", "store"]


def test_a_full_disk_leaves_no_half_backup(store, spec, tmp_path, monkeypatch, said):
    store.submit("ann", spec)
    monkeypatch.setattr("difflogic.system.files.os.fsync", Mock(side_effect=OSError(28, "No space left on device")))
    assert "No space left" in said("backup", store.folder, tmp_path / "copy.tar", code=1).err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["store"]


@pytest.mark.parametrize(("workers", "words"), [("cpu,cpu", "each device once"), ("tpu", "got 'tpu'")])
def test_devices_are_checked_before_the_folder_is_made(tmp_path, workers, words, said):
    assert words in said("serve", tmp_path / "jobs", "--workers", workers, code=2).err
    assert not (tmp_path / "jobs").exists()
