"""A store to try things on, with a clock that goes when it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from difflogic.serve.jobs import Draft
from difflogic.serve.store import Store
from tests.train.tiny import tiny_config


class Clock:
    """Seconds since 1970, by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    opened = Store.open(tmp_path / "store")
    opened.clock = clock
    return opened


@pytest.fixture
def draft() -> Draft:
    return Draft("train", "tiny", tiny_config().to_dict())
