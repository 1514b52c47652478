"""The same tests for every engine. One that is missing is an error, never skipped."""

import pytest

from difflogic.cpu.engine import CpuEngine
from difflogic.engine.api import Engine
from difflogic.gpu.engine import GpuEngine
from difflogic.reference.engine import ReferenceEngine
from tests.gpu.conftest import POISONED_GROUPS, adapter, device, poison

__all__ = ["adapter", "device", "poison"]


@pytest.fixture(scope="session", params=["cpu", "gpu"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return _opened(request)


@pytest.fixture(scope="session", params=["cpu", "gpu", "reference"])
def any_engine(request: pytest.FixtureRequest) -> Engine:
    return _opened(request)


def _opened(request: pytest.FixtureRequest) -> Engine:
    """Three threads on any machine: more than there are cores must do no harm."""
    if request.param == "gpu":
        return GpuEngine(request.getfixturevalue("device"))
    return CpuEngine(threads=3) if request.param == "cpu" else ReferenceEngine()


@pytest.fixture(autouse=True)
def poisoned_workgroup_memory(request: pytest.FixtureRequest) -> None:
    """Detect kernels that read workgroup memory before they write it."""
    used = [request.getfixturevalue(name) for name in ("engine", "any_engine") if name in request.fixturenames]
    if any(isinstance(each, GpuEngine) for each in used):
        request.getfixturevalue("poison").run([0], (POISONED_GROUPS, 1))
