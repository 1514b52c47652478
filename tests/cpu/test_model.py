"""Test properties of models on the processor; `tests/engines` tests what all engines share."""

import pytest

from difflogic.cpu.engine import CpuEngine
from difflogic.engine.job import Job
from tests.jobs import make_job, midway, start


@pytest.fixture(params=[1.0, 0.6], ids=["synchronous", "asynchronous"])
def job(request: pytest.FixtureRequest) -> Job:
    return make_job(fire_rate=request.param)


def test_nbytes_includes_logits_and_moments(engine: CpuEngine, job: Job) -> None:
    model = engine.open([job], [midway(job)])
    state = model.states()[0]
    assert model.nbytes > state.logits.nbytes + state.optimizer.mu.nbytes + state.optimizer.nu.nbytes
    assert model.nbytes < 10 << 20


def test_calls_are_short_enough_for_signals(engine: CpuEngine) -> None:
    model = engine.open([make_job()], [start(make_job())])
    assert model.epochs_per_call() == 1
    model.train(1)
    assert model.epochs_per_call() >= 1


def test_info_describes_processor_and_compiler(engine: CpuEngine) -> None:
    info = engine.open([make_job()], [start(make_job())]).info
    assert info == engine.info
    assert (info.engine, info.software, info.variant) == ("cpu", True, {"threads": 3})
    assert info.adapter
    assert info.driver.startswith("Numba ")
