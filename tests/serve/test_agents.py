"""Agents as jobs: what may be asked, a worker that is killed on the way, and what is left."""

import os
import signal
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from difflogic.config.agent_presets import PRESETS
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.devices.device import Device
from difflogic.devices.open import Placement, open_engine
from difflogic.serve.api import agents
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.api.words import words_of
from difflogic.serve.store.jobs import JobSpec
from difflogic.serve.worker.follow_ups import Result, follow
from difflogic.serve.worker.lease import Lease, WorkerLimits
from difflogic.serve.worker.observer import ServiceObserver
from difflogic.train import restarts
from difflogic.train.trainer import Trainer
from tests.policies.test_training import assert_same_run
from tests.serve.acting import acting
from tests.serve.live import Live, error, shared
from tests.serve.service import ended, reached

live = shared(ServeSettings(caps=Caps(population=8, hours=1.0, memory=200_000_000)))


def small(threshold: float = 5.0) -> PolicyConfig:
    """A second of training, evaluated and saved four times."""
    return PRESETS["cartpole"].with_(
        steps=2048,
        environment={"reset": {"low": -0.05, "high": 0.05}},
        logic={"widths": [8, 8], "thresholds": [], "final_temperature": 0.05},
        ppo={"n_epochs": 2},
        evaluation={"interval": 512, "episodes": 4, "final_episodes": 6, "threshold": threshold},
    )


@pytest.mark.exhaustive
def test_a_killed_worker_changes_nothing(live: Live, client: httpx.Client, tmp_path: Path) -> None:
    config = small(threshold=501.0)
    request = {"config": config.to_dict(), "name": "hold 1280", "population": 2, "engine": "cpu"}
    job = client.post("/jobs", json=request).json()["id"]
    with acting(live.store.folder):
        reached(live.store, job, 1280)
        os.kill(next(each.pid for each in live.store.workers() if each.job == job), signal.SIGKILL)
        done = ended(live.store, job)
    assert (done.status, done.lost_tries, done.progress, done.goal) == ("done", 1, 2048, 2048), done.reason
    hand = Trainer(config, Device("cpu")).run(out=tmp_path / "hand", population=2)
    assert_same_run(live.store.job_folder(job).run, tmp_path / "hand")
    assert (done.score, done.solved) == (hand.score, len(hand.solved_members))
    assert words_of(done).outcome == "unsolved"
    rows = client.get(f"/jobs/{job}/metrics", params={"after": 1792}).json()["rows"]
    assert [row["steps"] for row in rows] == [2048, 2048]
    judged = [each["epoch"] for each in client.get(f"/jobs/{job}/gates").json()["history"]]
    assert judged == [512, 1024, 1536, 2048]
    assert len(client.get("/compare", params={"ids": job}).json()["jobs"][job]) == 16
    assert files(client, job) >= {"controller.json", "returns.png", "summary.txt", "live.html", "circuit.svg"}


@pytest.mark.parametrize(("wanted", "ends"), [("cancel", False), (None, True), (None, False)])
def test_request_to_stop_is_received_during_an_evaluation(live: Live, monkeypatch, wanted, ends) -> None:
    job, _ = live.store.submit("ann", JobSpec("train", "heard", small().to_dict(), "cpu"))
    saved(live, job.id, 0)  # no worker takes it
    lease = Lease(live.store, job, 1, WorkerLimits())
    lease.wanted = wanted
    monkeypatch.setattr(lease, "alive", lambda **_: None)
    monkeypatch.setattr("difflogic.serve.worker.observer.SIGN_S", 0.0)
    observer = ServiceObserver(lease, open_engine("reference"), lambda: ends)
    observer.working()
    assert observer.stop.is_urgent == (wanted is not None or ends)


def files(client: httpx.Client, job: str) -> set[str]:
    return {each["name"] for each in client.get(f"/jobs/{job}/files").json()["files"]}


@pytest.mark.exhaustive
def test_agents_get_post_processing_jobs(live: Live, client: httpx.Client) -> None:
    config = small().with_(steps=256, logic={"widths": [2], "bits": 1})
    job = client.post("/jobs", json={"config": config.to_dict(), "engine": "gpu:9"}).json()["id"]
    saved(live, job, 256)
    error(client.post(f"/jobs/{job}/simplify"), 409, "no_circuit")
    Trainer(config, Device("cpu")).run(out=live.store.job_folder(job).run)
    assert "for automata" in client.post(f"/jobs/{job}/simplify", json={"from_start": True}).text

    def made(action: str, source: str = job, **options: object) -> tuple[str, Result]:
        found = live.store.job(client.post(f"/jobs/{source}/{action}", json=options).json()["id"])
        return found.id, follow(live.store, found)

    smaller, found = made("simplify")
    saved(live, smaller, 0)
    exported, forms = made("export", smaller, formats=["c", "golly"])
    _, judged = made("evaluate")
    proof, proved = made("prove", smaller)
    assert (proved["proved"], files(client, proof)) == (True, {"verdicts.json"})
    assert "Equal: the two have the same action for every observation. difflogic: " in proved["text"]
    assert "simplify the job first" in error(client.post(f"/jobs/{job}/prove"), 409, "no_circuit")
    assert found["equal"]
    assert found["gates"]["after"] <= found["gates"]["before"]
    assert files(client, smaller) == {"controller.json", "simplify.json", "circuit.svg", "live.html"}
    assert files(client, exported) == set(forms["formats"]["c"])
    assert list(forms["left_out"]) == ["golly"]
    assert set(judged["measures"]) > {"seed-23", "random"}


def saved(live: Live, job: str, epoch: int) -> None:
    """Mark a job as done and saved at `epoch`, without a worker or a post-processing job."""
    with live.store.database.writing() as connection:
        connection.execute("UPDATE jobs SET saved_progress = ?, status = 'done' WHERE id = ?", (epoch, job))


@pytest.mark.parametrize(("asked", "code", "words"), [
    ({"set": {"environment.id": "MountainCar-v0"}}, "environment", "does not allow the environment MountainCar-v0"),
    ({"set": {"environment.id": "os:CartPole-v1"}}, "environment", "ask its operator"),
    ({"set": {"ppo.n_step": 3}}, "invalid_config", "did you mean n_steps?"),
    ({"set": {"algorithm": "sac"}}, "invalid_config", "SAC requires continuous actions"),
    ({"set": {"logic.widths": [9]}}, "invalid_config", "expected a multiple of 2"),
    ({"recipe": "robust"}, "invalid_config", "`recipe` is for automata, but this trains agents: omit it."),
    ({"until_solved": True, "population": 2}, "invalid_config", "omit population"),
    ({"until_solved": True, "within": "200 epochs"}, "invalid_config", "`steps` limits each attempt"),
    ({"within": "2h"}, "too_much_time", "at most 60m"),
    ({"stop_when_solved": 2}, "invalid_config", "must be 0 to 1, the population, got 2"),
    ({"population": 9}, "too_much_population", "Expected at most 8 models"),
    ({"set": {"logic.widths": [2**20] * 2}}, "too_much_memory", "this server allows 200 MB"),
    ({"set": {"steps": 10**9}}, "too_much_time", "this server allows 1"),
    ({"set": {"ppo.n_steps": 10**5, "ppo.n_epochs": 50}}, "too_much_time", "saved only between iterations"),
    ({"set": {"logic.random_steps": 10**6}}, "too_much_time", "saved only between iterations"),
    ({"set": {"evaluation.interval": 1, "evaluation.episodes": 10**4}}, "too_much_time", "this server allows 1"),
    ({"set": {"environment.n_envs": 4096, "ppo.n_steps": 1}, "population": 8}, "too_much_memory", "allows 200 MB"),
])  # fmt: skip
def test_agents_that_cannot_be_trained_are_refused(client: httpx.Client, asked, code: str, words: str) -> None:
    for path in ("/jobs", "/jobs/preview"):
        assert words in error(client.post(path, json={"preset": "cartpole", **asked}), 422, code)


def test_a_server_without_the_extra_says_so(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "find_spec", lambda name: None)
    message = error(client.post("/jobs", json={"preset": "cartpole"}), 422, "missing_extra")
    assert message == "This server cannot train agents: ask its operator to install the extra `rl`."


def test_no_module_that_a_job_names_is_imported(live: Live) -> None:
    config = small().with_(environment={"id": "this:CartPole-v1"}).to_dict()
    job, _ = live.store.submit("ann", JobSpec("train", "named", config, "cpu"))
    with acting(live.store.folder):
        failed = ended(live.store, job.id)
    assert (failed.status, failed.lost_tries) == ("failed", 0)
    assert "must not be in a module" in str(failed.reason)


def test_actions_for_automata_are_refused_for_agents(live: Live, client: httpx.Client) -> None:
    job = client.post("/jobs", json={"preset": "cartpole", "engine": "gpu:9"}).json()["id"]
    saved(live, job, 256)
    assert "no unconverged gates" in client.post(f"/jobs/{job}/harden").json()["error"]["message"]
    for preset, words in (("acrobot", "expected environment {'id': 'Acrobot-v1'}"), ("lizard", "expected environment")):
        assert words in error(client.post("/jobs", json={"preset": preset, "init_from": job}), 409, "other_shape")


@pytest.mark.exhaustive
def test_until_one_is_solved(live: Live, client: httpx.Client, tmp_path: Path) -> None:
    """Seeds after each other, also where the worker of the second is killed: as on the command line."""
    config = small(threshold=9.6).with_(steps=1024)
    wanted = TrainRequest(config=config, until_solved=True)
    hand = restarts.train(wanted, Placement(open_engine("cpu")), tmp_path / "hand")
    assert len(hand.record.attempts) == (last := 3)
    request = {"config": config.to_dict(), "name": "hold 2.512", "engine": "cpu", "until_solved": True, "within": "30m"}
    job = client.post("/jobs", json=request).json()["id"]
    with acting(live.store.folder):
        reached(live.store, job, 512, attempt=2)
        os.kill(next(each.pid for each in live.store.workers() if each.job == job), signal.SIGKILL)
        done = ended(live.store, job)
    assert (done.status, done.lost_tries, done.reason) == ("done", 1, None)
    assert (done.attempt, words_of(done).outcome) == (last, "solved")
    assert done.result["attempts"] == [asdict(each) for each in hand.record.attempts]
    assert done.score == hand.best.score
    assert_same_run(live.store.job_folder(done).run, tmp_path / "hand" / hand.record.attempts[-1].folder)
    assert files(client, job) >= {"controller.json", "returns.png"}
