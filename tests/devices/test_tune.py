"""Tuning: what is timed was verified, only a clear win is kept, and a second run measures nothing."""

import copy
import dataclasses
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from difflogic.cli.main import main
from difflogic.config.schema import Config
from difflogic.devices import selftest, tune
from difflogic.devices.selftest import example
from difflogic.devices.tune import SweepProgress, Tuner
from difflogic.engine.job import TrainState, make_job
from difflogic.engine.population import SequentialModels, configs
from difflogic.errors import DeviceError
from difflogic.gpu import tuning_cache
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.submit import Dispatch
from difflogic.gpu.workspace import Workspace
from difflogic.model.circuit import Circuit
from tests.random_circuits import random_circuit
from tests.train.tiny import quick_config

Speed = Callable[[LaunchConfig, str], float]


@pytest.fixture(scope="module")
def device() -> GpuDevice:
    return GpuDevice(select_adapter())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tune, "example", lambda: (without_trees(), *example()[1:]))
    monkeypatch.setattr(tune, "LANES", (2, 8))
    monkeypatch.setattr(tune, "WORKGROUP_SIZES", (8, 16, 32))
    return tuning_cache.TUNING.path


def without_trees() -> Circuit:
    """Return the example's shape with a perception whose kernels compile faster, since each schedule compiles them."""
    return random_circuit(np.random.default_rng(0), channels=2, kernels=3)


@pytest.fixture
def config() -> Config:
    return quick_config()


Make = Callable[..., Tuner]


@pytest.fixture
def tuner(device: GpuDevice, config: Config, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a tuner whose clock says what a schedule's kernels should take."""

    def make(speed: Speed, population: int = 1) -> Tuner:
        def timed(self: Tuner, work: Workspace, dispatches: list[Dispatch]) -> float:
            return sum(speed(work.plan.launch, dispatch.kernel) for dispatch in dispatches)

        monkeypatch.setattr(Tuner, "_time", timed)
        return Tuner(device, config, population=population)

    return make


def favours(best: LaunchConfig, gain: float) -> Speed:
    """Each fused kernel is faster by `gain` under the best lanes and its best workgroup size there."""

    def speed(launch: LaunchConfig, kernel: str) -> float:
        right = launch.chunks_per_workgroup == best.chunks_per_workgroup and launch.workgroup_size_of(
            kernel
        ) == best.workgroup_size_of(kernel)
        return 1.0 / gain if right else 1.0

    return speed


BEST = LaunchConfig(16, 2, forward_workgroup_size=8, hard_workgroup_size=32)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("gain", "kept"), [(1.03, False), (1.2, True)])
def test_only_a_clear_win_is_kept(tuner: Make, gain: float, kept: bool) -> None:
    outcome = tuner(favours(BEST, gain)).run()
    assert outcome.stored is not None
    assert outcome.stored.launch == (BEST if kept else outcome.default)
    assert outcome.measured == 3 + 3


@pytest.mark.exhaustive
def test_training_uses_what_was_stored_and_its_numbers_stay(tuner: Make, device: GpuDevice) -> None:
    one = tuner(favours(BEST, 2))
    state = TrainState.initial(one.jobs[0])
    engine = GpuEngine(device)
    after = []
    for _ in range(2):
        model = engine.open([one.jobs[0]], [state])
        model.train(3)
        after.append((model.info.variant, model.states()[0]))
        model.close()
        one.run()
    (before, plain), (variant, tuned_state) = after
    assert variant == BEST.written() != before
    assert tuned_state.logits.tobytes() == plain.logits.tobytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("groups", [1, 2])
def test_a_population_uses_what_was_tuned_for_its_groups(
    tuner: Make, device: GpuDevice, config: Config, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    if groups > 1:
        most = Tuner(device, config, population=2).plan.buffer_bytes()
        monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", max(most.values()))
    jobs = [make_job(each, Circuit.initial(each.model, each.seed)) for each in configs(config, 2 * groups)]
    states = [TrainState.initial(job) for job in jobs]
    engine, after = GpuEngine(device), []
    for population in (1, 2 * groups):
        tuner(favours(BEST, 2), population).run()
        model = engine.open(jobs, states)
        assert isinstance(model, SequentialModels) == (groups > 1)
        model.train(2)
        after.append((model.info.variant, [state.logits.tobytes() for state in model.states()]))
        model.close()
    (alone, plain), (variant, tuned_logits) = after
    assert variant == BEST.written() != alone  # what was tuned for one model is not used for several
    assert tuned_logits == plain


def test_a_population_in_groups_is_said(device: GpuDevice, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    most = Tuner(device, config, population=2).plan.buffer_bytes()
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", max(most.values()))
    one = Tuner(device, config, population=3)
    assert tune.sizes_of(one.plan, one.groups).endswith("2 models, the largest of 2 groups")


@pytest.mark.exhaustive
def test_a_memory_limit_goes_before_what_was_tuned(tuner: Make, device: GpuDevice) -> None:
    one = tuner(favours(BEST, 2))
    one.run()
    least = dataclasses.replace(one.plan, launch=one.plan.launch.with_memory(False)).total_bytes()
    model = GpuEngine(device).open([one.jobs[0]], [TrainState.initial(one.jobs[0])], least)
    assert model.info.variant == one.plan.launch.with_memory(False).written()
    model.close()


def test_a_variant_that_computes_something_else_is_refused(tuner: Make, cache: Path) -> None:
    one = tuner(favours(BEST, 2))
    one.measured.add(LaunchConfig(8, 2), dict.fromkeys(tune.FUSED, 1.0))
    one._expected = [b"other"]
    with pytest.raises(DeviceError, match=r"and the default give different results on .*: nothing was stored"):
        one.run()
    assert not cache.exists()
    assert tuning_cache.MEASURED.read() == {}


def test_an_adapter_that_disagrees_with_the_reference_is_not_tuned(tuner: Make, monkeypatch) -> None:
    one = tuner(favours(BEST, 2))
    monkeypatch.setattr(tune, "GRADIENT_TOLERANCE", -1.0)
    with pytest.raises(DeviceError, match="does not agree with the reference: nothing was tuned"):
        one.run()


@pytest.mark.exhaustive
def test_command(monkeypatch: pytest.MonkeyPatch, config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    from difflogic.config import presets

    stopping = True

    def time(self: Tuner, work: Workspace, _: list[Dispatch]) -> float:
        if stopping and len(self.measured.seconds) == 2:
            raise KeyboardInterrupt
        return 0.5 if work.plan.launch.chunks_per_workgroup == 2 else 1.0

    monkeypatch.setattr(presets, "checkerboard", lambda small: config)
    monkeypatch.setattr(selftest, "require", lambda adapter: None)
    monkeypatch.setattr(Tuner, "_time", time)
    with monkeypatch.context() as terminal:
        terminal.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        assert main(["tune"]) == 130
    out = capsys.readouterr().out
    assert "At most 6 variants; compiling each" in out
    assert "Stopped: 2 variants saved; tune again to continue." in out
    stopping = False
    assert main(["tune"]) == 0
    out = capsys.readouterr().out
    assert "At most 6 variants, 2 of them measured before" in out
    assert "This is a software adapter: tuning is not worthwhile" in out
    assert re.search(r"ms \(\d of at most 6, about ", out)
    assert re.search(r"as the default: workgroups of gate_forward \d+, .* invocations, chunks per workgroup: 2 \(", out)
    assert len(re.findall(r"^\d+ +[28]( +\d+\.00){3}$", out, re.MULTILINE)) == 6
    assert main(["tune", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["measured"] == 0
    assert [set(each["seconds"]) for each in told["variants"]] == [set(tune.FUSED)] * 6
    tuning_cache.MEASURED.write("another", {"adapter": select_adapter().name, "variants": []})
    assert main(["tune", "--reset"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Deleted 1 result of ")
    assert ", and 1 unfinished sweep." in out
    assert main(["tune", "--reset", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"adapter": select_adapter().name, "forgotten": 0, "cut_off": 0}


@pytest.mark.exhaustive
def test_a_sweep_that_is_cut_off_goes_on_where_it_was(tuner: Make, device: GpuDevice) -> None:
    def stopping(launch: LaunchConfig, kernel: str) -> float:
        if len(tuning_cache.Measured(device.adapter, stopped.plan).seconds) == 4:
            raise KeyboardInterrupt
        return favours(BEST, 2)(launch, kernel)

    stopped = tuner(stopping)
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    assert tuning_cache.lookup(device.adapter, device.limits, stopped.plan) is None
    timed: set[LaunchConfig] = set()

    def watched(launch: LaunchConfig, kernel: str) -> float:
        timed.add(launch)
        return favours(BEST, 2)(launch, kernel)

    again = tuner(watched)
    before = set(again.measured.seconds)
    assert len(before) == 4
    outcome = again.run()
    assert len(timed) == (6 - 4) + 2  # the others, then the default and the best in turns
    assert outcome.measured == 6
    assert outcome.stored is not None
    assert outcome.stored.launch == BEST
    assert len(tuning_cache.Measured(device.adapter, again.plan).seconds) == 6


@pytest.mark.exhaustive
def test_what_is_known_to_be_slower_is_not_measured(tuner: Make, config: Config, monkeypatch) -> None:
    monkeypatch.setattr(tune, "LANES", (1, 2, 4, 8))
    seen: list[SweepProgress] = []
    calls: list[LaunchConfig] = []

    def speed(launch: LaunchConfig, kernel: str) -> float:
        calls.append(launch)
        return float(launch.workgroup_size * launch.chunks_per_workgroup)

    one = tuner(speed)
    one._report = lambda text, progress: seen.extend([progress] if progress else [])
    assert [[len(sweep) for sweep in family] for family in one.families] == [[1], [3, 3, 3, 2]]
    one.run()
    swept = list(
        dict.fromkeys(
            (each.chunks_per_workgroup, each.workgroup_size) for each in calls if each.forward_workgroup_size == 0
        )
    )
    # Of each lanes one size too many, and lanes 4 not at all.
    assert swept == [(8, 8), (1, 8), (1, 16), (2, 8), (2, 16)]
    rounds = [calls.count(LaunchConfig(wg, 1)) for wg in (8, 16)]
    steps = config.task.steps
    assert rounds == [3 * (1 + 4 * steps), 3 * (1 + steps)]  # one round for what is clearly slower
    assert [(each.done, each.total) for each in seen] == [(0, 12), (1, 12), (2, 12), (3, 12), (4, 11), (5, 11)]
    assert seen[-1].seconds_left > 0


def test_lanes_that_would_be_empty_are_no_variants(device: GpuDevice, config: Config, monkeypatch) -> None:
    monkeypatch.setattr(tune, "LANES", (1, 4, 8, 16))
    plan = Tuner(device, config).plan
    chunks = -(-config.train.batch * config.task.height * config.task.width // 16)
    assert 4 < chunks <= 8
    lanes = {sweep[0].chunks_per_workgroup for family in tune.families(device, plan) for sweep in family}
    assert lanes == {1, 4, 8}
    wide = dataclasses.replace(plan, launch=LaunchConfig(16, 16))
    measured_wide = [each for family in tune.families(device, wide) for sweep in family for each in sweep]
    assert [each for each in measured_wide if each.chunks_per_workgroup == 16] == [LaunchConfig(16, 16)]


@pytest.mark.parametrize(("kind", "limit", "sizes"), [
    ("DiscreteGPU", 128, {64, 128}),
    ("DiscreteGPU", 64, {64}),
    ("CPU", 128, {32}),
])  # fmt: skip
def test_workgroups_past_what_an_adapter_runs_well_are_no_variants(
    device: GpuDevice, config: Config, monkeypatch: pytest.MonkeyPatch, kind: str, limit: int, sizes: set[int]
) -> None:
    plan = Tuner(device, config).plan
    monkeypatch.setattr(tune, "WORKGROUP_SIZES", (32, 64, 128))
    other = copy.copy(device)
    other.adapter = dataclasses.replace(device.adapter, type=kind)
    other.limits = device.limits | {"max-compute-invocations-per-workgroup": limit}
    families = tune.families(other, plan)
    assert {launch.workgroup_size for family in families for sweep in family for launch in sweep} == sizes


def test_what_needs_more_memory_than_training_takes_is_no_variant(
    device: GpuDevice, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Tuner(device, config)
    narrow = dataclasses.replace(one.plan, launch=LaunchConfig(8, 2))
    assert narrow.total_bytes() < one.plan.total_bytes()
    narrow = dataclasses.replace(narrow, keep_bytes=narrow.total_bytes())
    families = tune.families(device, narrow)
    assert {sweep[0].chunks_per_workgroup for family in families for sweep in family} == {2}


def test_the_default_is_not_measured_against_itself() -> None:
    default = LaunchConfig(8, 8)
    assert LaunchConfig(8, 8, forward_workgroup_size=8, hard_workgroup_size=8).runs_as(default)
    assert not LaunchConfig(8, 8, forward_workgroup_size=16).runs_as(default)
    assert not LaunchConfig(8, 4).runs_as(default)
    assert not LaunchConfig(8, 8, store_activations=False).runs_as(default)
