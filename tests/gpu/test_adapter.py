"""Selection of adapters, and the messages if none fits."""

from dataclasses import replace
from typing import Any

import pytest

from difflogic.errors import NoAdapterError
from difflogic.gpu import adapter as room
from difflogic.gpu.adapter import PORTABLE_LIMITS, Adapter, list_adapters, open_device, select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import WRITTEN


@pytest.fixture
def three(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> tuple[Adapter, ...]:
    """A big card, a small one, and a software adapter."""
    names = [("Big Card 9000", "DiscreteGPU"), ("Small Chip 3", "IntegratedGPU"), ("llvmpipe (LLVM)", "CPU")]
    found = tuple(replace(adapter, index=i, name=name, type=kind) for i, (name, kind) in enumerate(names))
    monkeypatch.setattr(room, "list_adapters", lambda: found)
    return found


@pytest.mark.parametrize(
    ("selector", "hardware", "index"),
    [(None, False, 0), ("2", False, 2), ("small", False, 1), ("LLVM", False, 2), ("i", False, 0), (None, True, 0)],
)
def test_selection(three: tuple[Adapter, ...], selector: str | None, hardware: bool, index: int) -> None:
    assert select_adapter(selector, hardware) is three[index]


KNOWN = "0: Big Card 9000; 1: Small Chip 3; 2: llvmpipe (LLVM)"


@pytest.mark.parametrize("selector", ["Huge", "3", "-1", ""])
def test_what_matches_nothing(three: tuple[Adapter, ...], selector: str) -> None:
    if selector == "":
        assert select_adapter(selector) is three[0]
        return
    with pytest.raises(NoAdapterError) as caught:
        select_adapter(selector)
    expected = f"expected an index or part of a name in: {KNOWN}."
    assert str(caught.value) == f"No GPU adapter matches {selector!r}: {expected}"


def test_software_is_refused_where_hardware_is_required(three: tuple[Adapter, ...]) -> None:
    with pytest.raises(NoAdapterError) as caught:
        select_adapter("llvmpipe", require_hardware=True)
    assert str(caught.value) == (
        f"--require-hardware was given, but only software adapters were found ({KNOWN}): install the GPU's driver, "
        "or leave the option out."
    )


def test_no_adapter_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "list_adapters", lambda: ())
    with pytest.raises(NoAdapterError) as caught:
        GpuEngine.on("0")
    assert str(caught.value) == room.NO_ADAPTER
    assert "mesa-vulkan-drivers" in room.NO_ADAPTER
    assert room.NO_ADAPTER.endswith("or set `engine` to cpu.")


def test_adapters_describe_themselves() -> None:
    found = list_adapters()
    assert [each.index for each in found] == list(range(len(found)))
    assert [each.software for each in found] == sorted(each.software for each in found), "hardware first"
    for each in found:
        assert each.name
        assert each.backend in room.BACKENDS
        assert each.limits["max-compute-invocations-per-workgroup"] >= 64


def test_a_device_gets_no_more_than_portable_limits(adapter: Adapter, device: GpuDevice) -> None:
    for name, value in PORTABLE_LIMITS.items():
        assert device.limits[name] == min(value, adapter.limits[name]), name


def test_an_adapter_that_refuses_is_told(adapter: Adapter) -> None:
    class Refusing:
        def request_device_sync(self, **options: Any) -> None:
            raise RuntimeError("Request device failed (1): out of luck\nand a trace")

    with pytest.raises(NoAdapterError) as caught:
        open_device(replace(adapter, name="Big Card 9000", handle=Refusing()))
    assert str(caught.value) == (
        "Could not open a device on the adapter Big Card 9000: Request device failed (1): out of luck. Select another "
        "adapter (`difflogic doctor --list` lists them), or set `engine` to cpu."
    )


def test_the_engine_says_what_it_runs_on(engine: GpuEngine, adapter: Adapter) -> None:
    info = engine.info
    assert (info.engine, info.adapter, info.driver) == ("gpu", adapter.name, adapter.driver)
    assert (info.adapter_type, info.backend, info.software) == (adapter.type, adapter.backend, adapter.software)
    assert set(info.variant) == set(WRITTEN.values())
