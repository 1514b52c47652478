"""The tensors of a GPU, and memory that holds NaN."""

from pathlib import Path

import numpy as np
import pytest

from difflogic.devices.device import Device
from difflogic.gpu.arrays import GpuArrays
from difflogic.gpu.probes import AnyShader
from difflogic.gpu.shaders import Source
from difflogic.tensor.arrays import arrays_of
from tests.gpu import conftest as kernels


@pytest.fixture(scope="session")
def gpu() -> Device:
    """The first adapter. Without one every test here is an error, never skipped."""
    return Device("gpu:0")


@pytest.fixture(scope="session")
def arrays(gpu: Device) -> GpuArrays:
    found = arrays_of(gpu)
    assert isinstance(found, GpuArrays)
    return found


@pytest.fixture(scope="session")
def poison(arrays: GpuArrays) -> AnyShader:
    text = (Path(kernels.__file__).parent / "poison.wgsl").read_text()
    seen = np.zeros(64 * kernels.POISONED_GROUPS, dtype=np.uint32)
    return AnyShader(arrays.device, Source("poison", text, ()), [seen], uniforms=0)
