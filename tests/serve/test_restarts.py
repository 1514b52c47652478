"""Jobs that begin again where training stalls: each attempt a run folder, and of all the best one's results."""

import io
import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.values import Within
from difflogic.devices.open import Placement, open_engine
from difflogic.runs import attempts, checkpoint, run_list
from difflogic.serve.api import artefacts
from difflogic.serve.client import unpack
from difflogic.serve.store.jobs import JobSpec
from difflogic.serve.store.store import Store
from difflogic.train import restarts
from difflogic.train.run import load_run
from tests.serve.acting import acting
from tests.serve.service import ended, reached, short_config, spec_of, wait
from tests.train.tiny import assert_same_run

pytestmark = pytest.mark.usefixtures("compiled")

MOST = 2
EPOCHS = 2000


def flat(epochs: int = EPOCHS) -> Config:
    """Return a task that is never learned: all attempts are equal and stopped early, so that the first is the best."""
    return short_config(epochs, lr=0.0).with_(task={"start": "zeros"})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store.open(tmp_path_factory.mktemp("service"))
    with acting(opened.folder):
        yield opened


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same attempts where nothing disturbs them."""
    path = tmp_path_factory.mktemp("hand") / "run"
    restarts.train(TrainRequest(config=flat(), restarts=MOST), Placement(open_engine("cpu")), path)
    return path


def submit(store: Store, **fields: object) -> str:
    return store.submit("ann", spec_of(flat(), restarts=MOST, stop_when_solved=1, **fields))[0].id


def assert_as_by_hand(store: Store, job: str, by_hand: Path) -> None:
    done, whole, record = store.job(job), store.job_folder(job).whole, attempts.read(by_hand)
    assert (done.status, done.reason) == ("done", None)
    assert attempts.read(whole) == record
    for number in (1, 2, 3):
        assert_same_run(whole / f"attempt-{number}", by_hand / f"attempt-{number}")
    assert done.result == {"attempts": [asdict(each) for each in record.attempts]}
    best = record.attempts[0]
    assert (done.attempt, done.progress, done.goal, done.saved_progress) == (1, best.epoch, EPOCHS, best.epoch)
    assert (done.hard_loss, done.solved) == (best.wrong, 0)
    rows = [json.loads(line) for line in (by_hand / "attempt-1" / "metrics.jsonl").read_text().splitlines()]
    assert done.soft_loss == rows[-1]["soft_loss"]


@pytest.fixture(scope="module")
def trained(store: Store) -> str:
    job = submit(store)
    ended(store, job)
    return job


def test_attempts_are_those_made_by_hand(store, trained, by_hand):
    assert_as_by_hand(store, trained, by_hand)
    log = store.job_folder(trained).log.read_text()
    assert "attempt 2 of at most 3, because attempt 1 was stopped early at epoch 400" in log
    lines = store.job_folder(store.job(trained)).gates.read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, *range(50, 401, 50)]


def test_its_files_are_a_run_of_the_best_attempt(store, trained, by_hand, tmp_path):
    place = store.job_folder(store.job(trained))
    archive = io.BytesIO(b"".join(artefacts.zipped(place, trained)))
    unpack(archive, trained, tmp_path / "got")
    assert_same_run(tmp_path / "got", by_hand / "attempt-1")
    assert run_list.read(tmp_path / "got").epoch == 400


def test_a_follow_up_takes_the_best_attempts_circuit(store, trained):
    job, _ = store.submit("ann", JobSpec("export", "flat", source=trained, options={"formats": ["json"]}))
    assert ended(store, job.id).status == "done"


@pytest.mark.exhaustive
def test_stopped_job_continues_in_the_right_attempt(store, by_hand):
    job = submit(store, name="hold 1.60 2.60")
    for attempt, ask in enumerate(("pause", "cancel"), 1):
        reached(store, job, 60, attempt)
        store.ask(job, ask)
        wait(lambda: store.job(job).status in ("paused", "cancelled"), "the job to stop")
        stopped = store.job(job)
        assert (stopped.attempt, stopped.progress < 400) == (attempt, True)
        assert stopped.saved_progress == stopped.progress == checkpoint.load(store.job_folder(stopped).run).state.epoch
        store.resume(job) if ask == "pause" else store.retry(job)
    ended(store, job)
    assert_as_by_hand(store, job, by_hand)


@pytest.mark.exhaustive
def test_a_corrupt_checkpoint_of_an_attempt_costs_one_interval(store, by_hand):
    job = submit(store, name="hold 2.160")
    reached(store, job, 160, attempt=2)
    store.ask(job, "pause")
    wait(lambda: store.job(job).status == "paused", "the job to pause")
    record = attempts.read(store.job_folder(job).whole)
    assert record.attempts[-1].is_open
    assert store.job(job).result == {"attempts": [asdict(each) for each in record.attempts]}
    newest = store.job_folder(store.job(job)).run / checkpoint.NAME
    newest.write_bytes(newest.read_bytes()[:-100])
    store.resume(job)
    ended(store, job)
    assert "checkpoint.safetensors cannot be used" in store.job_folder(job).log.read_text()
    assert_as_by_hand(store, job, by_hand)


@pytest.fixture(scope="module")
def unsolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Attempts until one is solved, which none ever is, until the limit ends them."""
    path = tmp_path_factory.mktemp("unsolved") / "run"
    request = TrainRequest(config=flat(), until_solved=True, within=Within.parse("1000 epochs"))
    restarts.train(request, Placement(open_engine("cpu")), path)
    return path


@pytest.mark.exhaustive
def test_job_until_solved_survives_its_worker(store, unsolved):
    job = store.submit("ann", spec_of(flat(), name="hold 2.60", until_solved=True, within="1000 epochs",
                                      stop_when_solved=1))[0].id  # fmt: skip
    reached(store, job, 60, attempt=2)
    assert store.job(job).trained_s > 0
    os.kill(next(each.pid for each in store.workers() if each.job == job), signal.SIGKILL)
    done, record = ended(store, job), attempts.read(unsolved)
    assert (done.status, done.lost_tries, done.solved, done.attempt) == ("done", 1, 0, 1)
    assert done.hard_loss == record.attempts[0].wrong
    assert done.compared == load_run(unsolved / "attempt-1").member.job.values
    assert attempts.read(store.job_folder(job).whole) == record
    assert [each.epoch for each in record.attempts] == [400, 400, 200]
    for number in (1, 2, 3):
        assert_same_run(store.job_folder(job).whole / f"attempt-{number}", unsolved / f"attempt-{number}")
    summary = (store.job_folder(job).whole / "summary.txt").read_text()
    assert summary.startswith("Not solved within 1000 epochs, attempt ")


def test_a_limit_of_time_counts_what_earlier_tries_used(store):
    job = store.submit("ann", spec_of(flat(), name="hold 1.60", until_solved=True, within="1h", stop_when_solved=1))[0]
    reached(store, job.id, 60, attempt=1)
    store.ask(job.id, "pause")
    wait(lambda: store.job(job.id).status == "paused", "the job to pause")
    with store.database.writing() as connection:
        connection.execute("UPDATE jobs SET trained_s = 3600 WHERE id = ?", (job.id,))
    store.resume(job.id)
    done = ended(store, job.id)
    assert (done.status, done.solved, done.progress) == ("done", 0, store.job(job.id).saved_progress)
    assert [each["status"] for each in done.result["attempts"]] == ["interrupted"]
    assert "Not solved within 3600 s" in (store.job_folder(job.id).whole / "summary.txt").read_text()


def test_a_worker_may_be_lost_between_the_last_epoch_and_the_result(store, by_hand):
    job = submit(store, engine="gpu:9")
    shutil.copytree(by_hand, store.job_folder(job).whole)
    with store.database.writing() as connection:
        connection.execute("UPDATE jobs SET engine = 'cpu' WHERE id = ?", (job,))
    ended(store, job)
    assert_as_by_hand(store, job, by_hand)
