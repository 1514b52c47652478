"""The self-test: a wrong answer is seen, and the child's death is told."""

import itertools
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from difflogic.devices import selftest
from difflogic.gpu import probes
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.workspace import Workspace
from difflogic.system.cache import JsonCache
from difflogic.system.child import python_command


def outcome(name: str) -> selftest.Check:
    return next(check for check in selftest._checks("0") if check.name == name)


@pytest.mark.parametrize(
    ("probe", "name"),
    [
        ("runs_long_loops", "long loops"),
        ("sees_not_finite", "NaN test"),
        ("keeps_workgroup_memory", "workgroup memory"),
    ],
)
def test_a_failed_probe_is_told(probe: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, probe, lambda device: False)
    assert not outcome(name).passed


def test_probes_read_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    device: Any = SimpleNamespace()
    answers = {"loop_budget": np.array([65_535, 0, 0]), "not_finite": np.ones(8), "workgroup_memory": np.eye(1, 64)}
    monkeypatch.setattr(probes, "run_probe", lambda device, name, words: answers[name])
    assert not probes.runs_long_loops(device)
    assert not probes.sees_not_finite(device)
    assert not probes.keeps_workgroup_memory(device)


def test_wrong_states_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = GpuEngine.rollout
    monkeypatch.setattr(GpuEngine, "rollout", lambda *given, **named: right(*given, **named) + np.float32(1e-3))
    assert not outcome("forward").passed
    assert not outcome("hard circuit").passed


def test_a_wrong_epoch_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Workspace.update.func

    def without_the_pool(self: Workspace) -> Any:
        return [dispatch for dispatch in right(self) if dispatch.kernel != "write_back"]

    monkeypatch.setattr(Workspace, "update", property(without_the_pool))
    check = outcome("training")
    assert not check.passed
    assert check.detail.startswith("failed: the sample pool differs; update the driver")


@pytest.mark.parametrize(
    ("check", "call", "factor"), [("gradients", 0, 1.01), ("gradients", 0, np.nan), ("determinism", 1, 1.01)]
)
def test_wrong_or_changing_gradients_are_seen(check: str, call: int, factor: float, monkeypatch) -> None:
    right, calls = GpuEngine.loss_and_gradients, itertools.count()

    def wrong(*given: Any, **named: Any) -> tuple[float, dict[str, list[np.ndarray]]]:
        loss, gradients = right(*given, **named)
        gradients["update"][1] = gradients["update"][1] * np.float32(factor if next(calls) == call else 1)
        return loss, gradients

    monkeypatch.setattr(GpuEngine, "loss_and_gradients", wrong)
    assert not outcome(check).passed


def test_a_child_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import json,os;print(json.dumps(dict(name='device',passed=True,detail='opens')),flush=True);os.abort()"
    monkeypatch.setattr(selftest, "_command", lambda adapter: python_command("-c", script))
    checks = selftest.self_test("0")
    assert [check.passed for check in checks] == [True, False]
    assert "the process ended with code" in checks[1].detail


def test_import_error_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module of wgpu's name stands before it on the path."""
    (tmp_path / "wgpu.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(JsonCache, "write", lambda *_: pytest.fail("it is cached"))
    checks = selftest.self_test("0")
    assert [check.name for check in checks] == [selftest.IMPORTS]
    assert selftest.keep(select_adapter(), checks)[0].endswith("repair the installation; the driver was not tested")


def test_a_child_that_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(command: list[str], **named: Any) -> None:
        raise subprocess.TimeoutExpired(command, named["timeout"])

    monkeypatch.setattr(subprocess, "run", hangs)
    (check,) = selftest.self_test("0")
    assert not check.passed
    assert "the driver hangs" in check.detail


def test_an_adapter_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert selftest.main(["no such adapter"]) == 0
    assert '"passed": false' in capsys.readouterr().out
