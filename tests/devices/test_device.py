"""A device is a value: equal where it is the same place, and its string is what `--engine` takes."""

import dataclasses
from typing import Any

import pytest

import difflogic
from difflogic.devices import selftest
from difflogic.devices.device import Device, same_device
from difflogic.errors import DeviceError, DeviceMismatchError, NoAdapterError, UsageError
from difflogic.gpu import adapter
from difflogic.gpu.adapter import list_adapters


def test_names_become_the_device_that_they_stand_for() -> None:
    first = list_adapters()[0]
    assert Device("gpu") == Device("gpu:0") == Device("gpu:00") == Device(f"gpu:{first.name}")
    assert str(Device("gpu")) == "gpu:0"
    assert repr(Device("cpu")) == "Device('cpu')"
    assert Device(Device("cpu")) == Device("cpu") != Device("reference")  # type: ignore[arg-type]
    assert len({Device("cpu"), Device("cpu")}) == 1
    with pytest.raises(UsageError, match=r"Unknown engine 'cuda': expected auto, cpu, reference, gpu, gpu:INDEX"):
        Device("cuda")


def test_auto_is_the_device_that_auto_chooses() -> None:
    assert Device() == Device("auto") == Device(difflogic.open_engine().selector)
    assert str(Device("auto")) != "auto"


def test_every_device_opens_the_engine_of_its_name() -> None:
    found = Device.all()
    assert [str(device) for device in found[-2:]] == ["cpu", "reference"]
    assert [device.name for device in found[:-2]] == [adapter.name for adapter in list_adapters()]
    for device in found:
        assert device.open().selector == difflogic.open_engine(device).selector == str(device)
        device.synchronize()
        assert device.kind == ("processor" if device in found[-2:] else "software" if device.name else "")
    assert Device("gpu").open().device is Device("gpu:0").open().device  # type: ignore[attr-defined]


def test_a_device_is_available_when_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Device("cpu").is_available()
    assert not Device("cpu").is_available(hardware=True)
    verdicts: list[Any] = []

    def require(adapter: Any) -> None:
        verdicts.append(adapter)
        if len(verdicts) == 2:
            raise DeviceError("It failed.")

    monkeypatch.setattr(selftest, "require", require)
    assert Device("gpu:0").is_available()
    assert not Device("gpu:0").is_available(), "it is listed, but failed"
    assert not Device("gpu:0").is_available(hardware=True), "these are programs"
    assert len(verdicts) == 2
    card = dataclasses.replace(list_adapters()[0], type="DiscreteGPU")
    monkeypatch.setattr(adapter, "list_adapters", lambda: (card,))
    assert Device("gpu:0").kind == "hardware"
    assert Device("gpu:0").is_available(hardware=True)


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for gone in (Device("gpu:99"), Device("gpu:Sold 1000")):
        assert not gone.is_available()
        with pytest.raises(NoAdapterError, match="No GPU adapter matches"):
            gone.name  # noqa: B018


def test_without_wgpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is missed when adapters are listed, not when the module that lists them is loaded."""

    def missing() -> None:
        raise ModuleNotFoundError("No module named 'wgpu'", name="wgpu")

    monkeypatch.setattr(adapter, "list_adapters", missing)
    assert Device.all() == [Device("cpu"), Device("reference")]
    assert not Device("gpu").is_available()
    with pytest.raises(NoAdapterError, match="wgpu, which could not be loaded: No module named 'wgpu'"):
        Device("gpu").name  # noqa: B018
    assert str(Device("auto")) == "cpu"


def test_operands_on_two_devices() -> None:
    gpu, cpu = Device("gpu"), Device("cpu")
    assert same_device("add", a=cpu, b=Device("cpu")) == cpu
    name = gpu.name.partition(" (")[0]
    with pytest.raises(DeviceMismatchError) as caught:
        same_device("add", a=gpu, b=cpu)
    assert str(caught.value) == (
        f"add expects operands on the same device, but a is on gpu:0 ({name}) and b on cpu: "
        "move one, such as b.to(a.device)."
    )
