"""`difflogic devices` and `difflogic doctor`: what they print, and how doctor takes bad news."""

from __future__ import annotations

import getpass
import json
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

import difflogic
from difflogic.devices import selftest
from difflogic.devices.selftest import Check
from difflogic.gpu import adapter as adapters
from difflogic.gpu.adapter import NO_ADAPTER, list_adapters
from difflogic.system.processor import processor_name
from tests.cli.conftest import Said

GOOD = [Check("device", True, "opens")]
BAD = [*GOOD, Check("gradients", False, "not so")]


@pytest.fixture(autouse=True)
def kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdicts made up here are not for the tests that train."""
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path / "cache"))


def test_devices_lists_every_adapter(said: Said) -> None:
    out = said("devices").out
    for adapter in list_adapters():
        assert f"gpu:{adapter.index}: {adapter.name}" in out
        assert adapter.backend in out
        assert f"max-storage-buffer-binding-size = {adapter.limits['max-storage-buffer-binding-size']}" in out
    assert "hardware" in out or "software" in out
    assert f"cpu: {processor_name()}\n" in out


def test_all_shows_every_limit(said: Said) -> None:
    out = said("devices", "--all").out
    assert all(name in out for name in list_adapters()[0].limits)


def test_devices_as_json(said: Said) -> None:
    listed = json.loads(said("devices", "--json").out)
    assert [entry["name"] for entry in listed[:-2]] == [adapter.name for adapter in list_adapters()]
    assert [entry["device"] for entry in listed] == [str(device) for device in difflogic.Device.all()]
    assert listed[-2] == {"device": "cpu", "name": processor_name(), "kind": "processor"}
    first = listed[0]
    assert first["kind"] == ("software" if first["type"] == "CPU" else "hardware")
    assert first["limits"]["max-compute-invocations-per-workgroup"] >= 256
    assert "handle" not in first


def test_devices_without_any(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr(adapters, "list_adapters", lambda: ())
    out = said("devices").out
    assert out.startswith(NO_ADAPTER)
    assert [line.partition(":")[0] for line in out.splitlines()[1::2]] == ["cpu", "reference"]


def test_doctor_really_tests_the_adapter(said: Said) -> None:
    report = json.loads(said("doctor", "--adapter", "0", "--json").out)
    assert report["healthy"]
    names = [check["name"] for check in report["adapters"][0]["checks"]]
    assert names == [
        *("device", "long loops", "NaN test", "workgroup memory"),
        *("forward", "gradients", "hard circuit", "determinism", "training"),
    ]


@pytest.mark.parametrize(("checks", "code", "line"), [(GOOD, 0, "ok"), (BAD, 1, "FAIL")])
def test_doctor_says_how_it_went(
    checks: list[Check], code: int, line: str, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setattr(selftest, "self_test", lambda _: checks)
    out = said("doctor", "--adapter", "0", code=code).out
    assert f"{line}  {checks[-1].name}: {checks[-1].detail}" in out.replace("ok    ", "ok  ")
    assert ("Some tests failed" in out) == (code == 1)


def test_doctor_without_any(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr(adapters, "list_adapters", lambda: ())
    assert NO_ADAPTER in said("doctor", code=1).out


def test_doctor_of_an_unknown_adapter(said: Said) -> None:
    assert "No GPU adapter matches 'no such thing'" in said("doctor", "--adapter", "no such thing", code=1).err


@pytest.fixture
def somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an owner; returns the home."""
    home = tmp_path / "people" / "mary-ann"
    (home / "clients/acme/cache").mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setattr(getpass, "getuser", lambda: "mary-ann")
    monkeypatch.setattr(platform, "node", lambda: "ocelot.acme.example")
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-built-by-mary-ann")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(home / "clients/acme/cache"))
    monkeypatch.setenv("DIFFLOGIC_TOKEN", "s3cret")
    monkeypatch.setenv("DIFFLOGIC_SERVER", "http://jobs.acme.example")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    monkeypatch.setenv("ACME_PASSWORD", "swordfish")
    return home


PRIVATE = ("mary", "acme", "ocelot", "people", "s3cret", "swordfish", "pytest-of")


def test_a_report_says_what_matters_and_nothing_private(
    somebody: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    paths = [somebody / "venv/bin/python", "/srv/acme/lib/libvulkan.so", r"C:\Users\mary-ann\driver.dll"]
    told = [Check(f"check {index}", False, f"ended ({path}: on ocelot)") for index, path in enumerate(paths)]
    monkeypatch.setattr(selftest, "self_test", lambda adapter: [*GOOD, *told])
    out = said("doctor", "--adapter", "0", "--report", code=1).out
    assert [word for word in PRIVATE if word in out.lower()] == []
    adapter = list_adapters()[0]
    for words in (
        *(f"difflogic    {difflogic.__version__}", f"numpy {np.__version__}", platform.python_version()),
        *("DIFFLOGIC_TOKEN is set", "NUMBA_CACHE_DIR is a path", "NUMBA_NUM_THREADS=2", "built-by-<user>"),
        *("of code, where NUMBA_CACHE_DIR says: not there yet", adapter.name, adapter.driver, "max-buffer-size"),
        *("ok    device: opens", "FAIL  check 0: ended (.../python: on <host>)", "libvulkan.so", "driver.dll"),
    ):
        assert words in out


def test_a_report_where_there_is_no_user_and_no_cpu_engine(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    def nobody(*arguments: object) -> None:
        raise KeyError("getpwuid(): uid not found: 12345")

    def homeless() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(getpass, "getuser", nobody)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setitem(sys.modules, "difflogic.cpu.codegen.compiled", None)
    monkeypatch.setattr(adapters, "list_adapters", lambda: ())
    out = said("doctor", "--report", code=1).out
    assert "of code, in the usual place: cannot be looked at (ModuleNotFoundError" in out
    assert out.strip().endswith(NO_ADAPTER)


def test_a_report_is_no_document(said: Said) -> None:
    assert "give one of them" in said("doctor", "--report", "--json", code=2).err
