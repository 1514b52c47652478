"""Models on the processor: their threads, memory and calls; `tests/engines` tests what all engines share."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.cpu.codegen import atomics, compiled, threads
from difflogic.cpu.engine import CpuEngine
from difflogic.engine.job import Job, TrainState
from difflogic.model.circuit import Circuit
from tests.experiments import checkerboard_target
from tests.jobs import assert_same, make_job, midway, start, train


def checkerboard() -> Job:
    config = presets.checkerboard()
    circuit = Circuit.initial(config.model, config.seed, config.initial)
    return Job(config, circuit, checkerboard_target(16, 16), np.ones((3, 16, 16, 8), dtype=np.uint8))


def at_the_start(job: Job) -> tuple[Job, TrainState]:
    return job, start(job)


@pytest.mark.parametrize(
    ("given", "epochs"),
    [
        ((checkerboard(), TrainState.initial(checkerboard())), 3),
        (at_the_start(make_job()), 30),
        (at_the_start(make_job(fire_rate=0.6)), 30),
        (at_the_start(make_job(batch=40, clip_by="norm", clip=1e-3)), 20),
        (at_the_start(make_job(batch=3, grid=(27, 27), steps=2, probes=1)), 3),
    ],
    ids=["the paper's checkerboard", "synchronous", "asynchronous", "a norm", "tiles that share a block"],
)
def test_threads_change_no_bit(given: tuple[Job, TrainState], epochs: int) -> None:
    one, *others = (train(CpuEngine(count), *given, epochs) for count in (1, 2, 3, 8))
    for other in others:
        assert_same(one, other)


def test_two_models_train_at_the_same_time(engine: CpuEngine) -> None:
    jobs = [make_job(seed=seed) for seed in (1, 2)]
    alone = [train(engine, job, start(job), 40) for job in jobs]
    models = [engine.open([job], [start(job)]) for job in jobs]
    workers = [threading.Thread(target=model.train, args=(40,)) for model in models]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for model, expected in zip(models, alone, strict=True):
        assert_same((model.states()[0], model.fetch_metrics()[0], model.evaluate()[0]), expected)


def test_work_is_done_if_the_system_refuses_threads(engine: CpuEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job()
    expected = train(engine, job, start(job), 4)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads.threading.Thread, "start", refuse)
    assert_same(train(engine, job, start(job), 4), expected)


@compiled.entry_point
def take(counters: np.ndarray, items: int, total: int) -> int:
    return atomics.take(counters, items, total)


def test_waiting_thread_has_taken_no_item() -> None:
    """Held up by the system while it waits, it would keep the others from finishing that phase."""
    counters = np.zeros(16, dtype=np.int64)
    counters[atomics.TAKEN], counters[atomics.DONE] = 4, 3
    taken: list[int] = []
    waiting = threading.Thread(target=lambda: taken.append(take(counters, 4, 8)))
    waiting.start()
    waiting.join(0.02)
    assert (counters[atomics.TAKEN], taken) == (4, [])
    counters[atomics.DONE] = 4
    waiting.join()
    assert (counters[atomics.TAKEN], taken) == (5, [4])
    assert [take(counters, 4, 8) for _ in range(4)] == [5, 6, 7, 8]


def test_numba_num_threads_sets_the_default() -> None:
    program = "from difflogic.cpu.engine import CpuEngine; print(CpuEngine().threads)"
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


MEMORY = """
from pathlib import Path
from tests.cpu.test_threads import checkerboard
from difflogic.cpu.engine import CpuEngine
from difflogic.engine.job import TrainState
job = checkerboard()
model = CpuEngine(2).open([job], [TrainState.initial(job)])
model.train(2)
model.evaluate()
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_the_checkerboard_takes_less_than_300_megabytes(engine: CpuEngine) -> None:
    """The whole process, with Python, Numba and the tests' own imports."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[1]) < 300 * 1024  # kB; getrusage would count the parent's memory too


@pytest.mark.parametrize(
    ("name", "value"), [*(("NUMBA_NUM_THREADS", value) for value in ("0", "-1", "abc", "")), ("NUMBA_DISABLE_JIT", "1")]
)
def test_unusable_numba_environment_is_refused(name: str, value: str) -> None:
    code = "from difflogic.cli.main import main; raise SystemExit(main(['train', 'lizard', '--engine', 'cpu']))"
    environment = os.environ | {name: value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {name} ")
    assert done.stderr.count("\n") == 1


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
