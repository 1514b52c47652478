"""A population that several devices share: each member is what it would be alone, and the run is one run."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from difflogic.cli import main as cli
from difflogic.devices import shared
from difflogic.devices.open import gpu_adapters, open_engine, share
from difflogic.devices.shared import SharedEngine, proportional
from difflogic.engine.api import Engine, EngineInfo
from difflogic.runs import manifest
from difflogic.train.observer import Observer
from difflogic.train.signals import Stop
from difflogic.train.trainer import Trainer
from tests.train.tiny import arrays_of, rows_of, tiny_config

POPULATION = 4


@pytest.fixture(scope="module")
def engines() -> list[Engine]:
    """Every adapter that is here, in this process the software ones, and two that compute on the processor."""
    return [open_engine(name) for name in (*(f"gpu:{each.index}" for each in gpu_adapters()), "cpu", "reference")]


class StopAt(Observer):
    def __init__(self, epoch: int) -> None:
        self.stop, self._epoch = Stop(), epoch

    def advanced(self, epoch: int) -> None:
        if epoch >= self._epoch:
            self.stop.ask("enough")


@pytest.mark.exhaustive
def test_members_are_what_they_would_be_alone(engines: list[Engine], tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    config = tiny_config(epochs=4)
    engine = SharedEngine(engines)
    Trainer(config, engine).run(out=whole, population=POPULATION)
    shares = json.loads((whole / "manifest.json").read_text())["engine"]["variant"]
    assert list(shares) == [each.selector for each in engines]
    assert sum(shares.values()) == POPULATION
    owners = [each for each, share in zip(engines, shares.values(), strict=True) for _ in range(share)]
    together, rows = arrays_of(whole), rows_of(whole)
    for place, owner in enumerate(owners):
        path = tmp_path / str(place)
        Trainer(config.with_(seed=config.seed + place), owner).run(out=path)
        assert arrays_of(path)[config.seed + place] == together[config.seed + place]
        assert repr(rows_of(path)[0]) == repr(rows[place])

    # Stopped between two evaluations, and gone on with: the shares are those of before, whatever is measured now.
    watch = StopAt(2)
    known = list(shares.values())
    Trainer(config, SharedEngine(engines, known)).run(out=cut, population=POPULATION, observer=watch)
    again = share(list(shares), manifest.last_engine(manifest.read(cut)))
    Trainer(config, again.engine).run(resume=cut)
    assert arrays_of(cut) == together


def test_shares_follow_speeds() -> None:
    assert proportional(64, [3.0, 1.0]) == [48, 16]
    assert proportional(5, [1.0, 1.0, 1.0]) == [2, 2, 1]
    assert proportional(2, [0.4, 0.4, 0.0]) == [1, 1, 0]
    # All would wait for one member of the slow device, as long as twenty of the fast one take.
    assert proportional(16, [20.0, 1.0]) == [16, 0]


class Slow:
    """An engine whose models take `ticks` of a clock for an epoch, each in a thread of its own."""

    def __init__(self, name: str, ticks: float) -> None:
        self.selector, self.info, self.ticks = name, EngineInfo(name), ticks
        self.opened: list[int] = []

    def open(self, jobs: Sequence[int], states: Sequence[int], max_memory: object, reserved: object) -> Slow:
        self.opened.append(len(jobs))
        self.members = len(jobs)
        return self

    def train(self, epochs: int) -> None:
        CLOCK.now = getattr(CLOCK, "now", 0.0) + self.ticks * epochs * self.members

    def fetch_metrics(self) -> list[list[object]]:
        return [[]] * self.members

    def close(self) -> None:
        pass


CLOCK = threading.local()


def test_a_faster_device_has_more_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "clock", lambda: getattr(CLOCK, "now", 0.0))
    fast, slow = Slow("fast", 1.0), Slow("slow", 3.0)
    model = SharedEngine([fast, slow]).open(range(16), range(16))
    assert model.info.variant == {"fast": 12, "slow": 4}
    assert (fast.opened, slow.opened) == ([8, 12], [8, 4])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--devices cpu,reference", "--devices requires a population: give --population of 2 or more"),
        ("--devices cpu,reference --population 2 --engine cpu", "--devices cannot be used with --engine"),
        ("--devices cpu,cpu --population 2", "Expected at least two devices, each named once, got cpu, cpu."),
        ("--devices cpu,tpu --population 2", "Unknown engine 'tpu'"),
    ],
)
def test_what_is_refused(words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert cli.main(["train", "checkerboard-small", *words.split(), "-o", str(out)]) == 2
    assert sentence in capsys.readouterr().err
    assert not out.exists()
