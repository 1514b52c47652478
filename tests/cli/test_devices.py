"""`difflogic devices` and `difflogic doctor`: what they print, and how doctor takes bad news."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from difflogic.cli.main import main
from difflogic.gpu import adapter as adapters
from difflogic.gpu.adapter import NO_ADAPTER, list_adapters
from difflogic.train import selftest
from difflogic.train.selftest import Check

GOOD = [Check("device", True, "opens")]
WORKED_AROUND = [*GOOD, Check("long loops", False, "cut short", fatal=False)]
BAD = [*GOOD, Check("gradients", False, "not so")]


@pytest.fixture(autouse=True)
def kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdicts made up here are not for the tests that train."""
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path / "cache"))


def test_devices_lists_every_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    for adapter in list_adapters():
        assert f"{adapter.index}: {adapter.name}" in out
        assert adapter.backend in out
        assert f"max-storage-buffer-binding-size = {adapter.limits['max-storage-buffer-binding-size']}" in out
    assert "hardware" in out or "software" in out


def test_all_shows_every_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--all"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in list_adapters()[0].limits)


def test_devices_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed] == [adapter.name for adapter in list_adapters()]
    first = listed[0]
    assert first["kind"] == ("software" if first["type"] == "CPU" else "hardware")
    assert first["limits"]["max-compute-invocations-per-workgroup"] >= 256
    assert "handle" not in first


def test_devices_without_any(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(adapters, "list_adapters", lambda: ())
    assert main(["devices"]) == 0
    assert capsys.readouterr().out.strip() == NO_ADAPTER


def test_doctor_really_tests_the_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--adapter", "0", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["healthy"]
    names = [check["name"] for check in report["adapters"][0]["checks"]]
    assert names == [
        *("device", "long loops", "NaN test", "workgroup memory"),
        *("forward", "gradients", "hard circuit", "determinism", "training"),
    ]


@pytest.mark.parametrize(("checks", "code", "line"), [(GOOD, 0, "ok"), (WORKED_AROUND, 0, "note"), (BAD, 1, "FAIL")])
def test_doctor_says_how_it_went(
    checks: list[Check], code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selftest, "self_test", lambda _: checks)
    assert main(["doctor", "--adapter", "0"]) == code
    out = capsys.readouterr().out
    assert f"{line}  {checks[-1].name}: {checks[-1].detail}" in out.replace("ok    ", "ok  ")
    assert ("Not well" in out) == (code == 1)


def test_doctor_without_any(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(adapters, "list_adapters", lambda: ())
    assert main(["doctor"]) == 1
    assert NO_ADAPTER in capsys.readouterr().out


def test_doctor_of_an_unknown_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--adapter", "no such thing"]) == 1
    assert "No GPU adapter matches 'no such thing'" in capsys.readouterr().err
