"""Real workers under a supervisor: what they train is what anyone would have trained by hand."""

import base64
import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from difflogic.circuits.export.formats import written
from difflogic.config.model import NetworkConfig
from difflogic.devices.open import open_engine
from difflogic.errors import CheckpointError, RunFolderError, UsageError
from difflogic.model import netlist_json, straight_line
from difflogic.model.cell_netlist import CellNetlist
from difflogic.runs import checkpoint, chosen
from difflogic.serve.store import records
from difflogic.serve.store.jobs import JobSpec, new_id
from difflogic.serve.store.store import Store
from difflogic.serve.worker import follow_ups, worker
from difflogic.serve.worker.lease import WorkerLimits
from difflogic.serve.worker.observer import ServiceObserver
from difflogic.train.trainer import Trainer
from tests.sampled import sampled
from tests.serve.acting import acting
from tests.serve.service import EPOCHS, by_hand, ended, held, reached, short_config, spec_of, wait
from tests.train.tiny import assert_same_run, columns_of, tiny_config

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store.open(tmp_path_factory.mktemp("service"))
    with acting(opened.folder):
        yield opened
    assert opened.workers() == []


@pytest.fixture(scope="module")
def trained(store: Store) -> str:
    job, _ = store.submit("ann", spec_of(short_config()))
    assert ended(store, job.id).status == "done"
    return job.id


def test_a_job_is_trained_as_by_hand(store, trained, undisturbed):
    job = store.job(trained)
    assert_same_run(store.job_folder(trained).run, undisturbed)
    rows = [json.loads(line) for line in (undisturbed / "metrics.jsonl").read_text().splitlines()]
    fewest = min(row["hard_loss"] for row in rows if row["hard_loss"] is not None)
    assert job.progress == job.saved_progress == EPOCHS
    assert (job.soft_loss, job.hard_loss) == (rows[-1]["soft_loss"], fewest)
    assert (job.lost_tries, job.device, job.phase, job.reason) == (0, "cpu", None, None)
    assert job.created <= job.started <= job.ended
    (hand,) = store.workers()
    assert (hand.device, hand.job) == ("cpu", None)
    assert hand.memory is None or hand.memory > 30_000_000, "an engine is loaded in it"
    log = store.job_folder(trained).log.read_text()
    assert "from epoch 0" in log
    assert f"epoch {EPOCHS}: soft loss" in log


def test_gates_of_every_evaluation_are_stored(store, trained):
    lines = [json.loads(line) for line in store.job_folder(trained).gates.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, *range(50, EPOCHS + 1, 50)]
    assert lines[0]["layers"][0]["name"] == "perceive 0"
    counted = np.array([layer["counts"] for layer in lines[-1]["layers"]])
    logits = checkpoint.load(store.job_folder(trained).run).state.logits
    assert counted.sum(axis=0).tolist() == np.bincount(logits.argmax(axis=1), minlength=16).tolist()
    best = chosen.load(store.job_folder(trained).run)
    shown = written(CellNetlist.of_run(best.circuit, best.config), "html")  # on the circuit's own page
    assert store.job(trained).active_gates == sum(len(line.reads) == 2 for line in straight_line.lines(shown))


@pytest.mark.parametrize(("ask", "status", "again"), [("pause", "paused", "resume"), ("cancel", "cancelled", "retry")])
def test_a_stopped_job_goes_on_as_if_it_had_not_been(store, undisturbed, ask, status, again):
    job = held(store, short_config(), 60)
    store.ask(job, ask)
    wait(lambda: store.job(job).status == status, f"the job to be {status}")
    stopped = store.job(job)
    assert 60 <= stopped.progress < EPOCHS
    assert stopped.saved_progress == stopped.progress == checkpoint.load(store.job_folder(job).run).state.epoch
    assert (stopped.ended is None) == (status == "paused")
    getattr(store, again)(job)
    assert ended(store, job).lost_tries == 0
    assert_same_run(store.job_folder(job).run, undisturbed)


@pytest.mark.exhaustive
def test_a_population_that_is_requeued_and_solved(store, tmp_path):
    config = tiny_config(epochs=900, eval_interval=50)
    hand = Trainer(config, open_engine("cpu")).run(out=tmp_path / "run", population=3)
    job = held(store, config, 60, population=3)
    store.ask(job, "requeue")
    done = ended(store, job)
    assert done.status == "done"
    assert columns_of(store.job_folder(job).run) == columns_of(tmp_path / "run")
    assert done.hard_loss == hand.wrong
    assert done.soft_loss == min(member.metrics[-1].soft_loss for member in hand.members)


def test_a_training_that_begins_with_the_circuit_of_another(store, trained, undisturbed, tmp_path):
    config = tiny_config(epochs=60, eval_interval=20)
    hand = by_hand(config, tmp_path / "run", init_from=undisturbed)
    job, _ = store.submit("ann", spec_of(config, source=trained))
    assert ended(store, job.id).status == "done"
    assert_same_run(store.job_folder(job.id).run, hand)
    other = replace(config.model, update=NetworkConfig((10, 8, 4, 2), ("unique",) * 3))
    job, _ = store.submit("ann", spec_of(config.with_(model=other), source=trained))
    failed = ended(store, job.id)
    assert (failed.status, failed.lost_tries) == ("failed", 0)
    assert failed.reason.startswith("`init_from` requires a run with a circuit of the same shape")
    assert str(store.folder) not in failed.reason


def test_frames_are_made_for_listeners(store, trained):
    last = json.loads(store.job_folder(trained).frame.read_text())
    assert last["epoch"] == EPOCHS, "what became of it is drawn unasked"
    config = short_config(1_000_000)
    job, _ = store.submit("ann", spec_of(config))
    path = store.job_folder(job.id).frame
    reached(store, job.id, 500)
    assert not path.exists()
    store.watch(job.id, 60)
    wait(path.exists, "a frame")
    first = json.loads(path.read_text())
    wait(lambda: json.loads(path.read_text())["epoch"] > first["epoch"], "another frame")
    store.ask(job.id, "cancel")
    ended(store, job.id)
    frame = json.loads(path.read_text())
    # the same rollout from the same state, trained to that epoch without a server
    hand = Trainer(config, open_engine("cpu")).run(epochs=frame["epoch"])
    member = hand.member
    states = open_engine("reference").rollout(member.circuit, member.job.probes[:1], 3, "hard")
    wanted = states[:, 0].astype(np.uint8).transpose(0, 3, 1, 2)
    assert (frame["seed"], frame["height"], frame["width"], frame["visible"]) == (23, 5, 6, 1)
    assert frame["film"]["steps"] == [0, 1, 2, 3]
    assert frame["film"]["bits"] == _packed(wanted[:, :1])
    assert frame["tiles"] == {"step": 3, "channels": [0, 1], "bits": _packed(wanted[-1])}


def _packed(bits: np.ndarray) -> str:
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


def follow(store, kind, source, **options):
    job, _ = store.submit("ann", JobSpec(kind, f"{kind} tiny", source=source, options=options))
    done = ended(store, job.id)
    return done, store.job_folder(job.id).files


def made(store, kind, source, **options):
    """The same here, of a job that is in no queue."""
    about = {"id": new_id(), "kind": kind, "name": f"{kind} tiny", "source": source, "options": options}
    job = replace(store.job(source), **about)
    return follow_ups.follow(store, job), store.job_folder(job.id).files


@pytest.mark.exhaustive
def test_follow_ups(store, trained):
    simplified, files = follow(store, "simplify", trained)
    assert (simplified.status, simplified.reason, simplified.result["equal"]) == ("done", None, True)
    assert simplified.result["gates"]["after"] < simplified.result["gates"]["before"]
    small = netlist_json.from_data(json.loads((files / "circuit.json").read_text()))
    assert small.visible == 1
    assert (files / "circuit.svg").read_bytes().startswith(b"<")

    started, _ = follow(store, "simplify", trained, from_start=True)
    assert started.status == "failed"
    assert started.reason.startswith("`from_start` needs a circuit with a fixed initial state")

    exported, files = made(store, "export", simplified.id, formats=["c", "html"])
    assert exported["formats"]["c"] == ["export_tiny.h", "export_tiny_demo.c"]
    assert sorted(each.name for each in files.iterdir()) == ["export_tiny.h", "export_tiny.html", "export_tiny_demo.c"]

    evaluated, files = made(store, "evaluate", trained, quick=True)
    assert "accuracy" in evaluated["measures"]
    for name in ("evaluation.json", "report.html"):
        assert str(store.folder) not in (files / name).read_text(), "where the store is concerns nobody"


def test_a_simplification_for_its_own_grid(store):
    job, _ = store.submit("ann", spec_of(short_config(50).with_(task={"start": "seed"})))
    assert ended(store, job.id).status == "done"
    height, width = (job.config["task"][side] for side in ("height", "width"))
    found, files = made(store, "simplify", job.id, from_start=True, size=f"{width}x{height + 1}")
    assert found["from_start"]["equal"] is True
    assert f"on {width}x{height + 1} cells by following both" in found["from_start"]["how"]
    scenario = netlist_json.load(files / "circuit.json").scenario
    assert (scenario.height, scenario.width) == (height + 1, width)
    with pytest.raises(UsageError, match="`size` requires `from_start`"):
        made(store, "simplify", job.id, size="8x8")


def test_follow_ups_that_cannot_be(store, trained):
    with pytest.raises(UsageError, match="'pdf' is not a format"):
        made(store, "export", trained, formats=["c", "pdf"])
    unborn = store.submit("ann", spec_of(short_config(), engine="gpu"))[0].id
    store.ask(unborn, "cancel")
    with pytest.raises(CheckpointError, match="no circuit yet"):
        made(store, "simplify", unborn)


@pytest.mark.exhaustive
def test_others_jobs_cannot_be_followed(store, trained):
    job, _ = store.submit("bob", JobSpec("simplify", "mine", source=trained))
    assert (ended(store, job.id).status, store.job(job.id).reason) == ("failed", f"Unknown job '{trained}'.")


def test_a_job_that_cannot_be_trained_fails_with_a_sentence(store):
    data = short_config().to_dict()
    data["train"]["batch"] = 0
    job, _ = store.submit("ann", JobSpec("train", "wrong", data, engine="cpu"))
    failed = ended(store, job.id)
    assert (failed.status, failed.lost_tries) == ("failed", 0)
    assert "batch" in failed.reason


def interrupted(store):
    """A job whose worker saved a few checkpoints and was let go."""
    job = held(store, short_config(), 160)
    store.ask(job, "pause")
    wait(lambda: store.job(job).status == "paused", "the job to pause")
    return job, store.job_folder(job)


def test_a_corrupt_checkpoint_costs_one_interval(store, undisturbed):
    job, place = interrupted(store)
    newest, previous = place.run / checkpoint.NAME, place.run / checkpoint.PREVIOUS
    before = checkpoint.read(previous).epoch
    assert 0 < store.job(job).saved_progress - before <= 50
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    store.resume(job)
    assert ended(store, job).status == "done"
    log = place.log.read_text()
    assert "checkpoint.safetensors cannot be used: " in log
    assert "corrupt" in log
    assert f"from epoch {before}\n" in log
    assert_same_run(place.run, undisturbed)


@pytest.mark.parametrize("damage", sampled(["both", "none saved"], {"both"}))
def test_without_any_checkpoint_it_begins_again(store, undisturbed, damage):
    job, place = interrupted(store)
    for name in (checkpoint.NAME, checkpoint.PREVIOUS):
        if damage == "both":
            (place.run / name).write_bytes(b"not a checkpoint")
        else:  # killed between the first file of the folder and the first checkpoint
            (place.run / name).unlink()
    store.resume(job)
    assert ended(store, job).status == "done"
    assert_same_run(place.run, undisturbed)
    assert (place.path / "unusable-1").exists() == (damage == "both")
    assert ("old files in unusable-1" in place.log.read_text()) == (damage == "both")


def test_no_job_is_taken_while_the_disk_is_full(store, monkeypatch, caplog):
    free = [records.MIN_FREE_BYTES - 1]
    monkeypatch.setattr(records.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free[0]))
    hand = worker.WorkerProcess(store, "w", "cpu", ["cpu"], WorkerLimits(), None)
    assert not hand._has_disk_space()
    assert not hand._has_disk_space()
    (line,) = caplog.records
    assert line.fields["why"] == records.FULL
    free[0] = records.MIN_FREE_BYTES
    assert hand._has_disk_space()


@pytest.mark.parametrize("then", ["cancel", "error"])
def test_stopping_worker_takes_no_other_job(tmp_path, monkeypatch, then):
    """Also where a cancel comes after the signal, or the training ends in an error."""
    store = Store.open(tmp_path)
    first, _ = store.submit("ann", spec_of(short_config()))
    second, _ = store.submit("ann", spec_of(short_config()))

    def advanced(observer: ServiceObserver, epoch: int) -> None:
        if not told:
            told.append(epoch)
            signal.raise_signal(signal.SIGTERM)
            if then == "error":
                raise RunFolderError("The disk is full.")
        really_advanced(observer, epoch)

    def ending(observer: ServiceObserver) -> None:
        if observer._lease.job.id == first.id:
            store.ask(first.id, "cancel")
        real(observer)

    told: list[int] = []
    real, really_advanced = ServiceObserver.ending, ServiceObserver.advanced
    monkeypatch.setattr(ServiceObserver, "advanced", advanced)
    monkeypatch.setattr(ServiceObserver, "ending", ending)
    before = signal.getsignal(signal.SIGTERM)
    try:
        process = worker.WorkerProcess(store, "w", "cpu", ["cpu"], WorkerLimits(), None)
        signal.signal(signal.SIGTERM, process.stop)  # as a worker's own process does
        process.run()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert store.job(second.id).status == "queued"
    assert store.job(first.id).status == ("cancelled" if then == "cancel" else "queued")
