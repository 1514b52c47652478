"""Fixtures: circuits that seed 23 learns, and short searches for smaller ones."""

from typing import Any

import pytest

from difflogic.circuits.export import formats
from difflogic.circuits.synthesis import resubstitution
from difflogic.config import presets
from difflogic.model.circuit import Circuit
from tests.learned import learned
from tests.programs import needs


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


def proofs(circuit: Any, form: str, name: str = "case") -> list[str]:
    """Return what the proofs of an export say; skip the test without the format's programs."""
    needs(*formats.FORMATS[form].programs)
    return formats.verify(circuit, name, form, formats.export(circuit, name, form))
