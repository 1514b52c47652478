"""A train step taken apart: the parts are those of the engine, and the step is a real one."""

import dataclasses
import json

import numpy as np
import pytest

from difflogic.bench.profile import PHASES, profile
from difflogic.devices.open import open_engine
from difflogic.engine.api import Model
from difflogic.engine.job import TrainState, make_job
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.kernels import KERNELS as KERNELS_ON_GPU
from difflogic.gpu.timing import DeviceTimes, Timer
from difflogic.model.circuit import Circuit
from tests.train.tiny import tiny_config

KERNELS = ["gate_forward", "gate_backward", "gradients", "commit", "adamw"]


def open_model(engine: str | GpuEngine) -> Model:
    config = tiny_config()
    circuit = Circuit.initial(config.model, config.seed)
    opened = open_engine(engine) if isinstance(engine, str) else engine
    job = make_job(config, circuit)
    model = opened.open([job], [TrainState.initial(job)])
    model.train(1)
    model.fetch_metrics()
    return model


@pytest.fixture(params=["cpu", "gpu"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_parts(name: str) -> None:
    model = open_model(name)
    found = profile(model, rounds=2)
    names = [part.name for part in found.kernels]
    assert [kernel for kernel in names if kernel in KERNELS] == KERNELS
    assert {"start", "forward", "backward", "gradients", "update"} <= {part.phase for part in found.parts}
    counts = {part.name: part.count for part in found.kernels}
    assert counts["gate_forward"] == counts["gate_backward"] == 3
    data = json.loads(json.dumps(found.to_dict()))
    assert data["dispatches"] == sum(counts.values())
    model.close()


def test_what_is_between_kernels_is_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    times = DeviceTimes({"adamw": 5.0, "loss": 1.0}, {"adamw": 1, "loss": 1}, 0.5, 0.25, 8.0, True, 1.0, 0.75)
    model = open_model("gpu")
    monkeypatch.setattr(Timer, "measure", lambda self: times)
    found = profile(model, rounds=1)
    assert {part.name: part.seconds for part in found.parts if part not in found.kernels} == {
        "encode": 0.5, "submit": 0.25, "between kernels": 1.0, "read back": 0.75, "wait beyond the kernels": 0.25
    }  # fmt: skip
    assert found.share == pytest.approx((8.75 - 0.25) / 8.75)
    late = dataclasses.replace(times, wait=7.5)  # nothing is counted twice
    monkeypatch.setattr(Timer, "measure", lambda self: late)
    found = profile(model, rounds=1)
    assert [part.seconds for part in found.parts if part.phase == "transfer"] == [0.5]
    assert found.share == pytest.approx(1.0)
    assert found.kernel_seconds == 6.0
    model.close()


def test_every_kernel_of_training_has_a_phase() -> None:
    judging, functions = {"pack", "hard_damage", "hard_faults", "hard_forward", "hard_loss"}, {"d_start"}
    assert set(KERNELS_ON_GPU) - set(PHASES) == judging | functions


def test_a_profiled_step_trains(name: str) -> None:
    profiled, plain = open_model(name), open_model(name)
    profile(profiled, rounds=1)
    epoch = profiled.states()[0].epoch
    assert epoch > 1
    for _ in range(epoch - 1):
        plain.train(1)
        plain.fetch_metrics()
    left, right = profiled.states()[0], plain.states()[0]
    assert np.array_equal(left.logits, right.logits)
    assert np.array_equal(left.data_key, right.data_key)
    profiled.close()
    plain.close()


def test_an_adapter_without_timestamps() -> None:
    adapter = dataclasses.replace(select_adapter(), features=())
    model = open_model(GpuEngine(GpuDevice(adapter)))
    found = profile(model, rounds=1)
    assert found.how == "host clock, each kernel submitted alone: no timestamp queries"
    assert [part.name for part in found.kernels if part.name in KERNELS] == KERNELS
    assert all(part.seconds > 0 for part in found.kernels)
    model.close()
