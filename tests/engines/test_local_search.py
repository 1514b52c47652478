"""Local search over the hard circuit, compared with its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.config.model import ModelConfig
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.config.train import TrainConfig
from difflogic.cpu.local_search import CpuLocalSearch
from difflogic.engine import job as tasks
from difflogic.engine import search
from difflogic.engine.job import Job
from difflogic.engine.search import LocalSearch
from difflogic.model.circuit import Circuit
from difflogic.reference.local_search import ReferenceLocalSearch
from tests.jobs import random_network
from tests.random_circuits import circuits
from tests.sampled import sampled
from tests.tasks import task_job

ROUNDS = 3
CASES = dict.fromkeys(("boards and a rule, torus", "a seed", "a picture to a picture"), 1.0)
CASES |= dict.fromkeys(("noise and a rule", "nothing", "several losses"), 0.6)


def job_of(circuit: Circuit, height: int, width: int) -> Job:
    """A board of any size for any circuit."""
    perceive = random_network(9, *(layer.shape[1] for layer in circuit.perceive))
    inputs = circuit.channels * (1 + circuit.kernels * circuit.perceive[-1].shape[1])
    update = random_network(inputs, *(layer.shape[0] for layer in circuit.update))
    model = ModelConfig(circuit.channels, circuit.kernels, perceive, update, circuit.periodic)
    task = TaskConfig(target="checkerboard", height=height, width=width, steps=2)
    return tasks.make_job(Config("any", model, task, TrainConfig(epochs=1, batch=1, probes=2)), circuit)


def searched(
    local_search: LocalSearch, job: Job, gates: np.ndarray, epochs: int = 1, guided: bool = True
) -> tuple[list[int], list[int]]:
    gates, costs = gates.copy(), search.fresh_costs(job.config, len(job.probes))
    for epoch in range(1, epochs + 1):
        guide = search.promising(gates, local_search.slopes(gates, costs)) if guided else search.NO_GUIDE
        local_search.search(gates, costs, search.draw(job.config.seed, epoch, ROUNDS), epoch % 2 == 1, guide)
    return gates.tolist(), costs.ravel().tolist()


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("name", sampled(CASES, {"noise and a rule"}))
def test_both_find_the_same(name: str, guided: bool) -> None:
    job = task_job(name, fire_rate=CASES[name], probes=2)
    gates = np.random.default_rng(3).integers(0, 16, job.circuit.gates)
    ours, reference = CpuLocalSearch(job), ReferenceLocalSearch(job)
    np.testing.assert_array_equal(ours.wrong(gates), reference.wrong(gates))
    shape = search.fresh_costs(job.config, len(job.probes)).shape
    costs = np.random.default_rng(4).integers(1, 9, shape).astype(np.uint32)
    np.testing.assert_array_equal(ours.slopes(gates, costs), reference.slopes(gates, costs))
    found = searched(ours, job, gates, 2, guided)
    assert found == searched(reference, job, gates, 2, guided)
    assert found[0] != gates.tolist()
    # Costs may rise after the first of two epochs, unless that mended much.
    once = np.array(searched(reference, job, gates, 1, guided)[0])
    assert max(found[1]) == 1 + search.stuck(int(reference.wrong(gates).sum()), int(reference.wrong(once).sum()))


@settings(max_examples=15)
@given(circuits(), st.integers(3, 6), st.integers(3, 6), st.randoms(use_true_random=False))
@pytest.mark.exhaustive
def test_both_find_the_same_of_any_circuit(circuit: Circuit, height: int, width: int, random: object) -> None:
    job = job_of(circuit, height, width)
    gates = circuit.flat_logits().argmax(axis=1)
    assert searched(CpuLocalSearch(job), job, gates) == searched(ReferenceLocalSearch(job), job, gates)


def test_no_round_makes_it_worse_and_a_small_task_is_solved() -> None:
    """One cell's neighbours are to become an image in one step, by a circuit that passes A on."""
    job = task_job("a seed", probes=1, batch=1)
    local_search, counts = CpuLocalSearch(job), []
    gates = job.circuit.flat_logits().argmax(axis=1)
    costs = search.fresh_costs(job.config, 1)
    for epoch in range(1, 41):
        counts.append(int(local_search.wrong(gates).sum()))
        local_search.search(gates, costs, search.draw(1, epoch, 8), rises=False)
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]
