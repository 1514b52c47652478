"""The tasks in examples/tasks: their samples are what they say, and the adder is learned exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from difflogic.config import registered
from difflogic.config.own_task import FRESH
from difflogic.devices.open import open_engine
from difflogic.train.trainer import Trainer
from tests.own_tasks import install_examples


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_examples(monkeypatch, tmp_path / "site")


def test_the_adder_is_learned_and_adds_longer_numbers() -> None:
    own = registered.find("difflogic-tasks:adder")
    run = Trainer(own.config(), open_engine("cpu")).run(population=8, stop_when_solved=1)
    assert run.solved
    longer = registered.find("difflogic-tasks:adder", {"bits": 16}).drawn(100, FRESH)
    grids = np.zeros((100, 1, 16, 3), dtype=np.float32)
    grids[..., :2] = longer.x
    states = open_engine("reference").rollout(run.circuit, grids, 16, "hard")[1:, ..., :1].swapaxes(0, 1)
    right = (states == longer.y) | (longer.y < 0)
    # Its rule is that of every length, or it has learned the short sums by heart.
    assert right.all(axis=(1, 2, 3, 4)).mean() > 0.9


def test_the_adders_targets_are_sums() -> None:
    samples = registered.find("difflogic-tasks:adder", {"bits": 5}).drawn(1024)
    weights = 1 << np.arange(5)[::-1]
    numbers = (samples.x[:, 0] * weights[:, None]).sum(axis=1)
    assert len({tuple(pair) for pair in numbers.tolist()}) == 1024
    assert ((samples.y[:, -1, 0, :, 0] * weights).sum(axis=1) == numbers.sum(axis=1) % 32).all()
    # What counts goes on counting, and without a carry at once.
    counts = samples.y >= 0
    assert (counts[:, 1:] >= counts[:, :-1]).all()
    assert counts[(samples.x.sum(axis=-1) < 2).all(axis=(1, 2))].all()


def test_waves_spread_through_mazes_that_have_a_way() -> None:
    own = registered.find("difflogic-tasks:maze", {"size": 4, "steps_judged": 81})
    samples = own.drawn(6)
    wall = samples.x[..., 1] == 1
    wave = samples.y[..., 0] == 1
    assert wall[:, [0, -1]].all()
    assert not (wave & wall[:, None]).any()
    assert (wave[:, -1] == ~wall).all()  # every room is joined
    film = np.concatenate([samples.x[:, None], np.repeat(samples.x[:, None], 81, axis=1)], axis=1)
    film[:, 1:, ..., 0] = wave
    pictures = own.drawings(film, samples)
    # The way back from the exit is drawn in red, entrance and exit included.
    assert all((picture[[1, -2], [1, -2]] == (220, 60, 40)).all() for picture in pictures.values())


@pytest.mark.parametrize("name", ["density", "synchronisation"])
def test_rings_are_judged_by_what_was_asked(name: str) -> None:
    settings = {"size": 9, "time": 14} | ({"starts": "fair"} if name == "density" else {})
    own = registered.find(f"difflogic-tasks:{name}", settings)
    samples = own.drawn(64)
    assert list(own.judged(samples.y.astype(np.uint8), samples).values()) == [1.0]
    last = samples.y[:, -1, 0, :, 0]
    assert (last == last[:, :1]).all()
    shown = samples.y.astype(np.uint8)
    shown[:32, -1, 0, 0] ^= 1
    assert list(own.judged(shown, samples).values()) == [0.5]
    if name == "density":
        assert (last[:, 0] == (samples.x[:, 0, :, 0].sum(axis=1) > 4)).all()
        assert list(own.judged(1 - samples.y.astype(np.uint8), samples).values()) == [0.0]
    else:
        assert list(own.judged(1 - samples.y.astype(np.uint8), samples).values()) == [1.0]  # any beat will do


def test_traffic_tells_the_majority_to_every_cell() -> None:
    """What is taught leads to the answer: cells that keep what the last two alike neighbours were are right."""
    samples = registered.find("difflogic-tasks:density", {"size": 9, "time": 14, "starts": "fair"}).drawn(64)
    cars, answer = samples.x[:, 0, :, 1], samples.x[:, 0, :, 0]
    for _ in range(14):
        left, right = np.roll(cars, 1, 1), np.roll(cars, -1, 1)
        answer = np.where((cars == left) | (cars == right), cars, answer)
        cars = np.where(cars == 1, right, left)
    assert (answer == samples.y[:, -1, 0, :, 0]).all()
    assert (cars == samples.y[:, -1, 0, :, 1]).all()
