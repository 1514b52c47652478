"""Whatever ends a worker or a server, its jobs come to what they would have come to undisturbed.

`python -m benchmarks.service` kills hundreds of times.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.service import workers
from benchmarks.service.cluster import kill_nodes
from benchmarks.service.servers import kill_servers
from difflogic.devices import selftest
from difflogic.devices.selftest import Check
from difflogic.gpu.adapter import select_adapter
from difflogic.serve.api.server import Server
from difflogic.serve.store import leases
from difflogic.serve.store.store import Store
from difflogic.serve.worker.lease import WorkerLimits
from difflogic.serve.worker.supervisor import Supervisor
from tests.sampled import sampled
from tests.serve.acting import acting
from tests.serve.service import PATIENCE_S, by_hand, ended, held, is_alive, reached, short_config, spec_of, wait
from tests.train.tiny import assert_same_run

pytestmark = pytest.mark.usefixtures("compiled")

KILLS = 5
QUICK = WorkerLimits(heartbeat=4.0, stopped=10.0)
"""A hang is seen sooner than by default; on the busiest machine nothing here is silent for so long."""


@pytest.fixture(autouse=True)
def children_find_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.mark.exhaustive
def test_killed_workers(tmp_path):
    outcome = workers.kill_workers(tmp_path, KILLS, seed=1, epochs=3000)
    assert (outcome.wrong, outcome.phases["training"]) == ([], KILLS)


@pytest.mark.exhaustive
def test_killed_servers(tmp_path):
    outcome = kill_servers(tmp_path, KILLS, seed=1, longest=1.5)
    assert (outcome.wrong, outcome.events) == ([], KILLS)
    assert outcome.reconnects > 0
    assert outcome.jobs > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("fault", "reason", "options"),
    [
        ("abort", "its worker was aborted (SIGABRT), and the job's log ends with: ", {}),  # inside the GPU library
        ("hang", "hung while training", {"limits": QUICK}),
        ("full", "No space left on device", {}),  # at a checkpoint
    ],
)
def test_fault_costs_one_try_and_is_named(fault, reason, options, tmp_path):
    selftest.keep(select_adapter(), [Check("self-test", True, "tried elsewhere")])
    outcome = workers.faults(tmp_path, fault, 1, **options)
    assert (outcome.wrong, outcome.events) == ([], 1)
    assert reason in outcome.reasons[0]


@pytest.mark.exhaustive
def test_a_worker_that_stands_still(store, undisturbed):
    with acting(store.folder, QUICK):
        job = held(store, short_config(), 100)
        pid = store.workers()[0].pid
        os.kill(pid, signal.SIGSTOP)
        assert ended(store, job).lost_tries == 1
        assert not is_alive(pid)
    assert_same_run(store.job_folder(job).run, undisturbed)


@pytest.mark.exhaustive
def test_a_worker_that_stands_still_before_it_trains(store, undisturbed):
    job, _ = store.submit("ann", spec_of(short_config(), name="stand"))
    with acting(store.folder, QUICK):
        done = ended(store, job.id)
    assert (done.status, done.lost_tries) == ("done", 1)
    assert_same_run(store.job_folder(job.id).run, undisturbed)


@pytest.mark.exhaustive
def test_a_supervisor_that_stops_hands_its_jobs_back(store, undisturbed):
    with acting(store.folder):
        job = held(store, short_config(), 100)
    handed = store.job(job)
    assert (handed.status, handed.lost_tries, handed.reason) == ("queued", 0, None)
    assert handed.saved_progress == handed.progress >= 100
    assert store.workers() == []
    with Supervisor(store.folder, ["cpu"]):
        assert ended(store, job).status == "done"
    assert_same_run(store.job_folder(job).run, undisturbed)


@pytest.mark.exhaustive
def test_tries_end_with_the_last_words(store, monkeypatch):
    monkeypatch.setattr(leases, "BACK_OFF_S", (0.0,))
    job, _ = store.submit("ann", spec_of(short_config(), name="die"))
    with acting(store.folder):
        failed = ended(store, job.id)
    assert (failed.status, failed.lost_tries) == ("failed", 5)
    for words in ("Stopped after 5 tries", "exit status 7", "the driver is broken"):
        assert words in failed.reason
    assert store.job_folder(job.id).log.read_text().count("the driver is broken") == 5


SUPERVISES = """
import signal, sys
from pathlib import Path
from difflogic.serve.worker.supervisor import Supervisor
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with Supervisor(Path(sys.argv[1]), ["cpu"]):
    signal.sigwait([signal.SIGINT])
"""


def hands(store: Store) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SUPERVISES, str(store.folder)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize(
    "number", sampled([None, signal.SIGUSR1], {None}), ids=["its supervisor is killed", "a cluster's signal"]
)
def test_a_worker_that_is_ended_hands_its_job_back(number, store):
    job, _ = store.submit("ann", spec_of(short_config(1_000_000)))
    with hands(store) as supervisor:
        reached(store, job.id, 100)
        pid = store.workers()[0].pid
        if number is not None:
            supervisor.send_signal(signal.SIGSTOP)  # else it starts another worker, which takes the job
            os.kill(pid, number)
            wait(lambda: store.job(job.id).status == "queued", "the job to be handed back")
        supervisor.kill()
    wait(lambda: not is_alive(pid), "the worker to end")
    handed = store.job(job.id)
    assert (handed.status, handed.lost_tries) == ("queued", 0), "it saved, and handed its job back"
    assert handed.saved_progress >= 100


def test_server_stops_by_the_signals_that_stop_a_training():
    received = []
    with Server.capture_signals(SimpleNamespace(handle_exit=lambda number, _: received.append(number))):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.raise_signal(number)
    assert received == [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]


@pytest.mark.exhaustive
def test_several_supervisors_share_a_store(store, tmp_path):
    made = [store.submit("ann", spec_of(short_config(300)))[0].id for _ in range(4)]
    several = [hands(store), hands(store)]
    try:
        wait(lambda: store.counts() == {"done": 4}, "all jobs")
    finally:
        for each in several:
            each.send_signal(signal.SIGINT)
        codes = [each.wait(PATIENCE_S) for each in several]
    assert codes == [0, 0]
    hand = by_hand(short_config(300), tmp_path / "hand")
    for job in made:
        assert store.job_folder(job).log.read_text().count("try 1") == 1
        assert_same_run(store.job_folder(job).run, hand)


def test_without_ray_one_sentence_says_what_to_install(tmp_path, monkeypatch, said):
    monkeypatch.setitem(sys.modules, "ray", None)
    errors = said("serve", tmp_path / "store", "--workers", "ray", code=1).err
    assert "A worker on a Ray cluster requires ray, part of the extra `ray`" in errors
    assert not (tmp_path / "store").exists()


# Ray leaves processes and sockets of lost machines to the garbage collector, which complains of them.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_machine_that_comes_later_and_one_that_is_lost(tmp_path):
    """The later one works, and does what the lost one had: every job comes to what it would have come to by hand."""
    pytest.importorskip("ray")
    outcome = kill_nodes(tmp_path, 1)
    assert (outcome.wrong, outcome.events) == ([], 1)
