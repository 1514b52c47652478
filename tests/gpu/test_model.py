"""Training on the device; what all engines share is in `tests/engines`."""

from dataclasses import replace

import pytest

from difflogic.engine.job import Job, TrainState
from difflogic.errors import DataError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.plan import HISTORY
from tests.gpu.rig import on_device
from tests.jobs import assert_same_state, make_job, midway, start
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
