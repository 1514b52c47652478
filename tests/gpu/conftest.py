"""One device for the whole room, since lavapipe compiles a pipeline in seconds, and poison before every test."""

import os
from pathlib import Path

import numpy as np
import pytest

from difflogic.gpu.adapter import Adapter, select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.probes import AnyShader
from difflogic.gpu.shaders import Source

POISONED_GROUPS = 256
"""Enough that every core gets some of them."""


@pytest.fixture(scope="session")
def adapter() -> Adapter:
    """The first adapter. Without one every test here is an error, never skipped."""
    found = select_adapter()
    expected = os.environ.get("DIFFLOGIC_EXPECT_ADAPTER", "")
    assert expected in found.name, f"DIFFLOGIC_EXPECT_ADAPTER is {expected!r}, but the adapter is {found.name}"
    return found


@pytest.fixture(scope="session")
def device(adapter: Adapter) -> GpuDevice:
    return GpuDevice(adapter)


@pytest.fixture(scope="session")
def engine(device: GpuDevice) -> GpuEngine:
    return GpuEngine(device)


@pytest.fixture(scope="session")
def poison(device: GpuDevice) -> AnyShader:
    text = (Path(__file__).parent / "poison.wgsl").read_text()
    return AnyShader(device, Source("poison", text, ()), [np.zeros(64 * POISONED_GROUPS, dtype=np.uint32)], uniforms=0)


@pytest.fixture(autouse=True)
def poisoned_workgroup_memory(poison: AnyShader) -> None:
    poison.run([0], (POISONED_GROUPS, 1))
