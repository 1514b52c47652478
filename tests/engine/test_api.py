"""Test the records that engines exchange with their callers."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine.api import Evaluation
from difflogic.engine.job import OptimizerState, TrainState
from difflogic.errors import DataError
from tests.random_circuits import random_circuit
from tests.tasks import task_job


def test_accuracy_is_the_share_of_right_values() -> None:
    judged = Evaluation(hard_loss=25, train_hard_loss=0, values=100, wrong_probes=3)
    assert judged.accuracy == 0.75


def test_training_starts_with_the_notebooks_keys() -> None:
    job = task_job("damage", seed=23)
    state = TrainState.initial(job)
    assert state.data_key.tolist() == [0, 23]
    assert state.train_key.tolist() == prng.split(prng.key_from_seed(23))[0].tolist()
    assert (state.epoch, state.skipped, state.optimizer.step) == (0, 0, 0)
    np.testing.assert_array_equal(state.logits, job.circuit.flat_logits())
    assert state.pool is None


def test_the_data_chain_of_boards_splits_once_more() -> None:
    key = prng.split(prng.key_from_seed(23))[0].tolist()
    state = TrainState.initial(task_job("boards and a rule, torus", seed=23))
    assert (state.data_key.tolist(), state.train_key.tolist()) == (key, key)


@pytest.mark.parametrize("name", ["a pool", "a pool of noise, no resets", "a pool of boards"])
def test_pool_is_filled_with_new_initial_states(name: str) -> None:
    job = task_job(name)
    pool = TrainState.initial(job).pool
    assert pool is not None
    assert pool.shape == (job.config.pool.size, job.config.task.height, job.config.task.width, job.circuit.channels)
    assert set(pool.flat) == {0, 1}
    distinct = len(np.unique(pool, axis=0))
    assert distinct == 1 if job.start is not None else distinct > 1
    assert job.start is None or (pool == job.start).all()


def test_fresh_moments_are_zero_and_separate() -> None:
    circuit = random_circuit(np.random.default_rng(0))
    fresh = OptimizerState.fresh(circuit)
    assert fresh.mu.shape == fresh.nu.shape == (circuit.gates, 16)
    assert not np.shares_memory(fresh.mu, fresh.nu)
    assert not fresh.mu.any()
    assert not fresh.nu.any()
    assert fresh.step == 0


@pytest.mark.parametrize(
    ("name", "without", "words"),
    [
        ("damage", "probe_damage", "requires probe_damage"),
        ("damage", "target", "requires rule"),
        ("boards and a rule, torus", "rule", "requires rule"),
    ],
)
def test_job_needs_all_of_its_parts(name: str, without: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        replace(task_job(name), **{without: None})


def test_job_refuses_parts_that_its_configuration_lacks() -> None:
    job = task_job("damage")
    masks = np.ones((job.config.task.steps, 1, 1, 1), dtype=np.float32)
    with pytest.raises(DataError, match="must not have probe_masks"):
        replace(job, probe_masks=masks)
    with pytest.raises(DataError, match="whose targets depend on the initial states"):
        _ = task_job("boards and a rule, torus").fixed_target
