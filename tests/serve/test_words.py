"""Texts of the server about a job, which the page and the command line repeat."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from difflogic.config import agent_presets, presets
from difflogic.runs.attempts import Attempt
from difflogic.serve.api.words import duration, reply_of, words_of
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.queue import Turn

WRONG = {"hard_loss": 9, "compared": 256}
TRIED = asdict(Attempt(1, None, 3, 1500, "it is the first", "given up", 1200, 31, "no progress"))
UNTIL = {"request": {"until_solved": True, "within": "3m"}, "attempt": 1, "trained_s": 65.0}


@pytest.fixture
def job(store, spec) -> JobRecord:
    return replace(store.submit("ann", spec)[0], goal=1500)


@pytest.mark.parametrize(("changes", "words"), [
    ({}, {"state": "Queued", "progress": "0 of 1,500 epochs", "standing": "Queued"}),
    ({"status": "running", "phase": "compiling"}, {"state": "Compiling", "outcome": None}),
    ({"status": "running", "wanted": "pause", "phase": "compiling"}, {"state": "Pausing"}),
    ({"status": "running", "progress": 300, "progress_per_s": 12.5, "request": {"restarts": 5}, "attempt": 2,
      **WRONG},
     {"progress": "attempt 2 of at most 6, 300 of 1,500 epochs", "pace": "2 min left, 12.5 epochs a second",
      "standing": "Running: 9 wrong cells of 256, 2 min left"}),
    # Two were to be trained; the third repairs what the second left.
    ({"status": "running", "progress": 0, "request": {"restarts": 1}, "attempt": 3},
     {"progress": "attempt 3, 0 of 1,500 epochs"}),
    # The limit and not the epochs ends it: 1500 of these would take 25 minutes.
    ({"status": "running", "progress_per_s": 1.0, **UNTIL},
     {"pace": "2 min left at most, 1 epochs a second, until solved, 65 s of at most 3 min"}),
    # An attempt that is nearly over is followed by others, for all the time and the epochs that are left.
    ({"status": "running", "progress": 1490, "progress_per_s": 50.0, **UNTIL},
     {"standing": "Running: 2 min left at most"}),
    ({"status": "running", "progress": 300, "progress_per_s": 50.0, "attempt": 2,
      "result": {"attempts": [TRIED]}, "request": {"until_solved": True, "within": "9000 epochs"}},
     {"standing": "Running: 2 min left at most"}),
    ({"status": "done", "progress": 1500, **UNTIL, **WRONG, "result": {"attempts": [TRIED, TRIED]}},
     {"outcome": "unsolved", "state": "Not solved", "pace": "65 s of training",
      "standing": "Not solved within 3 min: the best circuit has 9 wrong cells of 256",
      "progress": "attempt 1, the best of 2, 1,500 of 1,500 epochs",
      "remark": "Not solved within 3 min: the best circuit has 9 wrong cells of 256.",
      "results": ["Attempt 1: given up at epoch 1200 with 31 wrong cells, seed 3: no progress"] * 2}),
    ({"status": "done", "progress": 1500, "hard_loss": 0},
     {"remark": "Not solved: the best circuit is correct for the initial states of the evaluation, but not for all "
                "new ones."}),
    ({"status": "done", "solved": 1, "hard_loss": 0, "active_gates": 9, "trained_s": 45.0},
     {"outcome": "solved", "remark": "", "standing": "Solved: 9 gates, after 45 s of training"}),
    ({"status": "paused", "progress": 20}, {"standing": "Paused: 20 of 1,500 epochs"}),
    ({"status": "done", "solved": 3, "request": {"population": 4}, "hard_loss": 0},
     {"remark": "Solved: 3 of 4 models."}),
    ({"status": "failed", "reason": "It ended."}, {"state": "Failed", "outcome": None, "remark": "It ended."}),
    ({"kind": "simplify", "status": "done", "result": {"gates": {"before": 1234, "after": 56}, "equal": True}},
     {"progress": "", "standing": "1,234 gates became 56, proved equal",
      "results": ["1,234 gates became 56, proved equal."]}),
    ({"kind": "sweep", "status": "done", "result": {"metric": "hard_loss", "failed": 0, "solved": 1, "ended": 8,
      "best": {"trial": 4, "value": 0, "values": {"seed": 5}}, "nearest": {"wrong": 96.0, "values": {"seed": 2}}}},
     {"standing": "1 of 8 trials solved; nearest: seed 2, 96 wrong cells"}),
    ({"kind": "sweep", "status": "done", "result": {"metric": "tts", "failed": 2, "best": {
      "trial": 7, "value": 1.23456, "values": {"optimizer.lr": 0.1}}}},
     {"results": ["The best is trial 7, gate evaluations per solution (billions) 1.23, with optimizer.lr 0.1.",
                  "2 trials failed."]}),
    ({"kind": "export", "result": {"formats": {"c": ["a.h", "b.c"]}, "left_out": {"svg": "It is too large."}}},
     {"results": ["c: a.h, b.c", "svg was omitted: It is too large."]}),
])  # fmt: skip
def test_of_a_job(job: JobRecord, changes: dict[str, Any], words: dict[str, Any]) -> None:
    found = vars(words_of(replace(job, **changes)))
    assert {name: found[name] for name in words} == words


def test_of_agents(job: JobRecord) -> None:
    config = agent_presets.PRESETS["cartpole"].to_dict()
    done = replace(job, config=config, status="done", progress=5000, score=69.04)
    assert words_of(done).remark == "Not solved: the best agent's mean return is 69, below 475."
    del config["evaluation"]["threshold"]  # then no return counts as solved
    assert (words_of(done).outcome, words_of(done).standing) == (None, "Done: mean return 69")


@pytest.mark.parametrize(("name", "is_built"), [("lizard", True), ("heart-persistent", False), ("pendulum", False)])
def test_server_says_which_task_can_be_built(name: str, is_built: bool, job: JobRecord) -> None:
    config = (agent_presets.PRESETS.get(name) or presets.get(name)).to_dict()
    assert reply_of(replace(job, config=config))["can_build"] is is_built


@pytest.mark.parametrize(
    ("position", "words"), [(None, None), (1, "next in the queue"), (1200, "position 1,200 in the queue")]
)
def test_of_a_turn(job: JobRecord, position: int | None, words: str | None) -> None:
    assert words_of(job, Turn(job.id, "ann", position)).turn == words


def test_durations() -> None:
    told = [duration(seconds) for seconds in (0.2, 89.4, 90, 5320, 5400, 7500, 7200, 48 * 3600)]
    assert told == ["under 1 s", "89 s", "2 min", "89 min", "1 h 30 min", "2 h 5 min", "2 h", "2 days"]
