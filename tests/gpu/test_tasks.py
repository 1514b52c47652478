"""Every kind of task under every schedule and memory plan, and in populations: the same bits."""

import pytest

from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import SOFTWARE, LaunchConfig
from tests.gpu.rig import PAIRED, on_device, train_alone
from tests.jobs import Outcome, assert_same, outcomes, start
from tests.sampled import sampled
from tests.tasks import TASKS, task_job

LAUNCHES = [
    PAIRED,
    SOFTWARE[0].with_memory(store_activations=False),
    SOFTWARE[0].with_memory(store_activations=False, checkpoint_every=2),
    SOFTWARE[1].with_memory(store_activations=False, checkpoint_every=3),
]

MIXED = (
    "boards and a rule, torus", "a loss just before the damage", "every fault, damage and hardened gates",
    "everything", "everything but a pool", "masked samples, damaged, on a torus",
)  # fmt: skip
"""Tasks that have all kinds of events between them. A software adapter compiles the kernels of each schedule for each
kind of task."""


@pytest.mark.parametrize("name", sampled(TASKS, MIXED[:2]))
def test_no_schedule_changes_a_bit(device: GpuDevice, name: str) -> None:
    """Nor does running steps again from states further apart, damage and all."""
    expected = train(device, name, SOFTWARE[0])
    for launch in LAUNCHES:
        if launch.checkpoint_every <= task_job(name).config.task.steps:
            assert_same(train(device, name, launch), expected)


def train(device: GpuDevice, name: str, launch: LaunchConfig) -> Outcome:
    job = task_job(name)
    return train_alone(device, job, start(job), 2, launch=launch)


@pytest.mark.parametrize("name", sampled(TASKS, [*TASKS][::4]))
def test_each_member_of_a_population_is_what_it_is_alone(device: GpuDevice, name: str) -> None:
    jobs = [task_job(name, seed) for seed in (31, 32, 33)]
    together = on_device(device, jobs, [start(job) for job in jobs])
    together.train(3)
    found = outcomes(together)
    assert len({state.logits.tobytes() for state, _, _ in found}) == len(jobs)
    for job, got in zip(jobs, found, strict=True):
        assert_same(got, train_alone(device, job, start(job), 3))
