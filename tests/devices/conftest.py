"""The engines and the small model of tests/train, and a machine with made-up GPUs."""

import sys
from types import ModuleType

import pytest

from difflogic.devices import selftest
from difflogic.engine.api import EngineInfo
from difflogic.errors import NoAdapterError
from difflogic.gpu import adapter
from difflogic.reference.engine import ReferenceEngine
from tests.train.conftest import engine, epoch_by_epoch

__all__ = ["engine", "epoch_by_epoch"]


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> list[EngineInfo | Exception]:
    """Fake engines of the machine: the reference, trusted; an exception is raised on opening."""
    found: list[EngineInfo | Exception] = []

    class GpuEngine:
        @staticmethod
        def on(selector: str | None, require_hardware: bool = False) -> ReferenceEngine:
            for info in found:
                if isinstance(info, Exception):
                    raise info
                if (selector is None or selector in info.adapter) and not (require_hardware and info.software):
                    engine = ReferenceEngine()
                    engine.info = info
                    return engine
            raise NoAdapterError(f"No adapter for {selector}.")

    module = ModuleType("difflogic.gpu.engine")
    module.GpuEngine = GpuEngine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "difflogic.gpu.engine", module)
    monkeypatch.setattr(adapter, "select_adapter", lambda *_: None)
    monkeypatch.setattr(selftest, "require", lambda adapter: None)
    return found
