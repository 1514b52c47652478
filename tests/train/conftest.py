"""A model small enough to train in a test, and the engines to train it on."""

import dataclasses
import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.engine.api import Engine
from difflogic.train.run import Run
from difflogic.train.trainer import Trainer
from tests.train.tiny import tiny_config


@pytest.fixture(scope="session", params=["reference", "cpu", "gpu"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return open_engine(request.param)


@pytest.fixture(scope="session")
def one() -> Engine:
    """One engine, for tests whose losses are scripted or whose training is refused."""
    return open_engine("reference")


@pytest.fixture(autouse=True)
def epoch_by_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines take one epoch at a time, so that a test can step in after each; `complete` takes several."""
    monkeypatch.setattr("difflogic.gpu.model.SUBMIT_SECONDS", 0.0)
    monkeypatch.setattr("difflogic.cpu.model.CALL_SECONDS", 0.0)


@pytest.fixture
def config() -> Config:
    return tiny_config()


@pytest.fixture(scope="session")
def whole(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Run]:
    """Run of 12 epochs of a number of models, never stopped; its folder is only read."""

    @functools.cache
    def train(population: int) -> Run:
        return Trainer(tiny_config(), engine).run(out=tmp_path_factory.mktemp("whole") / "run", population=population)

    return train


@pytest.fixture(scope="session")
def complete(whole: Callable[[int], Run]) -> Run:
    """One model; its folder is only read."""
    return whole(1)


@pytest.fixture
def finished(complete: Run, tmp_path: Path) -> Run:
    """A complete run of 12 epochs, its folder copied to `tmp_path / "finished"`."""
    path = tmp_path / "finished"
    shutil.copytree(complete.path, path)
    return dataclasses.replace(complete, path=path)
