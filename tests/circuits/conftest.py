"""The circuits that seed 23 learns."""

from __future__ import annotations

import pytest

from difflogic.config import presets
from difflogic.model.circuit import Circuit
from tests.learned import learned


@pytest.fixture(scope="session")
def checkerboard() -> Circuit:
    return learned(presets.checkerboard())


@pytest.fixture(scope="session")
def life() -> Circuit:
    return learned(presets.game_of_life())
