"""Trust: no adapter trains that has not passed the self-test, which runs once per driver and shaders."""

import dataclasses
from functools import partial

import pytest

from difflogic.cli.main import main
from difflogic.devices import selftest
from difflogic.devices.open import place, place_again
from difflogic.devices.selftest import Check
from difflogic.errors import DeviceError
from difflogic.gpu import adapter as adapters
from difflogic.gpu.adapter import Adapter, select_adapter

GOOD = [Check("device", True, "opens"), Check("long loops", True, "carried out in full")]
BAD = [
    Check("device", True, "opens"),
    Check("gradients", False, "gradients differ by 0.1 times the layer's largest gradient"),
]
REFUSAL = r"failed the self-test and cannot be used, gradients: gradients differ by 0.1.*difflogic doctor"

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    """Results of the fake self-test."""
    found: list[Check] = []
    monkeypatch.setattr(selftest, "self_test", lambda name: list(found))
    return found


@pytest.fixture
def adapter() -> Adapter:
    return select_adapter()


def forbid_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(name: str) -> list[Check]:
        raise AssertionError("tested again")

    monkeypatch.setattr(selftest, "self_test", called)


def test_one_test_per_driver(adapter: Adapter, answer: list[Check], monkeypatch, capsys) -> None:
    answer += GOOD
    selftest.require(adapter)
    told = capsys.readouterr()
    assert told.out == ""
    assert f"difflogic: checking {adapter.name} against the reference, once per driver ..." in told.err
    assert f"difflogic: checked {adapter.name}: the self-test passed (0 s)." in told.err
    forbid_tests(monkeypatch)
    selftest.require(adapter)
    assert capsys.readouterr().err == ""
    for other in ({"driver": "another"}, {"name": "another"}, {"backend": "another"}):
        assert selftest.kept(dataclasses.replace(adapter, **other)) is None
    monkeypatch.setattr(selftest, "shader_hash", lambda: "another")
    assert selftest.kept(adapter) is None


@pytest.mark.parametrize(("checks", "refusal"), [(BAD, REFUSAL), ([], "no check was made")])
def test_a_failure_is_kept_too(checks, refusal, adapter: Adapter, answer: list[Check], monkeypatch) -> None:
    answer += checks
    with pytest.raises(DeviceError, match=refusal):
        selftest.require(adapter)
    forbid_tests(monkeypatch)
    with pytest.raises(DeviceError, match=refusal):
        selftest.require(adapter)


@pytest.mark.parametrize("entry", [{}, {"failures": "none"}, {"failures": [1]}])
def test_a_strange_entry_counts_as_none(adapter: Adapter, entry: dict[str, object]) -> None:
    selftest.VERDICTS.write(selftest._key(adapter), entry)
    assert selftest.kept(adapter) is None


def test_doctor_refreshes_the_verdict(adapter: Adapter, answer: list[Check]) -> None:
    selftest.keep(adapter, BAD)
    answer += GOOD
    assert main(["doctor", "--adapter", "0"]) == 0
    selftest.require(adapter)
    answer += BAD
    assert main(["doctor", "--adapter", "0"]) == 1
    with pytest.raises(DeviceError, match=REFUSAL):
        selftest.require(adapter)


def test_placing_for_training(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    selftest.keep(adapter, BAD)
    info = place("gpu").engine.info
    for ask in (partial(place, "gpu"), partial(place_again, info)):
        with pytest.raises(DeviceError, match=REFUSAL):
            ask(trusted=True)
    broken = dataclasses.replace(adapter, name="Broken 1000", type="DiscreteGPU")
    sound = dataclasses.replace(adapter, index=1, name="Quick 9000", type="DiscreteGPU")
    monkeypatch.setattr(adapters, "list_adapters", lambda: (broken, sound))
    for each in (broken, sound):
        selftest.keep(each, BAD)
    placement = place("auto", trusted=True)
    assert placement.engine.info.engine == "cpu"
    assert placement.reason.startswith("auto found no usable hardware GPU: Broken 1000 failed the self-test")
    selftest.keep(sound, GOOD)
    placement = place("auto", trusted=True)
    assert placement.engine.info.adapter == "Quick 9000"
    assert placement.reason.startswith("auto found the hardware GPU Quick 9000, since Broken 1000 failed the self-test")


def test_commands_refuse(adapter: Adapter, capsys, monkeypatch, tmp_path) -> None:
    selftest.keep(adapter, BAD)
    monkeypatch.chdir(tmp_path)
    for command in (["train-checkerboard", "--gpu", "--small", "--epochs", "1"], ["tune"]):
        assert main(command) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        assert "failed the self-test" in told.err
        assert "difflogic doctor" in told.err
    assert not (tmp_path / "runs").exists()


def test_the_real_thing(adapter: Adapter) -> None:
    selftest.require(adapter)
    assert selftest.kept(adapter) == []
