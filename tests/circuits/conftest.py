"""The circuits that seed 23 learns, and the programs of others, which must be there on a server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from difflogic.circuits.synthesis import tools
from difflogic.config import presets
from difflogic.model.circuit import Circuit
from tests.export_cases import needs
from tests.learned import learned


@pytest.fixture(scope="session")
def checkerboard() -> Circuit:
    return learned(presets.checkerboard())


@pytest.fixture(scope="session")
def life() -> Circuit:
    return learned(presets.game_of_life())


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], None]:
    """Skips where a judge is not installed, which on a server is a failure."""
    return needs


@pytest.fixture(params=[tools.ABC, tools.YOSYS])
def tool(request: pytest.FixtureRequest, require_tool: Callable[[str], None]) -> str:
    """Each judge's name."""
    require_tool(request.param)
    return str(request.param)
