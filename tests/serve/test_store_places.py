"""A store is one machine's, on a disk of its own."""

import os
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from difflogic.errors import StoreError
from difflogic.serve.store import files, machine, mount
from difflogic.serve.store.jobs import StoreLostError
from difflogic.serve.store.machine import Machine
from difflogic.serve.store.store import Store
from tests.serve.test_store import submit


@pytest.fixture
def on(monkeypatch):
    """Be on another machine for a while."""

    @contextmanager
    def on(where):
        with monkeypatch.context() as context:
            context.setattr(machine, "here", lambda: where)
            yield

    with on(Machine("one", "", "boot 1")):
        yield on


def test_a_second_machine_is_refused_until_the_first_has_gone(tmp_path, spec, on, said):
    store = Store.open(tmp_path)
    job = submit(store, spec)
    with on(Machine("two", "", "boot 2")):
        with pytest.raises(StoreError, match=r"used by the machine one: stop .* try again in \d+ seconds"):
            Store.open(tmp_path)
        for command in (("gc", tmp_path, "--quota", 1), ("backup", tmp_path, tmp_path / "copy.tar")):
            assert "used by the machine one" in said(*command, code=1).err
        assert submit(store, spec), "the first one goes on"
        long_ago = time.time() - machine.GONE_S - 1
        os.utime(tmp_path / machine.NAME, (long_ago, long_ago))
        other = Store.open(tmp_path)
        assert job in other.jobs()
    with pytest.raises(StoreLostError, match="The machine two took over the store while this one was suspended"):
        submit(store, spec)


def test_a_machine_whose_clock_is_ahead_is_waited_for_no_longer(tmp_path, on):
    """Its sign of life counts from the moment at which it is seen, since its time stamp cannot be trusted."""
    Store.open(tmp_path).close()
    path = tmp_path / machine.NAME
    ahead = time.time() + 2e9
    os.utime(path, (ahead, ahead))
    with on(Machine("two", "", "boot 2")):
        with pytest.raises(StoreError, match=r"try again in 60 seconds"):
            Store.open(tmp_path)
        assert abs(path.stat().st_mtime - time.time()) < 3600, "from here on it is as every other one"


@pytest.mark.parametrize("now", [Machine("renamed", "", "boot 1"), Machine("one", "", "boot 2")])
def test_a_machine_that_was_renamed_or_restarted_goes_on(tmp_path, on, now):
    Store.open(tmp_path).close()
    for name, boot in ((now.name, now.boot), ("new", now.boot), ("new", "boot 3")):
        with on(Machine(name, "", boot)):
            Store.open(tmp_path)


def test_a_store_in_use_gives_signs_of_life(store, monkeypatch):
    long_ago = time.time() - 1000
    os.utime(store.folder / machine.NAME, (long_ago, long_ago))
    monkeypatch.setattr(machine, "BEAT_S", 0.0)
    store.version()
    assert (store.folder / machine.NAME).stat().st_mtime > long_ago + 900


@pytest.mark.parametrize(("kind", "words"), [
    ("nfs4", "another machine"), ("cifs", "another machine"), ("9p", "another machine"),
    ("fuse.sshfs", "another machine"), ("ceph", "another machine"), ("overlay", "deleted with its container"),
    ("ext4", None), ("fuseblk", None), ("tmpfs", None), ("zfs", None),
])  # fmt: skip
def test_network_and_overlay_mounts_are_refused(tmp_path, monkeypatch, said, kind, words):
    place = tmp_path / "my disk"
    place.mkdir()
    mounts = tmp_path / "mountinfo"
    escaped = str(place).replace(" ", r"\040")
    mounts.write_text(
        "22 1 254:0 / / rw,relatime - xfs /dev/vda rw\n"
        f"23 22 0:7 / {escaped} rw master:1 - ext2 below rw\n"
        f"24 22 0:8 / {escaped} rw - {kind} server:/export rw\n"
        f"25 22 0:9 / {place}s rw - nfs4 another rw\n"
    )
    monkeypatch.setattr(mount, "MOUNTS", mounts)
    monkeypatch.delenv(mount.ALLOW)
    if words is not None:
        errors = said("serve", place / "jobs", code=1).err
        assert all(each in errors for each in (words, f"on a mount of kind {kind}", "--any-mount"))
        assert list(place.iterdir()) == []
        monkeypatch.setenv("DIFFLOGIC_TOKEN", "too short")
        said("serve", place / "jobs", "--workers", "none", "--any-mount", code=2)  # its token is refused
    Store.open(place / "jobs")


def test_a_file_that_is_gone_by_then_is_no_reason_to_refuse(tmp_path, monkeypatch):
    """SQLite removes its journal while another process makes the same store."""
    (tmp_path / "store.sqlite3").touch()
    listed = [*tmp_path.iterdir(), tmp_path / "store.sqlite3-journal"]
    with monkeypatch.context() as racing:
        racing.setattr(Path, "iterdir", lambda path: iter(listed))
        files.make_private(tmp_path)
    assert (tmp_path / "store.sqlite3").stat().st_mode & 0o077 == 0
