"""Contests: the epochs are the run's own, the faster engine trains the rest, and measuring stays cheap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from difflogic.devices import race as contests
from difflogic.devices.open import open_engine, place_again
from difflogic.devices.race import Challenger, Contest, Decision
from difflogic.engine.api import Engine, EngineInfo
from difflogic.engine.job import Job, TrainState
from difflogic.engine.population import SequentialModels
from difflogic.errors import DeviceError, LimitError
from difflogic.train.observer import Observer
from difflogic.train.trainer import Run, Trainer
from tests.train.scripted import Scripted
from tests.train.tiny import assert_same_run, tiny_config


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Paced:
    """An engine that takes so many seconds per epoch by a clock, the warm-up in addition at the first."""

    def __init__(self, engine: Any, clock: Clock, pace: float, warm_up: float = 0.0, name: str = "") -> None:
        self.engine, self.clock, self.pace, self.warm_up = engine, clock, pace, warm_up
        self.info: EngineInfo = replace(engine.info, engine=name or engine.info.engine)
        self.epochs: list[int] = []
        self.opened = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def open(self, jobs: Sequence[Job], states: Sequence[TrainState], *limits: int | None) -> Any:
        self.opened += 1
        self.limits = limits
        epoch, model = states[0].epoch, SequentialModels([self.engine.open(jobs, states)])
        train = model.train
        delay = self.warm_up

        def paced(epochs: int) -> None:
            nonlocal epoch, delay
            train(epochs)
            self.clock.now += epochs * self.pace + delay
            self.epochs += range(epoch + 1, epoch + epochs + 1)
            epoch, delay = epoch + epochs, 0.0

        model.train = paced  # type: ignore[method-assign]
        model.info = self.info
        return model


class Listener(Observer):
    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def placed(self, engine: EngineInfo, reason: str) -> None:
        self.heard.append((engine.engine, reason))


def paced_pair(
    first: float, second: float, *engines: Engine, warm_up: float = 0.0, opening: float = 0.0
) -> tuple[Contest, Paced, Paced, list[Decision]]:
    """A contest between `gpu` and `cpu`, which take so long per epoch, and what it decides."""
    clock, decisions = Clock(), []
    one, other = engines or (open_engine("reference"),) * 2
    gpu = Paced(one, clock, first, name="gpu")
    cpu = Paced(other, clock, second, warm_up, name="cpu")
    challenger = Challenger("the CPU engine", lambda: cpu, lambda: opening)
    return Contest(gpu, challenger, decisions.append, clock), gpu, cpu, decisions


def run_of(contest: Contest, out: Path | None = None, observer: Observer | None = None, **train: Any) -> Run:
    return Trainer(tiny_config(**train), contest, "to be measured").run(out=out, observer=observer)


LONG = {"epochs": 100, "eval_interval": 50}


@pytest.mark.parametrize(("second", "winner"), [(0.5, "cpu"), (1.5, "gpu"), (1.0, "gpu")])
def test_the_faster_one_trains_the_rest(second: float, winner: str) -> None:
    contest, gpu, cpu, decisions = paced_pair(1.0, second)
    listener = Listener()
    run = run_of(contest, observer=listener, **LONG)
    assert gpu.epochs[:4] == [1, 2, 3, 4]
    assert cpu.epochs[:3] == [5, 6, 7]
    assert sorted(gpu.epochs + cpu.epochs) == list(range(1, 101))
    assert (cpu if winner == "cpu" else gpu).epochs[-92:] == list(range(9, 101))
    assert run.engine.engine == winner
    (decision,) = decisions
    assert decision.compared
    reason = f"auto measured 1e+03 ms per epoch on gpu, {1e3 * second:.3g} ms on cpu"
    assert listener.heard == [(winner, reason)]


@pytest.mark.parametrize(("population", "second"), [(1, 0.5), (1, 1.5), (2, 1.5)])
def test_what_is_handed_over_is_exact(
    population: int, second: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two engines of equal numbers it is the run that never changed hands, evaluations at the change too."""
    monkeypatch.setattr(contests, "SHARE", 1.0)
    contest, gpu, cpu, _ = paced_pair(1.0, second)
    config = tiny_config(eval_interval=4)
    one = Trainer(config, contest).run(out=tmp_path / "contest", population=population)
    other = Trainer(config, open_engine("reference")).run(out=tmp_path / "alone", population=population)
    assert (gpu.opened, cpu.opened) == (2 if second > 1 else 1, 1)
    assert [replace(row, elapsed_s=0) for row in one.metrics] == [replace(row, elapsed_s=0) for row in other.metrics]
    for ours, theirs in zip(one.members, other.members, strict=True):
        assert ours.state.logits.tobytes() == theirs.state.logits.tobytes()
    if population == 1:
        assert_same_run(tmp_path / "contest", tmp_path / "alone")


def test_two_real_engines_and_the_manifest(tmp_path: Path) -> None:
    contest, *_ = paced_pair(1.0, 0.1, open_engine("reference"), open_engine("cpu"))
    run = run_of(contest, tmp_path / "run", **LONG)
    assert [row.epoch for row in run.metrics] == list(range(1, 101))
    kept = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert kept["engine"]["engine"] == "cpu"
    assert kept["engine"]["why"] == "auto measured 1e+03 ms per epoch on gpu, 100 ms on cpu"
    assert [(heat["engine"]["engine"], heat["epochs"], heat["ms_per_epoch"]) for heat in kept["measured"]] == [
        ("gpu", [1, 4], 1000.0),
        ("cpu", [5, 8], 100.0),
    ]
    assert place_again(run.engine).engine.info.engine == "cpu"


def test_an_interrupted_contest_can_be_resumed(tmp_path: Path) -> None:
    contest, *_ = paced_pair(1.0, 0.5)
    run_of(contest, tmp_path / "run", epochs=6)
    config = tiny_config(epochs=12)
    resumed = Trainer(config, open_engine("reference")).run(resume=tmp_path / "run")
    whole = Trainer(config, open_engine("reference")).run()
    assert resumed.state.logits.tobytes() == whole.state.logits.tobytes()


@pytest.mark.parametrize(
    ("first", "second", "warm_up", "opening"),
    [
        *((1.0, second, 0.0, 0.0) for second in (0.3, 0.9, 1.1, 3.0, 6.0, 12.0, 24.0)),
        (7.0, 1.0, 0.0, 0.0),
        (1.0, 2.0, 15.0, 5.0),
        (3e-4, 0.025, 0.0, 1.0),
        (1e-3, 0.025, 0.0, 20.0),
    ],
)
def test_measuring_costs_less_than_a_twentieth(first: float, second: float, warm_up: float, opening: float) -> None:
    engine: Any = Scripted(open_engine("reference"), {})
    contest, gpu, *_ = paced_pair(first, second, engine, engine, warm_up=warm_up, opening=opening)

    def opened(challenger: Challenger = contest.challenger) -> Engine:
        gpu.clock.now += opening
        return challenger.open()

    contest.challenger = replace(contest.challenger, open=opened)
    run_of(contest, epochs=500)
    assert gpu.clock.now <= 1.05 * min(500 * first, 500 * second + opening + warm_up)


def test_a_challenger_that_takes_too_long_is_given_up() -> None:
    contest, gpu, cpu, decisions = paced_pair(1.0, 2.0, warm_up=50.0)
    run_of(contest, **LONG)
    assert cpu.epochs == [5]
    assert len(gpu.epochs) == 99
    (decision,) = decisions
    assert decision.reason == "auto gave cpu up: trying it took more than 5 % of the run on gpu"
    assert not decision.compared


@pytest.mark.parametrize(("epochs", "opening"), [(23, 0.0), (100, 5.0)])
def test_what_is_not_worth_it_is_not_tried(epochs: int, opening: float) -> None:
    contest, gpu, cpu, decisions = paced_pair(1.0, 0.1, opening=opening)
    run_of(contest, epochs=epochs)
    assert cpu.opened == 0
    assert gpu.opened == 1
    reason = f"auto did not try the CPU engine: the rest of the run takes only some {epochs - 4}.0 s"
    assert [decision.reason for decision in decisions] == [reason]


@pytest.mark.parametrize("refuses", ["to be placed", "to hold the run"])
def test_a_challenger_that_refuses(refuses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contest, gpu, cpu, decisions = paced_pair(1.0, 0.1)

    def refuse(*given: object) -> Engine:
        raise LimitError("Too small.") if refuses == "to hold the run" else DeviceError("Too small.")

    if refuses == "to be placed":
        contest.challenger = replace(contest.challenger, open=refuse)
    else:
        monkeypatch.setattr(cpu, "open", refuse)
    run = run_of(contest, **LONG)
    assert gpu.epochs == list(range(1, 101))
    assert run.engine.engine == "gpu"
    assert [decision.reason for decision in decisions] == ["auto could not try the CPU engine: Too small."]


def test_the_stateless_calls_are_the_chosen_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    contest, gpu, cpu, _ = paced_pair(1.0, 0.1)
    called = []
    for engine in (gpu, cpu):
        for name in ("rollout", "loss_and_gradients", "train_step"):
            monkeypatch.setattr(engine, name, lambda *_, call=(engine, name): called.append(call), raising=False)
    given: Any = None
    for engine in (gpu, cpu):
        called.clear()
        contest.choose(engine)
        contest.rollout(given, given, 1)
        contest.loss_and_gradients(given, given)
        contest.train_step(given, given, given)
        assert [name for _, name in called] == ["rollout", "loss_and_gradients", "train_step"]
        assert all(asked is engine for asked, _ in called)


def test_the_limit_is_that_of_the_first_engines_memory() -> None:
    contest, gpu, cpu, _ = paced_pair(1.0, 0.1)
    Trainer(tiny_config(**LONG), contest, max_memory=7).run()
    assert (gpu.limits, cpu.limits) == ((7,), (None,))


def test_a_heat_takes_the_median_after_the_warm_up() -> None:
    info = open_engine("reference").info
    assert contests.Heat(info, 1, [9.0]).pace is None
    assert contests.Heat(info, 1, [9.0, 1.0, 8.0, 2.0]).pace == 2.0
    assert not contests.Heat(info, 1, [9.0, 1.0, 8.0]).over
