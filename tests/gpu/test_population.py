"""Several models in one dispatch, wired and fed differently: each what it is alone, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from difflogic.gpu.device import Device
from difflogic.gpu.model import GpuModel
from difflogic.gpu.plan import Schedule
from difflogic.layout import flat_layout
from tests.gpu.jobs import assert_same, make_job, outcome, start, train_alone
from tests.gpu.rig import SCHEDULES

SEEDS = (23, 24, 25)
"""Their wirings need different amounts of scratch, the first not the most."""


@pytest.mark.parametrize("schedule", SCHEDULES[:3], ids=str)
@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_each_model_is_what_it_is_alone(device: Device, fire_rate: float, schedule: Schedule) -> None:
    jobs = [make_job(seed, fire_rate=fire_rate, batch=7) for seed in SEEDS]
    slots = [flat_layout(job.circuit).slot_count for job in jobs]
    assert slots[0] < max(slots)
    together = GpuModel.from_cpu(device, jobs, [start(job) for job in jobs], schedule)
    together.train(3)
    outcomes = [outcome(together, index, close=False) for index in range(len(jobs))]
    together.close()
    assert len({state.logits.tobytes() for state, _, _ in outcomes}) == len(jobs)
    for job, got in zip(jobs, outcomes, strict=True):
        assert_same(got, train_alone(device, job, start(job), 3, schedule=schedule))


def test_a_skipped_model_does_not_hold_the_others_back(device: Device) -> None:
    jobs = [make_job(seed) for seed in SEEDS]
    states = [start(job) for job in jobs]
    states[1] = replace(states[1], logits=np.where(np.arange(16) == 6, np.float32(np.nan), states[1].logits))
    together = GpuModel.from_cpu(device, jobs, states)
    together.train(2)
    assert [[row.skipped for row in together.drain(index)] for index in range(3)] == [
        [False] * 2,
        [True] * 2,
        [False] * 2,
    ]
    assert [together.to_cpu(index).skipped for index in range(3)] == [0, 2, 0]
    got = outcome(together, 2)
    state, _, evaluation = train_alone(device, jobs[2], states[2], 2)
    assert_same(got, (state, [], evaluation))
