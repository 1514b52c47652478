"""Races: the epochs are the run's own, the faster engine trains the rest, and measuring stays cheap."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from difflogic.devices import choose, race
from difflogic.devices.open import Placement, open_engine, place_again
from difflogic.devices.race import Candidate, Decision, TimedEpochs
from difflogic.engine.api import Engine, EngineInfo
from difflogic.engine.job import Job, TrainState
from difflogic.engine.population import SequentialModels
from difflogic.errors import DeviceError, LimitError
from difflogic.train.observer import Observer
from difflogic.train.run import Run
from difflogic.train.trainer import Trainer
from tests.sampled import sampled
from tests.train.scripted import Scripted
from tests.train.tiny import assert_same_run, tiny_config

LONG = {"epochs": 100, "eval_interval": 50}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Paced:
    """An engine that takes `pace` seconds per epoch by a clock, plus `warm_up` at the first."""

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


class Rivals(Observer):
    """`gpu` and `cpu`, which take so long per epoch by the clock of races, and what is decided between them."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        first: float,
        second: float,
        *engines: Engine,
        warm_up: float = 0.0,
        opening: float = 0.0,
    ) -> None:
        self.clock, self.opening = Clock(), opening
        one, other = engines or (open_engine("reference"),) * 2
        self.gpu = Paced(one, self.clock, first, name="gpu")
        self.cpu = Paced(other, self.clock, second, warm_up, name="cpu")
        self.decisions: list[Decision] = []
        self.heard: list[tuple[str, str]] = []
        monkeypatch.setattr(race, "clock", self.clock)
        monkeypatch.setattr(choose, "keep_measured", lambda *given: self.decisions.append(given[-1]))

    def open(self) -> Engine:
        self.clock.now += self.opening
        return self.cpu

    def placed(self, engine: EngineInfo, reason: str) -> None:
        self.heard.append((engine.engine, reason))

    def train(self, out: Path | None = None, population: int = 1, max_memory: int | None = None, **train: Any) -> Run:
        candidate = Candidate("the CPU engine", self.open, lambda: self.opening)
        trainer = Trainer(tiny_config(**train), Placement(self.gpu, "to be measured", max_memory, candidate))
        return trainer.run(out=out, population=population, observer=self)


@pytest.mark.parametrize(
    ("second", "winner"), sampled([(0.5, "cpu"), (1.5, "gpu"), (1.0, "gpu")], {(0.5, "cpu"), (1.5, "gpu")})
)
def test_the_faster_one_trains_the_rest(second: float, winner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, second)
    run = rivals.train(**LONG)
    gpu, cpu = rivals.gpu.epochs, rivals.cpu.epochs
    assert (gpu[:4], cpu[:3]) == ([1, 2, 3, 4], [5, 6, 7])
    assert sorted(gpu + cpu) == list(range(1, 101))
    assert (cpu if winner == "cpu" else gpu)[-92:] == list(range(9, 101))
    assert run.engine.engine == winner
    (decision,) = rivals.decisions
    assert decision.compared
    assert rivals.heard == [(winner, f"auto measured 1e+03 ms per epoch on gpu, {1e3 * second:.3g} ms on cpu")]


@pytest.mark.parametrize(("population", "second"), [(1, 0.5), (1, 1.5), (2, 1.5)])
def test_what_is_handed_over_is_exact(population: int, second: float, tmp_path, monkeypatch) -> None:
    """Between two engines of equal numbers it is the run that never changed hands, evaluations at the change too."""
    monkeypatch.setattr(race, "SHARE", 1.0)
    rivals = Rivals(monkeypatch, 1.0, second)
    one = rivals.train(tmp_path / "race", population, eval_interval=4)
    config = tiny_config(eval_interval=4)
    other = Trainer(config, open_engine("reference")).run(out=tmp_path / "alone", population=population)
    assert (rivals.gpu.opened, rivals.cpu.opened) == (2 if second > 1 else 1, 1)
    assert [replace(row, elapsed_s=0) for row in one.metrics] == [replace(row, elapsed_s=0) for row in other.metrics]
    for ours, theirs in zip(one.members, other.members, strict=True):
        assert ours.state.logits.tobytes() == theirs.state.logits.tobytes()
    if population == 1:
        assert_same_run(tmp_path / "race", tmp_path / "alone")


def test_two_real_engines_and_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, 0.1, open_engine("reference"), open_engine("cpu"))
    run = rivals.train(tmp_path / "run", **LONG)
    assert [row.epoch for row in run.metrics] == list(range(1, 101))
    kept = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert kept["engine"]["engine"] == "cpu"
    assert kept["engine"]["why"] == "auto measured 1e+03 ms per epoch on gpu, 100 ms on cpu"
    assert [(trial["engine"]["engine"], trial["epochs"], trial["ms_per_epoch"]) for trial in kept["measured"]] == [
        ("gpu", [1, 4], 1000.0),
        ("cpu", [5, 8], 100.0),
    ]
    assert place_again(run.engine).engine.info.engine == "cpu"


def test_an_interrupted_race_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Rivals(monkeypatch, 1.0, 0.5).train(tmp_path / "run", epochs=6)
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
def test_measuring_costs_less_than_a_twentieth(first, second, warm_up, opening, monkeypatch) -> None:
    engine: Any = Scripted(open_engine("reference"), {})
    rivals = Rivals(monkeypatch, first, second, engine, engine, warm_up=warm_up, opening=opening)
    rivals.train(epochs=500)
    assert rivals.clock.now <= 1.05 * min(500 * first, 500 * second + opening + warm_up)


def test_a_candidate_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, 2.0, warm_up=50.0)
    rivals.train(**LONG)
    assert (rivals.cpu.epochs, len(rivals.gpu.epochs)) == ([5], 99)
    (decision,) = rivals.decisions
    assert decision.reason == "auto stopped the trial of cpu, which took more than 5 % of the run on gpu"
    assert not decision.compared


@pytest.mark.parametrize(("epochs", "opening"), [(23, 0.0), (100, 5.0)])
def test_what_is_not_worth_it_is_not_tried(epochs: int, opening: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, 0.1, opening=opening)
    rivals.train(epochs=epochs)
    assert (rivals.gpu.opened, rivals.cpu.opened) == (1, 0)
    reason = f"auto did not try the CPU engine: the rest of the run takes only about {epochs - 4}.0 s"
    assert rivals.heard == [("gpu", reason)]


@pytest.mark.parametrize("error", [DeviceError("Too small."), LimitError("Too small.")])
def test_a_candidate_that_refuses(error: DeviceError, monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, 0.1)

    def refuse(*given: object) -> Engine:
        raise error

    monkeypatch.setattr(rivals.cpu if isinstance(error, LimitError) else rivals, "open", refuse)
    run = rivals.train(**LONG)
    assert rivals.gpu.epochs == list(range(1, 101))
    assert run.engine.engine == "gpu"
    assert rivals.heard == [("gpu", "auto could not try the CPU engine: Too small.")]


def test_the_limit_is_that_of_the_first_engines_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, 1.1)
    rivals.train(max_memory=7, **LONG)
    assert rivals.gpu.opened == 2
    assert (rivals.gpu.limits, rivals.cpu.limits) == ((7, 0), (None, 0))


def test_a_trial_takes_the_median_after_the_warm_up() -> None:
    info = open_engine("reference").info
    assert TimedEpochs(info, 1, [9.0]).pace is None
    assert TimedEpochs(info, 1, [9.0, 1.0, 8.0, 2.0]).pace == 2.0
    assert not TimedEpochs(info, 1, [9.0, 1.0, 8.0]).over
