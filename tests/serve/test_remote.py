"""Workers on other machines: what they take comes home whole, and whoever lost a job writes nothing to it any more."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from difflogic.cli import main as cli
from difflogic.errors import ServiceError
from difflogic.serve import remote
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.client import TOKEN
from difflogic.serve.remote import Home, Relay
from difflogic.serve.store.claims import ALIVE_S
from difflogic.serve.store.jobs import JobSpec
from difflogic.serve.store.leases import ELSEWHERE
from difflogic.serve.store.store import Store
from tests.serve.live import ANN, Live, serving
from tests.serve.service import PATIENCE_S, by_hand, ended, reached, short_config, spec_of, wait
from tests.train.tiny import assert_same_run

LAB = "the lab's own secret token".replace(" ", "-")
TOKENS = Tokens({"ann": ANN, "lab": LAB}, {"lab": ["worker"]})
BINARY = {"Content-Type": "application/octet-stream"}
ROOT = Path(__file__).parents[2]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serving(tmp_path / "home", tokens=TOKENS) as served:
        yield served


class Machine:
    """A machine elsewhere, whose workers are played by hand."""

    def __init__(self, live: Live, folder: Path) -> None:
        self.store = Store.open(folder)
        self.home = Home(live.address, LAB)
        self.relay = Relay(self.home, self.store, ["cpu"])

    def take(self) -> tuple[str, int]:
        """Relay a job here, and have a worker of this machine claim it."""
        self.relay.turn()
        claimed = self.store.claim("cpu-1", "cpu", ["auto", "cpu", "reference"], 60)
        assert claimed is not None
        return claimed[0].id, claimed[1]

    def write(self, job: str, name: str, content: bytes) -> None:
        path = self.store.job_folder(job).path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def holder(live: Live, job: str) -> str:
    """The worker that has a job, as the server lists it."""
    return next(each.name for each in live.store.workers() if each.job == job)


@pytest.fixture
def machine(live: Live, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(live, tmp_path / "elsewhere")
    yield made
    made.home.__exit__()


def test_a_job_goes_there_and_comes_back(live: Live, machine: Machine, spec: JobSpec) -> None:
    job = live.store.submit("ann", spec)[0].id
    taken, lease = machine.take()
    assert taken == job
    assert machine.store.job(job).config == spec.config
    there = live.store.job(job)
    assert there.status == "running"
    assert there.device is not None
    assert there.device.endswith("/cpu")
    machine.write(job, "run/metrics.jsonl", b'{"epoch": 1}\n')
    machine.write(job, "run/attempt-1/checkpoint.safetensors", b"the first")
    machine.write(job, "run/.lock", b"")
    machine.store.heartbeat(job, lease, 60, epoch=1, saved_epoch=1, soft_loss=0.5, phase="training")
    machine.relay.turn()
    there = live.store.job(job)
    assert (there.epoch, there.saved_epoch, there.soft_loss, there.phase) == (1, 1, 0.5, "training")
    folder = live.store.job_folder(job).path
    assert (folder / "run/attempt-1/checkpoint.safetensors").read_bytes() == b"the first"
    machine.write(job, "run/circuit.json", b"{}")
    machine.store.finish(job, lease, "done", hard_loss=0, solved=1, result={"attempts": []})
    machine.relay.turn()
    there = live.store.job(job)
    assert (there.status, there.hard_loss, there.result) == ("done", 0, {"attempts": []})
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    run = {"run/circuit.json", "run/metrics.jsonl", "run/attempt-1/checkpoint.safetensors"}
    assert files == {"job.json", *run}
    assert machine.store.jobs() == []


def test_only_what_is_new_is_sent(live: Live, machine: Machine, spec: JobSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SEND_S", 0.0)
    sent: list[tuple[str, bytes, int | None]] = []
    upload = Home.upload

    def noted(home: Home, job: str, name: str, lease: int, content: bytes, offset: int | None) -> None:
        sent.append((name, content, offset))
        upload(home, job, name, lease, content, offset)

    monkeypatch.setattr(Home, "upload", noted)
    live.store.submit("ann", spec)
    job, _ = machine.take()
    rows = machine.store.job_folder(job).path / "run/metrics.jsonl"
    machine.write(job, "run/metrics.jsonl", b"one\n")
    machine.write(job, "run/checkpoint.safetensors", b"1")
    machine.write(job, "run/best.safetensors", b"1")
    machine.relay.turn()
    # What came before a checkpoint is there before it.
    assert [name for name, _, _ in sent] == [
        "run/metrics.jsonl", "run/best.safetensors", "run/checkpoint.safetensors",
    ]  # fmt: skip
    sent.clear()
    with rows.open("ab") as file:
        file.write(b"two\n")
    machine.relay.turn()
    assert sent == [("run/metrics.jsonl", b"two\n", 4)]
    # A file that became shorter, or another one under the same name, is sent whole; one that is gone is deleted.
    sent.clear()
    rows.write_bytes(b"1\n")
    (machine.store.job_folder(job).path / "run/best.safetensors").unlink()
    machine.relay.turn()
    assert sent == [("run/metrics.jsonl", b"1\n", None)]
    there = live.store.job_folder(job).path / "run"
    assert sorted(path.name for path in there.iterdir()) == ["checkpoint.safetensors", "metrics.jsonl"]
    assert (there / "metrics.jsonl").read_bytes() == b"1\n"


def test_a_claim_whose_answer_is_lost_is_repeated(
    live: Live, machine: Machine, spec: JobSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is not held for nobody, and nobody gets a second one; where it cannot be fetched, it is claimed again."""
    first, second = (live.store.submit("ann", spec)[0].id for _ in range(2))
    live.store.job_folder(first).run.mkdir(parents=True)
    (live.store.job_folder(first).run / "metrics.jsonl").write_bytes(b"a row")
    call, download, lost = Home.call, Home.download, ["answer", "file"]

    def losing(home: Home, method: str, path: str, *rest: object, **options: object) -> object:
        answer = call(home, method, path, *rest, **options)
        if path.endswith("/claim") and "answer" in lost:
            lost.remove("answer")
            raise ServiceError("The connection broke off.")
        return answer

    def failing(*arguments: object) -> None:
        if "file" in lost:
            lost.remove("file")
            raise ServiceError("The connection broke off.")
        download(*arguments)

    monkeypatch.setattr(Home, "call", losing)
    monkeypatch.setattr(Home, "download", failing)
    for _ in range(3):
        machine.relay.turn()
    assert (lost, list(machine.relay._held)) == ([], [first])
    assert [live.store.job(each).status for each in (first, second)] == ["running", "queued"]
    assert live.store.job(first).lost_tries == 0
    taken, lease = machine.store.claim("cpu-1", "cpu", ["auto"], 60) or pytest.fail("no job came")
    machine.store.finish(taken.id, lease, "done")
    for _ in range(2):
        machine.relay.turn()
    assert list(machine.relay._held) == [second]  # another claim, another job


def test_what_arrived_twice_is_sent_whole(
    live: Live, machine: Machine, spec: JobSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that is lost is no job that is lost."""
    monkeypatch.setattr(remote, "SEND_S", 0.0)
    live.store.submit("ann", spec)
    job, _ = machine.take()
    machine.write(job, "run/metrics.jsonl", b"one\n")
    machine.relay.turn()
    with (machine.store.job_folder(job).path / "run/metrics.jsonl").open("ab") as file:
        file.write(b"two\n")
    there = live.store.job_folder(job).path / "run/metrics.jsonl"
    there.write_bytes(b"one\ntwo\n")  # it came, and the answer did not
    machine.relay.turn()
    assert there.read_bytes() == b"one\ntwo\n"
    assert machine.store.job(job).wanted is None
    assert live.store.job(job).status == "running"


def test_who_pauses_it_is_heard_and_another_goes_on(
    live: Live, machine: Machine, spec: JobSpec, tmp_path: Path
) -> None:
    job = live.store.submit("ann", spec)[0].id
    _, lease = machine.take()
    machine.write(job, "run/checkpoint.safetensors", b"of epoch 7")
    live.store.ask(job, "pause")
    machine.relay._held[job].beat_at = 0.0
    machine.relay.turn()
    assert machine.store.heartbeat(job, lease, 60, epoch=7, saved_epoch=7).wanted == "pause"
    machine.store.release(job, lease, epoch=7)
    machine.relay.turn()
    assert live.store.job(job).status == "paused"
    live.store.resume(job)
    other = Machine(live, tmp_path / "third")
    other.take()
    assert other.store.job(job).saved_epoch == 7
    assert (other.store.job_folder(job).path / "run/checkpoint.safetensors").read_bytes() == b"of epoch 7"
    other.relay.close()  # its worker has not stopped, as far as it says: the job is handed back all the same
    assert live.store.job(job).status == "queued"
    other.home.__exit__()


def test_it_begins_with_the_circuit_of_another_job(live: Live, machine: Machine, spec: JobSpec) -> None:
    source = live.store.submit("ann", spec)[0].id
    job, lease = live.store.claim("cpu-1", "cpu", ["auto"], 60) or pytest.fail("no job")
    run = live.store.job_folder(source).run
    run.mkdir(parents=True)
    (run / "best.safetensors").write_bytes(b"the circuit")
    live.store.finish(job.id, lease, "done")
    live.store.submit("ann", replace(spec, source=source))
    taken, _ = machine.take()
    begun = machine.store.job(machine.store.job(taken).source or "", "ann")
    assert (machine.store.job_folder(begun).run / "best.safetensors").read_bytes() == b"the circuit"


def test_who_lost_a_job_writes_nothing_to_it(live: Live, machine: Machine, spec: JobSpec) -> None:
    job = live.store.submit("ann", spec)[0].id
    machine.take()
    machine.write(job, "run/checkpoint.safetensors", b"mine")
    machine.relay.turn()
    worker = holder(live, job)
    live.store.lose_workers(worker)
    assert [each.id for each in live.store.expire_dead_workers()] == [job]
    number = live.store.job(job).version
    machine.write(job, "run/checkpoint.safetensors", b"too late")
    machine.relay._held[job].sent_at = 0.0
    machine.relay.turn()
    assert (live.store.job_folder(job).path / "run/checkpoint.safetensors").read_bytes() == b"mine"
    assert live.store.job(job).version == number
    assert machine.store.job(job).wanted == "cancel"
    machine.store.expire_worker("cpu-1", "it stopped")
    machine.relay.turn()
    # It forgets the job, is listed again, and then may take it like anybody else.
    machine.relay.turn()
    assert holder(live, job) == worker


def test_a_server_that_is_away_for_a_while_ends_nothing(
    live: Live, machine: Machine, spec: JobSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = live.store.submit("ann", spec)[0].id
    _, lease = machine.take()

    def away(*_: object, **__: object) -> None:
        raise ServiceError("The server cannot be reached.", 0)

    with monkeypatch.context() as context:
        context.setattr(Home, "call", away)
        machine.store.finish(job, lease, "done", hard_loss=3)
        machine.relay.turn()
    assert live.store.job(job).status == "running"
    machine.relay.turn()
    assert (live.store.job(job).status, live.store.job(job).hard_loss) == ("done", 3)


PATHS = (
    "job.json", "job.json.7.tmp", "run/.lock", ".ssh/keys", "run/../../other", "..%2f..%2fstore.sqlite3", "a/b/c/d/e/f",
    "run//x", "run/caf\N{LATIN SMALL LETTER E WITH ACUTE}",
)  # fmt: skip


def test_paths_that_are_no_business_of_a_worker(live: Live, machine: Machine, spec: JobSpec) -> None:
    job = live.store.submit("ann", spec)[0].id
    machine.take()
    number = machine.relay._held[job].lease
    before = {each: each.stat().st_size for each in live.store.folder.rglob("*.json")}
    with live.client(LAB) as http:
        for verb, path in itertools.product(("PUT", "GET", "DELETE"), PATHS):
            address, own = f"/remote/jobs/{job}/files/{path}", {"lease": number}
            answer = http.request(verb, address, params=own, content=b"x", headers=BINARY)
            assert answer.status_code in (404, 405), (verb, path)
    assert {each: each.stat().st_size for each in live.store.folder.rglob("*.json")} == before


def test_who_may_train(live: Live, machine: Machine, spec: JobSpec) -> None:
    job = live.store.submit("ann", spec)[0].id
    machine.take()
    number = machine.relay._held[job].lease
    asked = [
        ("POST", "/remote/workers/w/claim", {"lease_s": 5}),
        ("POST", f"/remote/jobs/{job}/heartbeat", {"lease": number, "worker": "w", "lease_s": 5}),
        ("POST", f"/remote/jobs/{job}/finish", {"lease": number, "status": "done"}),
        ("GET", f"/remote/jobs/{job}/files/log.txt?lease={number}", None),
        ("PUT", f"/remote/jobs/{job}/files/log.txt?lease={number}", {}),
    ]
    for token, status in ((ANN, 403), (None, 401)):
        with live.client(token) as http:
            assert {http.request(verb, path, json=body).status_code for verb, path, body in asked} == {status}
    with live.client(LAB) as http:
        for verb, path, body in asked[1:]:
            later = path.replace(f"lease={number}", f"lease={number + 1}")
            answer = http.request(
                verb, later, json=body and body | {"lease": number + 1}, headers=BINARY if verb == "PUT" else None
            )
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "lease_lost")
        wrong = {"lease": number, "worker": "w", "lease_s": 5, "progress": {"owner": "lab"}}
        assert http.post(f"/remote/jobs/{job}/heartbeat", json=wrong).status_code == 422
        assert http.post("/remote/workers/nobody/claim", json={"lease_s": 5}).status_code == 409
    assert live.store.job(job).status == "running"


def test_another_version_is_refused(
    live: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN, LAB)
    register = Home.call

    def older(home: Home, method: str, path: str, *arguments: object, **options: dict[str, object]) -> object:
        options["json"]["version"] = "0.0.9"
        return register(home, method, path, *arguments, **options)

    monkeypatch.setattr(Home, "call", older)
    assert cli.main(["worker", live.address, "--workers", "cpu"]) == 1
    assert "the worker 0.0.9: use the same version." in capsys.readouterr().err


def test_a_token_that_may_not_train_gets_one_sentence(
    live: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN, ANN)
    assert cli.main(["worker", live.address, "--workers", "cpu"]) == 1
    assert "Error: This token may not train jobs: its line in the server's file of tokens" in capsys.readouterr().err
    monkeypatch.delenv(TOKEN)
    assert cli.main(["worker", live.address, "--workers", "cpu"]) == 2
    assert "Error: Set DIFFLOGIC_TOKEN to your token" in capsys.readouterr().err


def test_who_is_silent_for_too_long_is_gone(live: Live) -> None:
    now = live.store.clock()
    live.store.clock = lambda: now
    live.store.register_worker("remote-1", "lab/cpu", "cpu", ELSEWHERE)
    now += ALIVE_S - 1
    live.store.expire_dead_workers()
    assert [each.name for each in live.store.workers()] == ["remote-1"]
    now += 2
    live.store.expire_dead_workers()
    assert live.store.workers() == []


def test_a_machine_that_is_killed_loses_nothing(live: Live, compiled: None, tmp_path: Path) -> None:
    """The second machine goes on from the last checkpoint that came home, to the very same end."""
    config = short_config()
    job = live.store.submit("ann", spec_of(config))[0].id
    command = [sys.executable, "-m", "difflogic", "worker", live.address, "--workers", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), TOKEN: LAB}
    with subprocess.Popen(command, env=environment, cwd=tmp_path) as first:
        reached(live.store, job, 200)
        first.kill()
    live.store.lose_workers(holder(live, job))
    live.store.expire_dead_workers()
    assert live.store.job(job).status == "queued"
    assert live.store.job(job).saved_epoch > 0
    with subprocess.Popen(command, env=environment, cwd=tmp_path) as second:
        wait(lambda: ended(live.store, job), f"job {job} to end")
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE_S) == 0
    done = live.store.job(job)
    assert (done.status, done.lost_tries) == ("done", 1)
    assert_same_run(by_hand(config, tmp_path / "hand" / "run"), live.store.job_folder(done).run)
    assert live.store.workers() == []
