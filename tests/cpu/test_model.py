"""What a training run on the processor has of its own; what all engines share is in `tests/engines`."""

from __future__ import annotations

import pytest

from difflogic.cpu.engine import CpuEngine
from difflogic.engine.job import Job
from tests.engines.training import train
from tests.jobs import assert_same, make_job, midway, start


@pytest.fixture(params=[1.0, 0.6], ids=["synchronous", "asynchronous"])
def job(request: pytest.FixtureRequest) -> Job:
    return make_job(fire_rate=request.param)


def test_a_model_weighs_at_least_what_it_trains(engine: CpuEngine, job: Job) -> None:
    model = engine.open([job], [midway(job)])
    state = model.states()[0]
    assert model.nbytes > state.logits.nbytes + state.optimizer.mu.nbytes + state.optimizer.nu.nbytes
    assert model.nbytes < 10 << 20


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_no_bit(engine: CpuEngine, job: Job, threads: int) -> None:
    """However many share a step, and whoever of them does what."""
    expected = train(engine, job, start(job), 30)
    assert_same(train(CpuEngine(threads), job, start(job), 30), expected)


def test_threads_change_no_bit_where_tiles_share_a_block(engine: CpuEngine) -> None:
    job = make_job(batch=3, grid=(27, 27), steps=2, probes=1)
    expected = train(engine, job, start(job), 3)
    assert_same(train(CpuEngine(1), job, start(job), 3), expected)


def test_calls_are_short_enough_for_signals(engine: CpuEngine) -> None:
    model = engine.open([make_job()], [start(make_job())])
    assert model.epochs_per_call() == 1
    model.train(1)
    assert model.epochs_per_call() >= 1


def test_what_ran(engine: CpuEngine) -> None:
    info = engine.open([make_job()], [start(make_job())]).info
    assert info == engine.info
    assert (info.engine, info.software, info.variant) == ("cpu", True, {"threads": 3})
    assert info.adapter
    assert info.driver.startswith("Numba ")
