"""A model small enough to train in a test, and the engines to train it on."""

from __future__ import annotations

from pathlib import Path

import pytest

from difflogic.config import Config
from difflogic.engine import Engine
from difflogic.train.loop import Run, Trainer
from difflogic.train.placement import open_engine
from tests.train.tiny import tiny_config


@pytest.fixture(scope="session", params=["reference"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return open_engine(request.param)


@pytest.fixture
def config() -> Config:
    return tiny_config()


@pytest.fixture
def finished(config: Config, engine: Engine, tmp_path: Path) -> Run:
    """A complete run of 12 epochs in `tmp_path / "finished"`."""
    return Trainer(config, engine).run(out=tmp_path / "finished")
