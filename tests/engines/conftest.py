"""The same tests for every engine that stands beside the reference."""

from __future__ import annotations

import pytest

from difflogic.engine import Engine
from difflogic.train.placement import open_engine


@pytest.fixture(scope="session", params=["cpu", "gpu"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """One that is missing is an error, never skipped."""
    return open_engine(request.param)
