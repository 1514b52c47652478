"""Sweeps as jobs: what may be asked, a worker that is killed on the way, and what is made of the best trial."""

import json
import os
import re
import signal
from base64 import b64decode
from pathlib import Path
from typing import Any

import httpx
import pytest

from difflogic.config.agent_presets import PRESETS
from difflogic.runs import attempts
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.client import SERVER, TOKEN
from difflogic.serve.store.jobs import ENDED
from difflogic.serve.sweep import sweep
from difflogic.serve.worker.follow_ups import follow
from difflogic.serve.worker.supervisor import Supervisor
from difflogic.serve.worker.sweeps import _course
from difflogic.sweeps import Spec, Sweep, trial_rows
from tests.serve.live import ANN, Live, error, serving, shared
from tests.serve.service import ended, reached, wait
from tests.serve.test_agents import small
from tests.train import processes
from tests.train.tiny import tiny_config

CONFIG = tiny_config(epochs=1000, eval_interval=250)
live = shared(ServeSettings(caps=Caps(population=8, hours=1.0, memory=200_000_000, epochs=10_000)))
OVER = {"optimizer.lr": [0.02, 0.1], "seed": "0..1"}

pytestmark = pytest.mark.usefixtures("compiled")


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.exhaustive
def test_a_killed_worker_changes_nothing(live: Live, client: httpx.Client, tmp_path: Path) -> None:
    """Neither does a pause: the table is that of a sweep by hand, and the job has the files of its best trial."""
    asked = {"over": OVER, "metric": "hard_loss"}
    job = client.post("/jobs", json={"config": CONFIG.to_dict(), "sweep": asked, "engine": "cpu"}).json()
    assert (job["kind"], job["name"], job["goal"]) == ("sweep", "sweep of tiny", 4)
    with Supervisor(live.store.folder, ["cpu"]):
        # Not the job's progress, which is told twice a second: a fast machine may end the sweep meanwhile.
        known = live.store.job_folder(job["id"]).whole / "trials.jsonl"
        wait(lambda: known.exists() and known.read_text(), "the first trial to be over")
        for each in live.store.workers():
            if each.job is not None:  # the sweep itself, and a trial of it
                os.kill(each.pid, signal.SIGKILL)
        wait(lambda: (now := live.store.job(job["id"])).lost_tries == 1 or now.status in ENDED, "the lost worker")
        assert live.store.job(job["id"]).lost_tries == 1
        client.post(f"/jobs/{job['id']}/pause")
        wait(lambda: live.store.job(job["id"]).status in ("paused", *ENDED), "the pause")
        client.post(f"/jobs/{job['id']}/resume")
        done = ended(live.store, job["id"])
    assert (done.status, done.progress, done.saved_progress) == ("done", 4, 4), done.reason
    hand = sweep(Spec.of(config=CONFIG, over=OVER, metric="hard_loss"), out=tmp_path / "hand", devices=["cpu"])
    made = json.loads(client.get(f"/jobs/{job['id']}/files/trials.json").text)
    assert without_seconds(made["trials"]) == without_seconds(trial_rows(hand))
    check_result(live, client, job["id"], hand)


def check_result(live: Live, client: httpx.Client, job: str, hand: Sweep) -> None:
    done, best = live.store.job(job), hand.best
    assert best is not None
    found = {"trial": best.number, "value": best.value, "values": dict(best.values)}
    assert done.result is not None
    assert {name: done.result[name] for name in ("metric", "failed", "best", "ended")} == {
        "metric": "hard_loss", "failed": 0, "best": found, "ended": 4
    }  # fmt: skip
    rows = json.loads(client.get(f"/jobs/{job}/files/sweep.json").text)["trials"]
    assert [len(each["curve"]) for each in rows] == [5] * 4
    side = CONFIG.task.height
    assert {(each["image"]["height"], each["image"]["channels"]) for each in rows} == {(side, 1)}
    assert all(len(b64decode(each["image"]["bits"])) >= side * CONFIG.task.width / 8 for each in rows)
    names = {each["name"] for each in client.get(f"/jobs/{job}/files").json()["files"]}
    assert names >= {"sweep.toml", "trials.csv", "index.html", "sweep.html", "config.toml", "circuit.json"}
    page = client.get(f"/jobs/{job}/files/sweep.html")
    assert "sandbox allow-scripts" in page.headers["content-security-policy"]
    assert page.text.count("<polyline") == 4
    assert "<a " not in page.text.partition("<table")[2]
    circuit = live.store.job_folder(done).whole / best.folder / "circuit.json"
    assert client.get(f"/jobs/{job}/files/circuit.json").content == circuit.read_bytes()
    smaller = live.store.job(client.post(f"/jobs/{job}/simplify").json()["id"])
    assert follow(live.store, smaller)["equal"]
    again = client.post(f"/jobs/{job}/clone").json()
    assert live.store.job(again["id"]).spec() == done.spec()
    error(client.post(f"/jobs/{job}/harden"), 409, "no_circuit")


@pytest.mark.exhaustive
def test_agents_are_swept_from_the_terminal(live: Live, tmp_path, said, monkeypatch) -> None:
    """Optuna's sampler runs to its end; another sweep is cancelled, keeps its trials, and goes on when asked."""
    pytest.importorskip("optuna")
    monkeypatch.setenv(SERVER, live.address)
    monkeypatch.setenv(TOKEN, ANN)
    (tmp_path / "small.toml").write_text(small().with_(steps=512, evaluation={"final_episodes": 2}).to_toml())
    words = ["submit", "--config", str(tmp_path / "small.toml"), "--engine", "cpu", "--over"]
    rates = ["logic.learning_rate=0.01:0.1:log", "--method", "optuna", "--trials", "3", "--metric", "return"]
    with Supervisor(live.store.folder, ["cpu"]):
        told = said(*words, *rates, "--watch").out
        long = said(*words, "seed=0..999", "--metric", "return").out.strip()
        reached(live.store, long, 2)
        with processes.start("difflogic", "watch", long) as watching:
            assert watching.stdout is not None
            begun = [watching.stdout.readline() for _ in range(2)]
            said("cancel", long)
            last, _ = watching.communicate()
        cancelled = ended(live.store, long)
    ended_so_far = r"\d+ of 1,000 trials have ended\. The best is trial \d+, mean return .*, with seed \d+\.$"
    assert re.match(ended_so_far, begun[1])
    assert (watching.returncode, last.splitlines()[-1]) == (1, f"The job {long} is cancelled.")
    (job,) = [each for each in live.store.jobs() if each.name == "sweep of cartpole" and each.goal == 3]
    trials = json.loads((live.store.job_folder(job).whole / "trials.json").read_text())["trials"]
    best = max(trials, key=lambda each: each["return"])
    assert f"3 of 3 trials have ended. The best is trial {best['trial']}, mean return " in told
    assert f"\n\nSummary of the best trial, {best['trial']}:\n" in told
    assert (job.status, job.result["best"]["value"], len(trials)) == ("done", best["return"], 3)
    assert len({each["logic.learning_rate"] for each in trials}) == 3
    assert cancelled.status == "cancelled"
    known = (live.store.job_folder(long).whole / "trials.jsonl").read_text().splitlines()
    assert 2 <= len(known) < 1000
    assert live.store.retry(long).progress >= 2


def test_the_trials_of_a_sweep_count_for_the_quota(tmp_path: Path) -> None:
    with serving(tmp_path, ServeSettings(caps=Caps(owner_quota=1000))) as live, live.client() as client:
        request = {"config": CONFIG.to_dict(), "sweep": {"over": OVER}}
        job = client.post("/jobs", json=request).json()["id"]
        trial = live.store.job_folder(job).whole / "trials" / "00000"
        trial.mkdir(parents=True)
        (trial / "metrics.csv").write_bytes(bytes(1000))
        live.context.usage.bytes._until = 0.0  # it was counted a moment ago
        error(client.post("/jobs", json=request), 507, "quota")


@pytest.mark.parametrize(("asked", "sweep", "code", "words"), [
    ({}, {"over": {"optimizer.rate": [1]}}, "invalid_config", "Unknown field 'optimizer.rate'"),
    ({}, {"over": {"optimizer.lr": "0.1:0.2"}}, "invalid_config", "requires the number of trials: give `trials`."),
    ({}, {"over": {"optimizer.lr": "0.2:0.1"}, "trials": 2}, "invalid_config", "LOW below HIGH for optimizer.lr"),
    ({}, {"over": OVER, "metric": "return"}, "invalid_config", "Expected a metric of automata, one of"),
    ({}, {"over": {"seed": "0..10000"}}, "invalid_config", "at most 10000 trials"),
    ({}, {"over": {}}, "invalid_request", "over"),
    ({}, {"over": OVER, "on": "ray"}, "invalid_request", "on"),
    ({"stop_when_solved": 1}, {"over": OVER}, "invalid_config", "not support `stop_when_solved` and `init_from`"),
    ({"population": 9}, {"over": OVER}, "too_much_population", "Expected at most 8 models"),
    ({}, {"over": {"train.epochs": [200, 20_000]}}, "too_much_epochs", "at most 10000"),
    ({}, {"over": {"train.batch": [3, 60_000]}}, "too_much_memory", "this server allows 200 MB"),
    ({}, {"over": {"seed": "0..9999", "train.batch": [3, 4000]}, "trials": 9000}, "too_much_time", "allows 1"),
    ({"until_solved": True}, {"over": OVER}, "invalid_config", "requires `within`, the maximum time"),
    ({"until_solved": True, "within": "30m"}, {"over": OVER}, "too_much_time", "allows 1"),
    ({"preset": "cartpole"}, {"over": {"environment.id": ["os:A-v1"]}}, "invalid_config", "selects code"),
    ({"preset": "cartpole"}, {"over": {"ppo.n_steps": [32, 10**5]}}, "too_much_time", "only between iterations"),
    ({"preset": "cartpole", "set": {"environment.id": "MountainCar-v0"}}, {"over": OVER}, "invalid_config", "lr"),
])  # fmt: skip
def test_sweep_that_cannot_be_run_is_refused(client: httpx.Client, asked, sweep, code: str, words: str) -> None:
    base = {} if "preset" in asked else {"config": CONFIG.to_dict()}
    for path in ("/jobs", "/jobs/preview"):
        assert words in error(client.post(path, json={**base, **asked, "sweep": sweep}), 422, code)


def test_preview_has_the_cost_of_a_sweep(client: httpx.Client) -> None:
    for config, path, values in ((CONFIG, "train.epochs", [100, 400]), (PRESETS["cartpole"], "steps", [1000, 50_000])):
        request = {"config": config.to_dict()}
        one = client.post("/jobs/preview", json=request | {"set": {path: values[1]}}).json()
        swept = client.post("/jobs/preview", json=request | {"sweep": {"over": {path: values, "seed": "0..9"}}}).json()
        assert swept["trials"] == 20
        assert swept["cost"]["evaluations"] == 20 * one["cost"]["evaluations"]
        assert swept["cost"]["memory"] == one["cost"]["memory"]


def test_trial_with_a_damaged_folder_has_an_empty_course(tmp_path: Path) -> None:
    """The sweep draws a failed trial too."""
    (tmp_path / "00000").mkdir()
    (tmp_path / "00000" / attempts.NAME).write_text("{")
    assert _course(tmp_path / "00000") == {"curve": [], "image": None}
