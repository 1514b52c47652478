"""The circuits that seed 23 learns, and the programs of others, which must be there on a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.circuits import tools
from difflogic.config import Config
from tests.export_cases import needs

LEARNED = json.loads((Path(__file__).parents[1] / "data" / "hard_seed23.json").read_text())


def learned(config: Config) -> Circuit:
    """The circuit that training by `config` at seed 23 ends with, each gate decided."""
    circuit = Circuit.initial(config.model, config.seed)
    ids = np.array([int(digit, 16) for digit in LEARNED[config.name]])
    return circuit.with_logits(10 * np.eye(16, dtype=np.float32)[ids])


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
