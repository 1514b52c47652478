"""Duration of leases: a worker may be silent for as long as its phase and earlier durations suggest."""

import time
from types import SimpleNamespace

import pytest

from difflogic.devices.open import open_engine
from difflogic.serve.store.leases import HeartbeatReply
from difflogic.serve.worker import lease as leases
from difflogic.serve.worker.lease import RECENT, Lease, WorkerLimits
from difflogic.serve.worker.observer import ServiceObserver
from tests.serve.conftest import Clock
from tests.serve.service import wait

LIMITS = WorkerLimits(first=300, heartbeat=12, factor=20)


@pytest.fixture
def times(monkeypatch) -> Clock:
    """A clock in the place of the module `time`."""
    clock = Clock()
    monkeypatch.setattr(leases, "time", SimpleNamespace(monotonic=clock))
    return clock


@pytest.fixture
def lease(store, spec, times) -> Lease:
    store.submit("ann", spec)
    job, number = store.claim("w", "cpu", {"auto"}, 60)
    return Lease(store, job, number, LIMITS)


def due(lease: Lease) -> float:
    """Seconds until the store counts the worker as hung."""
    with lease.store.database.reading() as connection:
        row = connection.execute("SELECT lease_until FROM jobs WHERE id = ?", (lease.job.id,)).fetchone()
    return row["lease_until"] - lease.store.clock()


def live(lease: Lease, times: Clock, *seconds: float) -> None:
    for each in seconds:
        times.now += each
        lease.alive()


def test_stopped_worker_is_noticed_in_any_phase(lease, times):
    for phase in ("starting", "compiling", "evaluating", "finishing"):
        lease.enter(phase)
        assert due(lease) == LIMITS.stopped == 30


def test_first_entry_of_a_phase_may_take_long(store, spec, monkeypatch):
    """Another thread prolongs the lease meanwhile, but not for ever: the thread that works may hang."""
    store.submit("ann", spec)
    job, number = store.claim("w", "cpu", {"auto"}, 60)
    prolonged, prolong = [], store.prolong
    monkeypatch.setattr(store, "prolong", lambda *given: (prolonged.append(given), prolong(*given)))
    lease = Lease(store, job, number, WorkerLimits(first=1e9, stopped=0.06))
    with lease.kept():
        wait(lambda: len(prolonged) >= 3, "the lease to be prolonged")
    assert {given[2] for given in prolonged} == {0.06}
    prolonged.clear()
    lease.limits = WorkerLimits(first=0.0, stopped=0.06)
    with lease.kept():
        time.sleep(0.2)
    lease.limits = WorkerLimits(stopped=0.06)
    lease.enter("training", warm=True)
    with lease.kept():
        time.sleep(0.2)
    assert prolonged == []


def test_quick_epochs_are_due_soon(lease, times):
    times.now += 40  # loading an engine says nothing of its epochs
    lease.enter("compiling")
    times.now += 0.5
    lease.enter("training", warm=True)
    assert due(lease) == 12
    live(lease, times, *[0.3] * 30)
    assert due(lease) == 12


def test_after_an_evaluation_it_is_training_that_hangs(lease):
    observer = ServiceObserver(lease, open_engine("reference"), lambda: False)
    observer.advanced(1)
    observer.judging(1)
    observer.saved(1)
    assert lease.phase == "evaluating", "what the next epochs need may still be compiled"
    observer.advanced(5)
    observer.judging(10)
    assert lease.phase == "evaluating"
    observer.saved(10)
    assert lease.phase == "training"


def test_slow_epochs_are_waited_for(lease, times):
    lease.enter("compiling")
    times.now += 30
    lease.enter("training", warm=True)
    assert due(lease) == 45, "the first epoch took at most 30 s, so that another one is no hang"
    live(lease, times, 3.0)
    assert due(lease) == 60, "twenty times the slowest one"
    live(lease, times, *[0.3] * RECENT)
    assert due(lease) == 12, "what was slow is long ago"


def test_evaluations_have_a_measure_of_their_own(lease, times):
    lease.enter("training", warm=True)
    lease.enter("evaluating")
    times.now += 2
    lease.report(saved_progress=10)
    lease.warm()
    lease.enter("training", warm=True)
    live(lease, times, *[0.3] * RECENT)
    lease.enter("evaluating")
    live(lease, times, 2.0)
    assert due(lease) == 40
    lease.enter("training", warm=True)
    assert due(lease) == 12


def test_beats_are_few(lease, times):
    beats = []

    def beat(job, number, seconds, memory, **progress):
        beats.append(progress["progress"])
        return HeartbeatReply(None, False)

    lease.store = SimpleNamespace(heartbeat=beat, job_folder=lease.store.job_folder)
    for epoch in range(1, 65):
        times.now += 1 / 64
        lease.alive(progress=epoch)
    assert beats == [13, 26, 39, 52], "five a second at most, each with what is newest"
