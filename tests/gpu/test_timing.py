"""Timestamps around kernels, and what bounds a device."""

import copy
import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from difflogic.errors import LimitError
from difflogic.gpu import timing
from difflogic.gpu.adapter import TIMESTAMPS, Adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.timing import MOST_QUERIES, Timer, measure_rates
from tests.gpu.rig import on_device
from tests.jobs import make_job, start
from tests.sampled import sampled


@pytest.fixture(scope="module", params=sampled(["timestamps", "host clock"], ["timestamps"]))
def timed(request: pytest.FixtureRequest, adapter: Adapter) -> GpuDevice:
    return GpuDevice(adapter if request.param == "timestamps" else replace(adapter, features=()))


@pytest.mark.parametrize("repeat", [1, 3, 10**6])
def test_every_kernel_is_timed(timed: GpuDevice, repeat: int) -> None:
    job = make_job(0, steps=3)
    model = on_device(timed, [job], [start(job)])
    timer = Timer(timed, model.train_step, repeat)
    times = timer.measure()
    assert times.counts == Counter(dispatch.kernel for dispatch in model.train_step)
    assert set(times.kernels) == set(times.counts)
    assert all(seconds >= 0 for seconds in times.kernels.values())
    assert times.wall == times.encode + times.submit + times.wait
    assert times.timestamps == (TIMESTAMPS in timed.adapter.features)
    assert (times.gaps > 0, times.round_trip > 0) == (times.timestamps, times.timestamps)
    # A software device works in the submitting call too, before the wait begins.
    assert times.gaps <= times.submit + times.wait
    # without timestamps each step is done twice: whole, and kernel by kernel
    kernels = len(times.kernels)
    steps = min(repeat, MOST_QUERIES // (2 * kernels)) + (0 if times.timestamps else 1)
    assert model.states()[0].epoch == steps
    timer.close()
    model.close()


def test_rates_with_either_clock(timed: GpuDevice) -> None:
    rates = measure_rates(timed)
    assert rates.copy_bytes_per_s >= rates.median_copy_bytes_per_s > 0
    assert rates.round_trip_s > 0
    assert rates.dispatch_s >= 0
    assert rates.open_s > 0


def test_rates_do_not_depend_on_host_clock_if_device_has_one(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(timing, "COPY_BYTES", {True: 1 << 20})
    rates = measure_rates(GpuDevice(adapter))
    assert rates.dispatch_s > 0
    assert math.isfinite(rates.copy_bytes_per_s)


def test_copy_buffers_shrink_to_the_memory_that_is_there(timed: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce(name: str, size: int) -> Any:
        if size > 20 << 20:
            raise LimitError("no memory")
        return create(name, size)

    create = timed.buffer
    monkeypatch.setattr(timed, "buffer", scarce)
    buffers = timing._copy_buffers(timed)
    assert [each.size for each in buffers] == [16 << 20] * 2
    for buffer in buffers:
        buffer.destroy()


def test_wake_repeats_work_until_the_clock_of_a_card_is_up(timed: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    card, seconds = copy.copy(timed), itertools.count(step=0.2)
    card.adapter = replace(timed.adapter, type="DiscreteGPU")
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(seconds))
    calls: list[str] = []
    timing.wake(card, lambda: calls.append("card"))
    timing.wake(timed, lambda: calls.append("software"))
    assert calls == ["card"] * 2
