"""Threads share out the work, and the result does not tell how many there were."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.cpu import threads
from difflogic.cpu.engine import CpuEngine
from difflogic.engine import Job, TrainState
from tests.experiments import checkerboard_target
from tests.gpu.jobs import assert_same, make_job, start


def checkerboard() -> Job:
    config = presets.checkerboard()
    circuit = Circuit.initial(config.model, config.seed, config.train.initial_logit)
    return Job(config, circuit, checkerboard_target(16, 16), np.ones((3, 16, 16, 8), dtype=np.uint8))


def test_the_papers_checkerboard_by_one_two_and_three_threads() -> None:
    job = checkerboard()
    outcomes = []
    for count in (1, 2, 3):
        model = CpuEngine(count).open_model(job, TrainState.initial(job))
        model.train(3)
        outcomes.append((model.to_cpu(), model.drain(), model.evaluate()))
    assert_same(outcomes[0], outcomes[1])
    assert_same(outcomes[0], outcomes[2])


def test_two_models_at_the_same_time(engine: CpuEngine) -> None:
    """As in a server: each from a Python thread of its own."""
    jobs = [make_job(seed=seed) for seed in (1, 2)]
    alone = []
    for job in jobs:
        model = engine.open_model(job, start(job))
        model.train(40)
        alone.append((model.to_cpu(), model.drain(), model.evaluate()))
    models = [engine.open_model(job, start(job)) for job in jobs]
    workers = [threading.Thread(target=model.train, args=(40,)) for model in models]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for model, expected in zip(models, alone, strict=True):
        assert_same((model.to_cpu(), model.drain(), model.evaluate()), expected)


def test_the_work_is_done_where_the_system_refuses_threads(engine: CpuEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job()
    model = engine.open_model(job, start(job))
    model.train(4)
    expected = model.to_cpu(), model.drain(), model.evaluate()

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads.threading.Thread, "start", refuse)
    model = engine.open_model(job, start(job))
    model.train(4)
    assert_same((model.to_cpu(), model.drain(), model.evaluate()), expected)


def test_numbas_own_setting_counts() -> None:
    program = "from difflogic.cpu.engine import CpuEngine; print(CpuEngine().threads)"
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


MEMORY = """
from pathlib import Path
from tests.cpu.test_threads import checkerboard
from difflogic.cpu.engine import CpuEngine
from difflogic.engine import TrainState
job = checkerboard()
model = CpuEngine(2).open_model(job, TrainState.initial(job))
model.train(2)
model.evaluate()
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_the_checkerboard_takes_less_than_300_megabytes(engine: CpuEngine) -> None:
    """The whole process, with Python, Numba and the tests' own imports."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[1]) < 300 * 1024  # kB; getrusage would count the parent's memory too
