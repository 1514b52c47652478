"""Post-processing jobs beside trainings: they wait for no device, and each end of their processes is reported."""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from difflogic.config import presets
from difflogic.devices.open import open_engine
from difflogic.errors import StoreError
from difflogic.model import netlist_json
from difflogic.serve.store.jobs import JobRecord, JobSpec
from difflogic.serve.store.store import Store
from difflogic.serve.worker import follow_up_process, follow_ups, training, worker
from difflogic.serve.worker.devices import FOLLOW_UPS
from difflogic.serve.worker.follow_up_process import FollowUpProcess
from difflogic.serve.worker.lease import WorkerLimits
from difflogic.serve.worker.supervisor import Supervisor
from difflogic.train.trainer import Trainer
from tests.serve.acting import WORKS, acting
from tests.serve.service import PATIENCE_S, ended, held, is_alive, short_config, spec_of, wait

pytestmark = pytest.mark.usefixtures("compiled")

SLEEPS = "import time; time.sleep(600)"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store.open(tmp_path_factory.mktemp("follow"))


@pytest.fixture(scope="module")
def trained(store: Store) -> str:
    """A trained job, as source of post-processing jobs."""
    job = store.submit("ann", spec_of(short_config(100)))[0].id
    with Supervisor(store.folder, ["cpu"]):
        ended(store, job)
    return job


def submit(store: Store, trained: str, kind: str = "export") -> JobRecord:
    options = {"formats": ["c"]} if kind == "export" else {}
    return store.submit("ann", JobSpec(kind, f"{kind} tiny", source=trained, options=options))[0]


def follow(store: Store, limits: WorkerLimits | None = None) -> tuple[worker.WorkerProcess, threading.Thread]:
    """Start the next post-processing job in a worker in this process."""
    hand = worker.WorkerProcess(store, "hand", FOLLOW_UPS, [], limits or WorkerLimits(), None)
    claimed = store.claim(hand.name, hand.device, hand.engines, hand.limits.stopped)
    assert claimed is not None
    thread = threading.Thread(target=hand._run_job, args=claimed)
    thread.start()
    return hand, thread


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[FollowUpProcess]:
    """Post-processing processes, as they begin."""
    made: list[FollowUpProcess] = []
    real = FollowUpProcess.__enter__
    monkeypatch.setattr(FollowUpProcess, "__enter__", lambda self: made.append(self) or real(self))
    return made


@pytest.mark.exhaustive
def test_a_follow_up_does_not_wait_for_a_training(store, trained):
    seen: set[str] = set()
    with acting(store.folder, WorkerLimits(idle=1.0)):
        long = held(store, short_config(), 100)
        export = submit(store, trained).id
        wait(lambda: seen.update(each.device for each in store.workers()) or store.job(export).is_over, "the export")
        assert seen == {"cpu", FOLLOW_UPS}
        done = store.job(export)
        assert (done.status, done.device, done.lost_tries) == ("done", "cpu", 0)
        assert done.result["formats"]["c"] == ["export_tiny.h", "export_tiny_demo.c"]
        assert store.job(long).status == "running"
        wait(lambda: [each.device for each in store.workers()] == ["cpu"], "the idle one to end")
        again = submit(store, trained, "simplify").id
        assert ended(store, again).result["equal"]
        store.ask(long, "cancel")
        ended(store, long)
        assert "done\n" in store.job_folder(again).log.read_text()
    store.delete(long)


def test_build_makes_a_circuit_for_the_task_of_a_training(store, trained):
    config = presets.lizard().with_(train={"epochs": 1})
    source = store.submit("ann", spec_of(config))[0]
    store.ask(source.id, "cancel")
    Trainer(config, open_engine("cpu")).run(out=store.job_folder(source).whole)
    job = store.submit("ann", JobSpec("build", "build", source=source.id))[0]
    store.ask(job.id, "cancel")
    result = follow_ups.follow(store, job)
    assert (result["proved"], result["equal"]) == (True, True)
    assert result["text"].startswith("From its initial state the image is right at step 12")
    assert (store.job_folder(job).files / "circuit.json").exists()


def test_proof_jobs_report_their_results(store, trained):
    """A proof of a training is of its task, as by `difflogic prove`; one of a simplification is of equality."""

    def made(kind, source, **options):
        job = store.submit("ann", JobSpec(kind, kind, source=source, options=options))[0]
        store.ask(job.id, "cancel")  # no worker has anything left to do with what is followed here
        return job.id, follow_ups.follow(store, job)

    proof, claimed = made("prove", trained, every_start=True)
    kept = json.loads((store.job_folder(proof).files / "proof.json").read_text())
    assert (kept["claim"], kept["proved"], kept["text"]) == ("every-start", claimed["proved"], claimed["text"])
    smaller, _ = made("simplify", trained)
    assert made("prove", smaller)[1]["proved"] is True
    file = store.job_folder(smaller).files / "circuit.json"
    right = netlist_json.load(file)
    file.write_text(netlist_json.to_json(replace(right, outputs=0 * right.outputs)))
    found = made("prove", smaller)[1]
    assert found["proved"] is False
    assert found["text"].startswith("Different: the two do not compute the same next state")


@pytest.mark.exhaustive
def test_an_export_does_not_wait_behind_another_follow_up(store, trained):
    with acting(store.folder):
        long = store.submit("ann", JobSpec("simplify", "hold", source=trained))[0].id
        wait(lambda: store.job(long).phase == "working", "the long one to begin")
        assert ended(store, submit(store, trained).id).status == "done"
        assert store.job(long).status == "running"
        assert [each.device for each in store.workers()].count(FOLLOW_UPS) == 2
        store.ask(long, "cancel")
        ended(store, long)
    store.delete(long)


@pytest.mark.exhaustive
def test_a_worker_of_follow_ups_that_is_killed(store, trained):
    with acting(store.folder):
        job = store.submit("ann", JobSpec("simplify", "hold", source=trained))[0].id
        wait(lambda: store.job(job).phase == "working", "the follow-up to begin")
        hand = next(each for each in store.workers() if each.job == job)
        os.kill(hand.pid, signal.SIGKILL)
        done = ended(store, job)
    assert (done.status, done.lost_tries, done.reason) == ("done", 1, None)


@pytest.mark.exhaustive
def test_a_server_that_stops_hands_a_follow_up_back(store, trained, monkeypatch, begun):
    job = submit(store, trained).id
    monkeypatch.setattr(follow_up_process, "COMMAND", (sys.executable, "-c", SLEEPS))
    hand, thread = follow(store)
    wait(lambda: begun, "the process")
    hand.stopping = True
    thread.join(PATIENCE_S)
    handed = store.job(job)
    assert (handed.status, handed.lost_tries, handed.reason) == ("queued", 0, None)
    assert not is_alive(begun[0].pid)
    monkeypatch.undo()
    with Supervisor(store.folder, ["cpu"]):
        assert ended(store, job).status == "done"


@pytest.mark.parametrize(("ask", "status"), [("cancel", "cancelled"), ("pause", "paused")])
def test_request_to_stop_ends_post_processing_at_once(store, trained, monkeypatch, begun, ask, status):
    job = submit(store, trained).id
    monkeypatch.setattr(follow_up_process, "COMMAND", (sys.executable, "-c", WORKS))
    _, thread = follow(store)
    wait(lambda: begun, "the process")
    store.ask(job, ask)
    thread.join(PATIENCE_S)
    assert store.job(job).status == status
    assert not is_alive(begun[0].pid)
    store.delete(job)


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell of processors' time")
def test_one_that_stands_still_is_ended_and_one_that_works_is_not(store, trained, monkeypatch):
    limits = WorkerLimits(stalled=1.5, follow_up=3.0)
    job = submit(store, trained).id
    monkeypatch.setattr(follow_up_process, "COMMAND", (sys.executable, "-c", SLEEPS))
    follow(store, limits)[1].join(PATIENCE_S)
    fallen = store.job(job)
    assert (fallen.status, fallen.lost_tries) == ("queued", 1)
    assert fallen.reason == "Try 1 of 5 ended: it made no progress for 2 s."

    monkeypatch.setattr(follow_up_process, "COMMAND", (sys.executable, "-c", WORKS))
    begun = time.monotonic()
    follow(store, limits)[1].join(PATIENCE_S)
    assert time.monotonic() - begun >= 3
    failed = store.job(job)
    assert (failed.status, failed.reason) == ("failed", "It exceeded the time limit of 3 s.")


def test_one_that_breaks_off(store, trained, monkeypatch):
    job = submit(store, trained).id
    dies = "import sys, os; sys.stderr.write('the solver is broken\\n'); sys.stderr.flush(); os.abort()"
    monkeypatch.setattr(follow_up_process, "COMMAND", (sys.executable, "-c", dies))
    follow(store)[1].join(PATIENCE_S)
    fallen = store.job(job)
    assert (fallen.status, fallen.lost_tries) == ("queued", 1)
    assert "its process was aborted (SIGABRT), and the job's log ends with: " in fallen.reason
    assert "the solver is broken" in store.job_folder(job).log.read_text()
    store.ask(job, "cancel")


def test_its_process_does_not_outlive_its_worker(store, trained):
    job = submit(store, trained).id
    with FollowUpProcess(store.folder, job) as found:
        assert found._process.stdin is not None
        found._process.stdin.close()
        wait(lambda: found.is_over(0.1), "its end")
        assert found._process.returncode in (0, 1, -9)  # its whole group is killed
    store.ask(job, "cancel")


def test_processor_time(tmp_path: Path):
    before = follow_up_process.processor_time(os.getpid())
    if before is None:
        assert sys.platform != "linux"
        return
    deadline = time.process_time() + 0.1
    while time.process_time() < deadline:
        pass
    assert 0.05 <= follow_up_process.processor_time(os.getpid()) - before < 60
    assert follow_up_process.processor_time(2**22 + 1) is None


def test_a_job_that_lacks_what_its_kind_needs_is_a_clear_failure(tmp_path):
    """Nothing that the interface lets through, but a store may be of another hand."""
    store = Store.open(tmp_path)
    for spec in (JobSpec("evaluate", "of nothing"), JobSpec("train", "nothing", engine="cpu")):
        job, _ = store.submit("ann", spec)
        with pytest.raises(StoreError, match="delete it"):
            follow_ups.follow(store, job) if spec.kind == "evaluate" else training.train(store, job, None, None)
