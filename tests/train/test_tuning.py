"""Tuning: what is timed was verified, only a clear win is kept, and a second run measures nothing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from difflogic.circuit import Circuit
from difflogic.cli.main import main
from difflogic.config import Config, ModelConfig, NetworkConfig
from difflogic.engine import TrainState
from difflogic.errors import DeviceError
from difflogic.gpu import tuned
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import Device
from difflogic.gpu.encoding import Dispatch
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.groups import GpuGroups
from difflogic.gpu.plan import Schedule
from difflogic.gpu.workspace import Workspace
from difflogic.train import trust, tuning
from difflogic.train.population import configs
from difflogic.train.selftest import example
from difflogic.train.tasks import make_job
from difflogic.train.tuning import Tuner
from tests.random_circuits import random_circuit
from tests.train.tiny import tiny_config

Speed = Callable[[Schedule, str], float]


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(select_adapter())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tuning, "example", lambda: (without_trees(), *example()[1:]))
    monkeypatch.setattr(tuning, "LANES", (2, 8))
    monkeypatch.setattr(tuning, "WORKGROUP_SIZES", (8, 16, 32))
    return tuned.TUNING.path


def without_trees() -> Circuit:
    """The example's shape, but for a perception whose kernels compile sooner, for each schedule anew."""
    return random_circuit(np.random.default_rng(0), channels=2, kernels=3)


@pytest.fixture
def config() -> Config:
    """Likewise without trees."""
    perceive = NetworkConfig((9, 8, 4, 3), ("first_kernel", "unique", "unique"))
    update = NetworkConfig((14, 12, 8, 4, 2), ("unique",) * 4)
    return tiny_config().with_(model=ModelConfig(2, 2, perceive, update))


def tuner(device: Device, config: Config, monkeypatch: pytest.MonkeyPatch, speed: Speed, population: int = 1) -> Tuner:
    """A tuner whose clock says what a schedule's kernels should take."""

    def timed(self: Tuner, work: Workspace, dispatches: list[Dispatch]) -> float:
        return sum(speed(work.plan.schedule, dispatch.kernel) for dispatch in dispatches)

    monkeypatch.setattr(Tuner, "_time", timed)
    return Tuner(device, config, lambda _: None, population)


def favours(best: Schedule, gain: float) -> Speed:
    """Each fused kernel is faster by `gain` under the best lanes and its best workgroup size there."""

    def speed(schedule: Schedule, kernel: str) -> float:
        right = schedule.lanes == best.lanes and schedule.wg_of(kernel) == best.wg_of(kernel)
        return 1.0 / gain if right else 1.0

    return speed


BEST = Schedule(16, 2, forward_wg=8, hard_wg=32)


def test_the_best_of_each_kernel_is_kept(device: Device, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = tuner(device, config, monkeypatch, favours(BEST, 2)).run()
    assert outcome.stored is not None
    assert outcome.stored.schedule == BEST
    assert outcome.measured == 3 * (3 + 3)


def test_a_second_run_measures_nothing(device: Device, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tuner(device, config, monkeypatch, favours(BEST, 2)).run()
    again = tuner(device, config, monkeypatch, favours(Schedule(8, 8), 9)).run()
    assert again == dataclasses.replace(first, measured=0)


@pytest.mark.parametrize(("gain", "kept"), [(1.03, False), (1.2, True)])
def test_only_a_clear_win_is_kept(
    device: Device, config: Config, monkeypatch: pytest.MonkeyPatch, gain: float, kept: bool
) -> None:
    outcome = tuner(device, config, monkeypatch, favours(BEST, gain)).run()
    assert outcome.stored is not None
    assert outcome.stored.schedule == (BEST if kept else outcome.default)


def test_training_uses_what_was_stored_and_its_numbers_stay(
    device: Device, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tuner(device, config, monkeypatch, favours(BEST, 2))
    state = TrainState.initial(one.jobs[0])
    engine = GpuEngine(device)
    after = []
    for _ in range(2):
        model = engine.open_model(one.jobs[0], state)
        model.train(3)
        after.append((model.info.variant, model.to_cpu()))
        model.close()
        one.run()
    (before, plain), (variant, tuned_state) = after
    assert variant == dataclasses.asdict(BEST) != before
    assert tuned_state.logits.tobytes() == plain.logits.tobytes()


@pytest.mark.parametrize("groups", [1, 2])
def test_a_population_uses_what_was_tuned_for_its_groups(
    device: Device, config: Config, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    if groups > 1:
        most = Tuner(device, config, lambda _: None, population=2).plan.buffer_bytes()
        monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", max(most.values()))
    jobs = [make_job(each, Circuit.initial(each.model, each.seed)) for each in configs(config, 2 * groups)]
    states = [TrainState.initial(job) for job in jobs]
    engine, after = GpuEngine(device), []
    for population in (1, 2 * groups):
        tuner(device, config, monkeypatch, favours(BEST, 2), population).run()
        model = engine.open_population(jobs, states)
        assert isinstance(model, GpuGroups) == (groups > 1)
        model.train(2)
        after.append((model.info.variant, [state.logits.tobytes() for state in model.to_cpu_all()]))
        model.close()
    (alone, plain), (variant, tuned_logits) = after
    assert variant == dataclasses.asdict(BEST) != alone  # what was tuned for one model is not used for several
    assert tuned_logits == plain


def test_a_population_in_groups_is_said(device: Device, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    most = Tuner(device, config, lambda _: None, population=2).plan.buffer_bytes()
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", max(most.values()))
    one = Tuner(device, config, lambda _: None, population=3)
    assert tuning.sizes_of(one.plan, one.groups).endswith("2 model(s), the largest of 2 groups")


def test_a_memory_limit_goes_before_what_was_tuned(
    device: Device, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tuner(device, config, monkeypatch, favours(BEST, 2))
    one.run()
    least = dataclasses.replace(one.plan, schedule=one.plan.schedule.with_memory(False)).total_bytes()
    monkeypatch.setattr(device, "max_memory", least)
    model = GpuEngine(device).open_model(one.jobs[0], TrainState.initial(one.jobs[0]))
    assert model.info.variant == dataclasses.asdict(one.plan.schedule.with_memory(False))
    model.close()


def test_a_variant_that_computes_something_else_is_refused(
    device: Device, config: Config, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    one = tuner(device, config, monkeypatch, favours(BEST, 2))
    one._expected = [b"other"]
    with pytest.raises(DeviceError, match=r"gives other numbers than the default on .*: nothing was stored"):
        one.run()
    assert not cache.exists()


def test_an_adapter_that_disagrees_with_the_reference_is_not_tuned(
    device: Device, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tuner(device, config, monkeypatch, favours(BEST, 2))
    monkeypatch.setattr(tuning, "GRADIENT_TOLERANCE", -1.0)
    with pytest.raises(DeviceError, match="does not agree with the reference: nothing was tuned"):
        one.run()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": "other", "version": 1, "entries": {}}',
        '{"format": "difflogic-tuning", "version": 2, "entries": {}}',
    ],
)
def test_a_corrupt_or_foreign_cache_is_ignored_with_a_sentence(
    content: str, device: Device, config: Config, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(content)
    plan = Tuner(device, config, lambda _: None).plan
    assert tuned.lookup(device.adapter, device.limits, plan) is None
    assert f"difflogic: The file {cache} cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    "schedule",
    [
        {"wg": 9},
        {"wg": 9, "lanes": 2},
        {"wg": "8", "lanes": 8},
        {"lanes": 0, "wg": 8},
        {"lanes": True, "wg": True},
        {"lanes": 8, "wg": 8, "keep": 7},
        {"lanes": 1, "wg": 1024},  # sound, but for another device
    ],
)
def test_an_entry_that_is_no_schedule_is_ignored_with_a_sentence(
    schedule: dict[str, object], device: Device, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Tuner(device, config, lambda _: None).plan
    entry = {"adapter": device.adapter.name, "schedule": schedule, "default_ms": 1, "tuned_ms": 1}
    tuned.TUNING.write(tuned.key_of(device.adapter, plan), entry)
    assert tuned.lookup(device.adapter, device.limits, plan) is None
    assert f"difflogic: The entry of {device.adapter.name} in" in capsys.readouterr().err


def test_results_hold_for_one_adapter_driver_and_shape(device: Device, config: Config) -> None:
    plan = Tuner(device, config, lambda _: None).plan
    adapter = device.adapter
    others = [
        (dataclasses.replace(adapter, driver="another"), plan),
        (dataclasses.replace(adapter, name="another"), plan),
        (adapter, dataclasses.replace(plan, shape=dataclasses.replace(plan.shape, batch=99))),
        (adapter, dataclasses.replace(plan, probes=99)),
        (adapter, Tuner(device, config, lambda _: None, population=2).plan),
    ]
    keys = {tuned.key_of(*other) for other in [(adapter, plan), *others]}
    assert len(keys) == 6


def test_command(monkeypatch: pytest.MonkeyPatch, config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    from difflogic import presets

    monkeypatch.setattr(presets, "checkerboard", lambda small: config)
    monkeypatch.setattr(trust, "require", lambda adapter: None)
    monkeypatch.setattr(Tuner, "_time", lambda self, work, _: 0.5 if work.plan.schedule.lanes == 2 else 1.0)
    assert main(["tune", "--dry-run"]) == 0
    assert "would measure lanes  2: workgroups of 8, 16, 32" in capsys.readouterr().out
    assert main(["tune"]) == 0
    assert "times as fast as the default" in capsys.readouterr().out
    assert main(["tune", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"] == 0
    assert main(["tune", "--reset", "--dry-run"]) == 2
    assert "--reset forgets what was stored, and --dry-run changes nothing" in capsys.readouterr().err
    assert main(["tune", "--reset"]) == 0
    assert capsys.readouterr().out.startswith("Forgot 1 result(s) of ")
    assert main(["tune", "--reset", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["forgotten"] == 0
