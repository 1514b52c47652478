"""Shared CPU engine of these tests, with three threads on any machine, even if there are fewer cores."""

import pytest

from difflogic.cpu.engine import CpuEngine


@pytest.fixture(scope="session")
def engine() -> CpuEngine:
    return CpuEngine(threads=3)
