"""Choice of the adapter; one that silently cuts loops short is not used."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from difflogic.circuits.simulation.engines import open_simulation
from difflogic.devices import selftest
from difflogic.devices.open import place
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DeviceError, NoAdapterError
from difflogic.gpu import adapter as room
from difflogic.gpu import probes
from difflogic.gpu.adapter import PORTABLE_LIMITS, Adapter, list_adapters, open_device, select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import WRITTEN
from difflogic.gpu.shaders import Source, load_source
from tests.export_cases import life


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
        "or omit --require-hardware."
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


REFUSAL = r"cannot be used: the driver silently cuts long loops short, as lavapipe does before Mesa 25"


@pytest.fixture
def cutting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shaders as lavapipe before Mesa 25 runs them: an invocation's loops end after 65,535 rounds in all."""

    def cut(kernel: str) -> Source:
        source = load_source(kernel)
        text = source.text.replace("{ total +=", "{ rounds++; if rounds > 65535u { break; } total +=")
        text = text.replace("var total = 0u;", "var total = 0u; var rounds = 0u;")
        return Source(source.name, text, source.origins)

    monkeypatch.setattr(probes, "load_source", cut)
    monkeypatch.setattr(probes, "_OPENED", {})


@pytest.mark.usefixtures("cutting")
def test_an_adapter_that_cuts_loops_short_is_refused(device: GpuDevice) -> None:
    assert not probes.runs_long_loops(device)
    for selector in ("gpu", "gpu:0"):
        with pytest.raises(DeviceError, match=REFUSAL):
            place(selector)
    with pytest.raises(DeviceError, match=REFUSAL):
        open_simulation(SimulationSpec(life(), 8, 8), np.zeros((8, 1, 1), dtype=np.uint64), "gpu")
    _, check, *_ = islice(selftest._checks("0"), 2)
    assert (check.name, check.passed) == ("long loops", False)
    assert check.detail.endswith("install a newer driver, or use --engine cpu")
