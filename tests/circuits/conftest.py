"""Fixtures: circuits that seed 23 learns, and short searches for smaller ones."""

import pytest

from difflogic.circuits.synthesis import resubstitution
from difflogic.config import presets
from difflogic.model.circuit import Circuit
from tests.learned import learned


@pytest.fixture
def short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """End walks after their first moves in tests that do not depend on their results."""
    monkeypatch.setattr(resubstitution, "WORK", 0)


@pytest.fixture(scope="session")
def checkerboard() -> Circuit:
    return learned(presets.checkerboard())


@pytest.fixture(scope="session")
def life() -> Circuit:
    return learned(presets.game_of_life())
