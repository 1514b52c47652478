"""Training on the device, of one model and of populations; what all engines share is in `tests/engines`."""

import copy
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflogic.engine.job import Job, TrainState
from difflogic.engine.population import SequentialModels
from difflogic.errors import DataError, LimitError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import HARDWARE, LaunchConfig
from difflogic.gpu.model import GpuModel
from difflogic.gpu.plan import HISTORY
from difflogic.gpu.planner import plan_for
from difflogic.model.layout import flat_layout
from tests.gpu.rig import PAIRED, RECOMPUTING, SAMPLE, on_device, train_alone
from tests.jobs import assert_same, assert_same_state, make_job, midway, outcomes, start
from tests.sampled import sampled
from tests.tasks import task_job


@pytest.fixture(params=[1.0, 0.6], ids=["synchronous", "asynchronous"])
def job(request: pytest.FixtureRequest) -> Job:
    return make_job(fire_rate=request.param)


def test_another_state_can_be_uploaded(device: GpuDevice, job: Job) -> None:
    model = on_device(device, [job], [midway(job)])
    model.train(2)
    model.upload([midway(job)])
    assert_same_state(model.states()[0], midway(job))
    model.close()


def test_metrics_come_once_in_order_through_the_ring(device: GpuDevice) -> None:
    """More epochs than the ring holds, from an epoch in its middle, in calls of every size."""
    job = make_job()
    state = replace(start(job), epoch=HISTORY - 5)
    model = on_device(device, [job], [state])
    rows = []
    for epochs in (1, 2, HISTORY, 3, 2 * HISTORY + 1):
        model.train(epochs)
        rows += model.fetch_metrics()[0]
    assert model.fetch_metrics()[0] == []
    assert [row.epoch for row in rows] == [*range(HISTORY - 4, HISTORY - 4 + len(rows))]
    assert len(rows) == 3 * HISTORY + 7
    model.close()
    one_by_one = on_device(device, [job], [state])
    for row in rows[:20]:
        one_by_one.train(1)
        assert one_by_one.fetch_metrics()[0] == [row]
    one_by_one.close()


def test_a_pool_is_part_of_the_state(device: GpuDevice) -> None:
    job = task_job("a pool")
    with pytest.raises(DataError, match="Expected a state with a sample pool"):
        on_device(device, [job], [replace(TrainState.initial(job), pool=None)])


SEEDS = (23, 24, 25)
"""Their wirings need different amounts of scratch, the first not the most."""


@pytest.mark.parametrize("launch", sampled((*SAMPLE[:2], LaunchConfig(16, 4), HARDWARE[0], PAIRED), SAMPLE), ids=str)
@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_each_model_is_what_it_is_alone(device: GpuDevice, fire_rate: float, launch: LaunchConfig) -> None:
    norm = {"clip_by": "norm", "clip": 1e-3} if fire_rate < 1 else {}
    jobs = [make_job(seed, fire_rate=fire_rate, batch=7, **norm) for seed in SEEDS]
    slots = [flat_layout(job.circuit).slot_count for job in jobs]
    assert slots[0] < max(slots)
    together = on_device(device, jobs, [start(job) for job in jobs], launch)
    together.train(3)
    found = outcomes(together)
    assert len({state.logits.tobytes() for state, _, _ in found}) == len(jobs)
    for job, got in zip(jobs, found, strict=True):
        assert_same(got, train_alone(device, job, start(job), 3, launch=launch))


@pytest.mark.parametrize("launch", sampled((*SAMPLE, *RECOMPUTING[:2], LaunchConfig(16, 4)), SAMPLE[:1]), ids=str)
def test_models_with_learned_wiring_are_what_they_are_alone(device: GpuDevice, launch: LaunchConfig) -> None:
    jobs = [make_job(seed, batch=7, fire_rate=0.6, model={"candidates": 4}) for seed in SEEDS[:2]]
    together = on_device(device, jobs, [start(job) for job in jobs], launch)
    together.train(3)
    for job, outcome in zip(jobs, outcomes(together), strict=True):
        assert_same(outcome, train_alone(device, job, start(job), 3))


def test_a_skipped_model_does_not_hold_the_others_back(device: GpuDevice) -> None:
    jobs = [make_job(seed) for seed in SEEDS]
    states = [start(job) for job in jobs]
    states[1] = replace(states[1], logits=np.where(np.arange(16) == 6, np.float32(np.nan), states[1].logits))
    together = on_device(device, jobs, states)
    together.train(2)
    skipped = [[row.skipped for row in rows] for rows in together.fetch_metrics()]
    assert skipped == [[False] * 2, [True] * 2, [False] * 2]
    assert [state.skipped for state in together.states()] == [0, 2, 0]
    got = outcomes(together)[2]
    state, _, evaluation = train_alone(device, jobs[2], states[2], 2)
    assert_same(got, (state, [], evaluation))


def test_all_are_judged_at_once(device: GpuDevice) -> None:
    jobs = [make_job(seed) for seed in SEEDS]
    model = on_device(device, jobs, [start(job) for job in jobs])
    model.train(2)
    before = model.device.downloaded["evaluation"]
    model.evaluate()
    assert model.device.downloaded["evaluation"] - before == model.workspace.buffers["counts"].size
    assert [[row.epoch for row in rows] for rows in model.fetch_metrics()] == [[1, 2]] * 3
    model.close()


def small(device: GpuDevice, binding: int) -> GpuDevice:
    smaller = copy.copy(device)
    smaller.limits = device.limits | {"max-storage-buffer-binding-size": binding}
    return smaller


@pytest.fixture
def as_software(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card would take a schedule that needs less, before it takes fewer models."""
    monkeypatch.setattr(device, "adapter", replace(device.adapter, type="CPU"))


@pytest.mark.usefixtures("as_software")
@pytest.mark.parametrize(("groups", "models"), [(1, [6]), (2, [3, 3]), (3, [2, 2, 2]), (6, [1] * 6)])
def test_one_plan_bounds_every_group(device: GpuDevice, groups: int, models: list[int]) -> None:
    """The first models need the least scratch memory: a group of others must fit as well."""
    jobs = [make_job(seed) for seed in range(6)]
    limit = max(replace(plan_for(device, jobs), model_groups=groups).buffer_bytes().values())
    plan = plan_for(small(device, limit), jobs)
    parts = [part for _, part in plan.parts()]
    assert [part.models for part in parts] == models
    assert all(size <= limit for part in parts for size in part.buffer_bytes().values())
    assert max(part.total_bytes() for part in parts) <= plan.total_bytes()


def test_nothing_is_said_where_none_fits(device: GpuDevice) -> None:
    with pytest.raises(LimitError) as caught:
        plan_for(small(device, 1000), [make_job(seed) for seed in SEEDS])
    assert "requested models fit" not in str(caught.value)


def test_memory_that_runs_out_names_what_each_model_needs(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "counts")
    jobs = [make_job(seed) for seed in SEEDS]
    with pytest.raises(LimitError, match=r"The 3 models of this population need \d\.\d MB in all, \d\.\d MB each"):
        GpuEngine(device).open(jobs, [start(job) for job in jobs])
    with pytest.raises(LimitError, match=r"The device could not give 'counts'\.$"):
        GpuEngine(device).open(jobs[:1], [start(jobs[0])])


def test_memory_that_runs_out_is_saved_and_said(device: GpuDevice, monkeypatch, capsys) -> None:
    job = make_job()
    expected = train_alone(device, job, start(job), 2)
    refuse(monkeypatch, "kept")
    model = GpuEngine(device).open([job], [start(job)])
    assert isinstance(model, GpuModel)
    assert model.plan.launch.memory == (False, 1)
    line = r"difflogic: .* has less than \d\.\d MB free: training stores all states, which takes \d\.\d MB, and .*\.\n"
    assert re.fullmatch(line, capsys.readouterr().err)
    model.train(2)
    (got,) = outcomes(model)
    assert_same(got, expected)


def refuse(monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    """Let memory run out when the buffer of a name is asked for."""
    buffer = GpuDevice.buffer

    def allocate(device: GpuDevice, name: str, size: int, uniform: bool = False) -> Any:
        if name == refused:
            raise LimitError(f"The device could not give '{name}'.")
        return buffer(device, name, size, uniform)

    monkeypatch.setattr(GpuDevice, "buffer", allocate)


@pytest.mark.usefixtures("as_software")
def test_a_population_past_one_binding_trains_in_groups(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [make_job(seed) for seed in (*SEEDS, 26, 27)]
    states = [start(job) for job in jobs]
    most = plan_for(device, jobs[:2]).buffer_bytes()
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", max(most.values()))
    together = GpuEngine(device).open(jobs, states)
    assert isinstance(together, SequentialModels)
    assert [group.plan.models for group in together.models] == [1, 2, 2]
    together.train(2)
    metrics, evaluations, after = together.fetch_metrics(), together.evaluate(), together.states()
    together.close()
    for job, state, *got in zip(jobs, states, after, metrics, evaluations, strict=True):
        assert_same(tuple(got), train_alone(device, job, state, 2))


def test_a_memory_limit_is_not_evaded_by_groups(device: GpuDevice) -> None:
    jobs = [make_job(seed) for seed in SEEDS]
    two = plan_for(device, jobs[:2])
    least = replace(two, launch=two.launch.with_memory(False)).total_bytes()
    with pytest.raises(LimitError, match=r"Only 2 of the 3 requested models fit: set `population` to 2\."):
        GpuEngine(device).open(jobs, [start(job) for job in jobs], least)


@pytest.mark.usefixtures("as_software")
def test_groups_share_a_memory_limit(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [make_job(seed) for seed in (*SEEDS, 26, 27)]
    states = [start(job) for job in jobs]
    two = plan_for(device, jobs[:2])
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", max(two.buffer_bytes().values()))
    least = 3 * two.total_bytes()  # recomputing needs larger buffers here than may be bound
    together = GpuEngine(device).open(jobs, states, least)
    assert isinstance(together, SequentialModels)
    assert [group.plan.models for group in together.models] == [1, 2, 2]
    assert sum(group.plan.total_bytes() for group in together.models) <= least
    together.close()
    with pytest.raises(LimitError, match=r"needs [\d.]+ MB in 3 groups of models, but .* set `population` to 2"):
        GpuEngine(device).open(jobs, states, two.total_bytes())


def test_a_population_past_the_memory_of_the_machine(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    if not device.adapter.software:
        pytest.skip("a card has a memory of its own")
    jobs = [make_job(seed) for seed in SEEDS]
    needed = plan_for(device, jobs).total_bytes()
    monkeypatch.setattr("difflogic.gpu.planner.physical_memory", lambda: needed - 1)
    with pytest.raises(LimitError, match=r"of 3 needs .* GB on .*: a `population` of at most 2 fits\."):
        GpuEngine(device).open(jobs, [start(job) for job in jobs])


def test_models_at_different_epochs_are_refused(device: GpuDevice) -> None:
    jobs = [make_job(seed) for seed in SEEDS]
    states = [replace(start(job), epoch=epoch) for job, epoch in zip(jobs, (4, 4, 7), strict=True)]
    with pytest.raises(DataError, match=r"at the same epoch, got epochs \[4, 7\]"):
        on_device(device, jobs, states)
