"""Policies: what is measured, what is remembered, what is refused."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from difflogic.config.choices import Placing
from difflogic.config.schema import Config
from difflogic.devices import choose
from difflogic.devices.choose import place_run
from difflogic.devices.open import open_engine
from difflogic.devices.race import Decision, TimedEpochs
from difflogic.engine.api import EngineInfo
from difflogic.errors import DeviceError, UsageError
from difflogic.reference.engine import ReferenceEngine
from tests.train.tiny import tiny_config

HARDWARE = EngineInfo("gpu", "Quick 9000", "DiscreteGPU", "Vulkan", "1.0")
CPU = EngineInfo("cpu", "Abacus")

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def gpu(adapters: list[EngineInfo]) -> list[EngineInfo]:
    """The adapters of a machine with one hardware GPU."""
    adapters.append(HARDWARE)
    return adapters


@pytest.fixture
def config() -> Config:
    return tiny_config()


def measured(engine: EngineInfo, paces: tuple[float, ...] = (1.0, 2.0)) -> Decision:
    return Decision(engine, "auto measured", tuple(TimedEpochs(HARDWARE, 1, [9.0, pace]) for pace in paces))


def test_a_gpu_and_a_processor_are_measured(gpu: list[EngineInfo], config: Config) -> None:
    placement = place_run(config, 1)
    candidate = placement.candidate
    assert candidate is not None
    assert placement.engine.info is HARDWARE
    assert candidate.open().info.engine == "cpu"
    assert candidate.opening_seconds() in (choose.COMPILED_SECONDS, choose.COMPILING_SECONDS)
    reason = "auto found the hardware GPU Quick 9000, and measures the first epochs on it and on the CPU engine"
    assert placement.reason == reason


def test_what_was_found_is_remembered(gpu: list[EngineInfo], config: Config) -> None:
    for winner, engine in ((CPU, "cpu"), (HARDWARE, "gpu")):
        choose.keep_measured(HARDWARE, config, 1, measured(winner))
        placement = place_run(config, 1)
        assert (placement.engine.info.engine, placement.candidate) == (engine, None)
        assert placement.reason == "measured in an earlier run of this shape: auto measured"


@pytest.mark.parametrize(
    "other",
    [
        lambda config: (config.with_(train={"batch": 7}), 1),
        lambda config: (config.with_(task={"height": 7}), 1),
        lambda config: (config, 2),
    ],
)
def test_another_shape_is_measured_again(other, gpu: list[EngineInfo], config: Config) -> None:
    choose.keep_measured(HARDWARE, config, 1, measured(CPU))
    assert place_run(*other(config)).candidate is not None
    same = config.with_(seed=9, train={"epochs": 999}, optimizer={"lr": 0.1})
    assert place_run(same, 1).engine.info.engine == "cpu"


@pytest.mark.parametrize("change", [{"adapter": "Quick 9001"}, {"driver": "1.1"}, {}])
def test_another_gpu_driver_or_processor_is_measured_again(
    change: dict[str, str], gpu: list[EngineInfo], config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose.keep_measured(HARDWARE, config, 1, measured(CPU))
    gpu[:] = [replace(HARDWARE, **change)]
    if not change:
        monkeypatch.setattr(choose, "processor_name", lambda: "Slide rule")
    assert place_run(config, 1).candidate is not None


@pytest.mark.parametrize("paces", [(1.0,), ()])
def test_only_what_was_compared_is_remembered(paces: tuple[float, ...], gpu: list[EngineInfo], config: Config) -> None:
    choose.keep_measured(HARDWARE, config, 1, measured(HARDWARE, paces))
    assert place_run(config, 1).candidate is not None


def test_policies_that_measure_nothing(gpu: list[EngineInfo], config: Config) -> None:
    choose.keep_measured(HARDWARE, config, 1, measured(CPU))
    found = place_run(config, 1, "gpu")
    assert (found.engine.info, found.reason) == (HARDWARE, "auto found the hardware GPU Quick 9000")
    found = place_run(config, 1, "cpu")
    assert (found.engine.info.engine, found.reason) == ("cpu", "--placement cpu was given")
    assert place_run(config, 1, "sticky").engine.info is HARDWARE


def test_sticky_stays_where_the_last_run_was(gpu: list[EngineInfo], config: Config) -> None:
    for info in (CPU, HARDWARE, ReferenceEngine().info):
        choose.keep_last(config, 1, info)
        placement = place_run(config, 1, "sticky")
        assert placement.engine.info.engine == info.engine
        assert placement.reason == "the last run of this shape used it"
    assert place_run(config, 1, "sticky", require_hardware=True).engine.info is HARDWARE
    choose.keep_last(config, 1, EngineInfo("gpu", "Sold 1000"))
    assert place_run(config, 1, "sticky").reason == "auto found the hardware GPU Quick 9000"


def test_sticky_goes_where_it_can(gpu: list[EngineInfo], config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    choose.keep_last(config, 1, CPU)
    monkeypatch.setitem(sys.modules, "difflogic.cpu.engine", None)
    assert place_run(config, 1, "sticky").engine.info is HARDWARE


def test_required_hardware_is_not_measured_against_the_processor(gpu: list[EngineInfo], config: Config) -> None:
    assert place_run(config, 1, require_hardware=True).engine.info is HARDWARE
    with pytest.raises(UsageError, match="--placement cpu cannot be combined with --require-hardware"):
        place_run(config, 1, "cpu", require_hardware=True)


@pytest.mark.parametrize("how", ["auto", "gpu", "sticky"])
def test_a_software_adapter_is_no_rival_of_the_processor(how: Placing, gpu: list[EngineInfo], config: Config) -> None:
    gpu[:] = [replace(HARDWARE, adapter_type="CPU", software=True)]
    assert place_run(config, 1, how).engine.info.engine == "cpu"


def test_where_numba_is_missing_the_gpu_stays(gpu: list[EngineInfo], config: Config, monkeypatch) -> None:
    choose.keep_measured(HARDWARE, config, 1, measured(CPU))
    monkeypatch.setitem(sys.modules, "difflogic.cpu.engine", None)
    monkeypatch.setitem(sys.modules, "difflogic.cpu.codegen.compiled", None)
    candidate = place_run(config, 1).candidate
    assert candidate is not None
    assert candidate.opening_seconds() == 0
    with pytest.raises(DeviceError, match="requires the package numba"):
        candidate.open()


@pytest.mark.parametrize(
    "entry", [{}, {"selector": "abacus", "why": ""}, {"selector": "gpu:", "why": ""}, {"selector": "cpu", "why": 1},
              {"selector": [], "why": ""}]
)  # fmt: skip
def test_a_strange_entry_counts_as_none(entry: dict[str, Any], config: Config) -> None:
    key = choose._last_key(config, 1)
    choose.PLACES.write(key, entry)
    assert choose._read(key) is None


def test_the_last_place_is_written_once(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    info = open_engine("reference").info
    choose.keep_last(config, 1, info)
    before = choose.PLACES.path.stat().st_mtime_ns
    choose.keep_last(config, 1, info)
    assert choose.PLACES.path.stat().st_mtime_ns == before
