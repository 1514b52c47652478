"""Choice of the engine, and its messages."""

import sys
from typing import Any

import pytest

from difflogic.devices.open import open_engine, place, place_again, place_hard
from difflogic.engine.api import EngineInfo
from difflogic.errors import DeviceError, LimitError, NoAdapterError, UsageError

HARDWARE = EngineInfo("gpu", "Quick 9000", "DiscreteGPU", "Vulkan", "1.0")
SOFTWARE = EngineInfo("gpu", "llvmpipe", "CPU", "Vulkan", "25.0", software=True)


def test_auto_takes_hardware(adapters: list[Any]) -> None:
    adapters.append(HARDWARE)
    placement = place("auto")
    assert placement.engine.info is HARDWARE
    assert placement.reason == "auto found the hardware GPU Quick 9000"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "no usable hardware GPU (run `difflogic doctor` for details)"),
        ([SOFTWARE], "no usable hardware GPU (run `difflogic doctor` for details)"),
        ([LimitError("Too small.")], "no usable hardware GPU: Too small."),
    ],
)
def test_auto_without_hardware_takes_the_cpu_engine(adapters: list[Any], found: list[Any], why: str) -> None:
    adapters.extend(found)
    placement = place("auto")
    assert (placement.engine.info.engine, placement.reason) == ("cpu", f"auto found {why}")
    with pytest.raises(LimitError if "small" in why else NoAdapterError):
        place("auto", require_hardware=True)


@pytest.mark.parametrize(("found", "taken"), [([], "reference"), ([SOFTWARE], "gpu")])
def test_auto_without_numba(adapters: list[Any], monkeypatch: pytest.MonkeyPatch, found: list[Any], taken: str) -> None:
    monkeypatch.setitem(sys.modules, "difflogic.cpu.engine", None)
    adapters.extend(found)
    placement = place("auto")
    assert placement.engine.info.engine == taken
    assert "The CPU engine requires the package numba, which could not be loaded" in placement.reason
    with pytest.raises(DeviceError, match="requires the package numba"):
        place("cpu")


def test_what_is_asked_for_is_never_replaced(adapters: list[Any]) -> None:
    for selector in ("gpu", "gpu:0", "gpu:Quick"):
        with pytest.raises(NoAdapterError):
            place(selector)
    adapters.extend([SOFTWARE, HARDWARE])
    assert place("gpu:Quick").engine.info is HARDWARE
    assert place("gpu").engine.info is SOFTWARE


@pytest.mark.parametrize("selector", ["cuda", "", "gpu:", "reference:0", "cpu:1", "auto:1", "GPU"])
def test_unknown_engines(selector: str) -> None:
    with pytest.raises(UsageError) as caught:
        place(selector)
    expected = "expected auto, cpu, reference, gpu, gpu:INDEX or gpu:NAME."
    assert str(caught.value) == f"Unknown engine {selector!r}: {expected}"


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_a_processor_is_no_hardware_gpu(name: str) -> None:
    with pytest.raises(UsageError, match=f"The {name} engine runs on the CPU: omit --require-hardware"):
        place(name, require_hardware=True)
    assert open_engine(name).info.engine == name


def test_without_wgpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "difflogic.gpu.engine", None)
    with pytest.raises(NoAdapterError, match="requires the package wgpu, which could not be loaded"):
        place("gpu")
    assert open_engine("auto").info.engine == "cpu"


def test_a_resumed_run_stays_where_it_was(adapters: list[Any]) -> None:
    adapters.extend([SOFTWARE, HARDWARE])
    assert place_again(HARDWARE).engine.info is HARDWARE
    for name in ("reference", "cpu"):
        assert place_again(open_engine(name).info).engine.info.engine == name
    assert place_again(None).reason.startswith("auto found the hardware GPU")
    gone = EngineInfo("gpu", "Sold 1000")
    placement = place_again(gone)
    assert placement.engine.info is SOFTWARE
    assert placement.reason == "the run was on Sold 1000, which is not here now"


def test_a_circuit_is_tested_where_it_is_exact_and_fast(adapters: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    adapters.extend([SOFTWARE, HARDWARE])
    assert place_hard(HARDWARE).engine.info is HARDWARE
    assert place_hard(None).engine.info is HARDWARE
    gone = EngineInfo("gpu", "Sold 1000")
    for earlier in (SOFTWARE, gone, open_engine("cpu").info, open_engine("reference").info):
        assert place_hard(earlier).engine.info.engine == "cpu"
    monkeypatch.setitem(sys.modules, "difflogic.cpu.engine", None)
    assert place_hard(open_engine("reference").info).engine.info.engine == "reference"
    assert place_hard(SOFTWARE).engine.info is SOFTWARE
