"""One engine for the room. Three threads on any machine: more than there are cores must do no harm."""

import pytest

from difflogic.cpu.engine import CpuEngine


@pytest.fixture(scope="session")
def engine() -> CpuEngine:
    return CpuEngine(threads=3)
