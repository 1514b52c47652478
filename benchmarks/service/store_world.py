"""External faults of a closed store: other machines, mounts, clocks, full disks and permissions."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct
import time
from collections.abc import Callable
from dataclasses import replace

from benchmarks.service import jobs
from benchmarks.service.store_cases import database, in_child
from benchmarks.service.store_faults import FOREVER_S, Case, Filled
from difflogic.errors import StoreError
from difflogic.serve.store import clock, machine, mount
from difflogic.serve.store.store import Store


def full_at_a_submission(filled: Filled) -> None:
    """Submit jobs with a limit on file sizes, which first fails the record, then the database."""

    def act(store: Store) -> None:
        for most in (100, database(filled).stat().st_size // 8):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            for number in range(60):
                with contextlib.suppress(StoreError):
                    job, _ = store.submit("ann", replace(jobs.spec_of(jobs.config()), name=f"late {number}"))
                    (filled.folder.with_name("acknowledged") / job.id).touch()

    filled.folder.with_name("acknowledged").mkdir()
    in_child(filled, act)
    store = Store.open(filled.folder)
    late = {job.id for job in store.jobs(limit=1000)} - filled.jobs.keys()
    # The store contains exactly the acknowledged jobs.
    assert late == {path.name for path in filled.folder.with_name("acknowledged").iterdir()}
    assert len(late) < 120
    filled.note(store)
    filled.held = "", 0
    store.close()


def refusal(filled: Filled) -> str:
    """Return the message by which the store is refused. Raises AssertionError if it is not refused."""
    try:
        Store.open(filled.folder).close()
    except StoreError as error:
        return str(error)
    raise AssertionError("it was not refused")


def used_by_another_machine(filled: Filled) -> None:
    Store.open(filled.folder).close()  # writes the heartbeat of this machine
    here = machine.here
    try:
        machine.here = lambda: machine.Machine("another", "", "another")
        assert "is used by the machine" in refusal(filled)
        gone = time.time() - machine.GONE_S - 1
        os.utime(filled.folder / machine.NAME, (gone, gone))
        Store.open(filled.folder).close()
    finally:
        machine.here = here
    assert "is used by the machine another" in refusal(filled)
    (filled.folder / machine.NAME).unlink()


def mounted(filled: Filled) -> None:
    mounts, allowed = mount.MOUNTS, os.environ.pop(mount.ALLOW, None)
    mount.MOUNTS = filled.folder.with_name("mountinfo")
    try:
        for kind in ("nfs4", "cifs", "fuse.sshfs", "9p", "ceph", "lustre", "overlay"):
            mount.MOUNTS.write_text(f"22 1 0:9 / / rw - {kind} there rw\n")
            assert f"on a mount of kind {kind}" in refusal(filled)
    finally:
        mount.MOUNTS = mounts
        os.environ |= {mount.ALLOW: allowed} if allowed else {}


def clock_set(days: int, restarted: bool = False) -> Callable[[Filled], None]:
    """Return a fault: while a job waits for its next try, the clock is set, or the machine restarts with that clock."""

    def strike(filled: Filled) -> None:
        store, wall, up, boot = Store.open(filled.folder), time.time, clock.up_s, clock.boot_id
        for _ in range(2):  # the second retry waits, while other jobs can be claimed
            claimed = store.claim("w", "cpu", {"cpu"}, FOREVER_S)
            assert claimed is not None
            store.fail_try(claimed[0].id, claimed[1], "it fell")
        filled.note(store)
        store.close()
        try:
            time.time = lambda: wall() + days * 86400
            clock.up_s = (lambda: 5.0) if restarted else (lambda: up() + 2)
            clock.boot_id = (lambda: "another") if restarted else boot
            store = Store.open(filled.folder)
            taken = {found[0].id for _ in range(3) if (found := store.claim("w", "cpu", {"cpu"}, FOREVER_S))}
            assert claimed[0].id in taken
            store.expire_worker("w", "it was a test")
            filled.note(store)
            store.close()
        finally:
            time.time, clock.up_s, clock.boot_id = wall, up, boot

    return strike


def rights_taken(filled: Filled) -> None:
    """Open a store with an unreadable database in a process without capabilities, which root would have."""
    answer = filled.folder.with_name("answer")
    database(filled).chmod(0o000)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            # The header has the version of the structures and this process. All capabilities are removed.
            ctypes.CDLL(None).capset(struct.pack("Ii", 0x20080522, 0), bytes(24))
            answer.write_text(refusal(filled))
        os._exit(0)
    os.waitpid(child, 0)
    assert "cannot be opened: unable to open database file" in answer.read_text()
    database(filled).chmod(0o600)


CASES: dict[str, Case] = {
    "disk full at submissions": Case(full_at_a_submission, None),
    "used by another machine": Case(used_by_another_machine, None),
    "on network and overlay mounts": Case(mounted, None),
    "clock set back a day": Case(clock_set(-1), None),
    "clock set forward a day": Case(clock_set(1), None),
    "started with the clock of yesterday": Case(clock_set(-1, restarted=True), None),
    "rights taken away": Case(rights_taken, None),
}
