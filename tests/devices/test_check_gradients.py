"""Checking gradients: the right ones pass, a wrong entry in any layer is seen, and so is what cannot be compared."""

import dataclasses
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from difflogic.devices import check_gradients
from difflogic.devices.check_gradients import DIFFERENCES, FLOAT32, FLOAT64, TOLERANCE, Subject, compare
from difflogic.engine.job import make_job
from difflogic.errors import DeviceError, MissingPackagesError, UsageError
from difflogic.model.circuit import ArraysByNetwork
from difflogic.reference.engine import ReferenceEngine
from tests.train.tiny import tiny_config

LAYERS = [("perceive", 3), ("update", 4)]


@pytest.fixture(scope="module", params=["synchronous", "asynchronous"])
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject.start(tiny_config(fire_rate=0.6 if request.param == "asynchronous" else 1.0))


def right(subject: Subject) -> ArraysByNetwork:
    return ReferenceEngine().loss_and_gradients(subject.circuit, subject.batch)[1]


def spoiled(network: str, layer: int, change: Callable[[np.ndarray], None]) -> check_gradients.GradientSource:
    def source(subject: Subject) -> ArraysByNetwork:
        gradients = right(subject)
        gradients[network][layer] = gradients[network][layer].copy()
        change(gradients[network][layer])
        return gradients

    return source


def test_every_engine_agrees(subject: Subject) -> None:
    found = check_gradients.find(subject)
    pairs = compare(subject, found.found, samples=9)
    names = [FLOAT64, FLOAT32, *found.found]
    count = len(names)
    assert [(pair.one, pair.other) for pair in pairs[-count:]] == [(name, DIFFERENCES) for name in names]
    assert len(pairs) == count * (count - 1) // 2 + count
    assert all(pair.passed for pair in pairs), pairs
    assert all(pair.allowed < 10 * TOLERANCE for pair in pairs)


@pytest.mark.parametrize(("network", "layer"), [(name, layer) for name, count in LAYERS for layer in range(count)])
def test_a_wrong_entry_is_seen(network: str, layer: int) -> None:
    def off(gradients: np.ndarray) -> None:
        gradients.flat[0] += 3 * TOLERANCE * np.abs(gradients).max()

    pairs = compare(Subject.start(tiny_config()), {"wrong": spoiled(network, layer, off)}, samples=0)
    failed = {pair.one + " | " + pair.other: pair.layer for pair in pairs if not pair.passed}
    assert failed == {f"{name} | wrong": f"{network} {layer}" for name in (FLOAT64, FLOAT32)}


def test_finite_differences_see_a_factor() -> None:
    def doubled(gradients: np.ndarray) -> None:
        gradients *= 2

    pairs = compare(Subject.start(tiny_config()), {"wrong": spoiled("update", 2, doubled)}, samples=7)
    (verdict,) = [pair for pair in pairs if (pair.one, pair.other) == ("wrong", DIFFERENCES)]
    assert not verdict.passed
    assert verdict.layer == "update 2"


def test_what_is_not_finite_fails() -> None:
    def broken(gradients: np.ndarray) -> None:
        gradients.flat[3] = np.nan

    pairs = compare(Subject.start(tiny_config()), {"wrong": spoiled("perceive", 1, broken)}, samples=0)
    assert [pair.error for pair in pairs if not pair.passed] == [np.inf, np.inf]


def test_tolerance_is_the_float32_error_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that float32 cannot resolve has a larger tolerance; the others have the usual one."""
    exact = {"perceive 0": np.array([1.0, 0.5]), "update 0": np.array([2.0, 1.0]), "update 1": np.array([1.0, 0.0])}
    single = exact | {"update 1": np.array([1.0, 1e-3])}
    tolerances = check_gradients._Tolerances(exact, single)
    far = exact | {"update 1": np.array([1.0, 1e-2])}
    farther = exact | {"update 1": np.array([1.0, 2e-2])}
    assert tolerances.pair("one", "other", exact, far).passed
    assert not tolerances.pair("one", "other", exact, farther).passed
    assert not tolerances.pair("one", "other", exact, exact | {"update 0": np.array([2.0, 1.001])}).passed


def test_the_batch_is_that_of_the_next_epoch(subject: Subject) -> None:
    """The loss of the subject's work is what training reports for the epoch."""
    from difflogic.engine.job import TrainState

    config = subject.config
    job = make_job(config, subject.circuit)
    model = ReferenceEngine().open([job], [TrainState.initial(job)])
    model.train(1)
    loss, _ = ReferenceEngine().loss_and_gradients(subject.circuit, subject.batch)
    assert model.fetch_metrics()[0][0].soft_loss == loss


def take_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """wgpu, JAX and PyTorch, and our models in the latter, which an earlier test may have loaded."""
    for module in ("difflogic.gpu.engine", "jax", "torch"):
        monkeypatch.setitem(sys.modules, module, None)
    for name in check_gradients.AUTODIFF:
        monkeypatch.delitem(sys.modules, f"difflogic.autodiff.{name}_model", raising=False)


def test_what_is_not_here_is_skipped_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    take_away(monkeypatch)
    found = check_gradients.find(Subject.start(tiny_config()))
    assert list(found.found) == list(found.described) == ["cpu"]
    for name, words in (("gpu", "requires the package wgpu"), ("jax", "requires jax"), ("torch", "requires torch")):
        assert words in found.skipped[name]


@pytest.mark.parametrize(
    ("name", "error"),
    [("gpu", DeviceError), ("jax", MissingPackagesError), ("torch", MissingPackagesError), ("abacus", UsageError)],
)
def test_what_was_named_is_asked_or_an_error(name: str, error: type[Exception], monkeypatch) -> None:
    take_away(monkeypatch)
    with pytest.raises(error):
        check_gradients.find(Subject.start(tiny_config()), (name,))


@pytest.mark.parametrize("name", check_gradients.AUTODIFF)
def test_a_model_that_differentiates_itself_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a fake if it is not installed: `tests/bench/test_rivals.py` tests the model itself."""
    model: Any = ModuleType(f"difflogic.autodiff.{name}_model")
    model.gradients = ReferenceEngine().loss_and_gradients
    monkeypatch.setitem(sys.modules, model.__name__, model)
    monkeypatch.setattr(check_gradients, "version", lambda _: "1.2")
    subject = Subject.start(tiny_config())
    found = check_gradients.find(subject, (name,))
    assert found.described == {name: f"{name} 1.2, by automatic differentiation"}
    pairs = compare(subject, found.found, samples=0)
    assert [pair.other for pair in pairs] == [FLOAT32, name, name]
    assert dataclasses.replace(pairs[-1], layer="").error == 0
    with pytest.raises(UsageError, match="does not support damage, losses before the last step or candidates"):
        check_gradients.find(Subject.start(tiny_config().with_(task={"loss_steps": (2, 3)})), (name,))
