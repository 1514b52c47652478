"""Device calls of a train step: few dispatches, one pass, nothing created, nothing uploaded."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from difflogic.gpu import model as model_room
from difflogic.gpu import submit
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import SOFTWARE
from difflogic.gpu.model import GpuModel
from difflogic.gpu.plan import HISTORY
from tests.gpu.rig import on_device
from tests.jobs import make_job, start
from tests.tasks import task_job


class Calls(Counter[str]):
    """Number of calls of each method of the device, its queue and its encoders, and bytes transferred."""

    def spy(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        real = getattr(owner, name)

        def counted(this: Any, *arguments: Any, **options: Any) -> Any:
            self[name] += 1
            if name == "write_buffer":
                self["bytes written"] += memoryview(arguments[2]).nbytes
            result = real(this, *arguments, **options)
            if name == "read_mapped":
                self["bytes read"] += memoryview(result).nbytes
            return result

        monkeypatch.setattr(owner, name, counted)

    @property
    def created(self) -> Counter[str]:
        """Everything made, but for the encoders, of which each submit has one."""
        made = {name: count for name, count in self.items() if name.startswith("create_")}
        return Counter({name: count for name, count in made.items() if name != "create_command_encoder"})

    @property
    def submits(self) -> int:
        """All but those, of nothing, that wgpu makes itself wherever a buffer is mapped."""
        return self["submit"] - self["map_sync"]


@pytest.fixture
def calls(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> Calls:
    counted = Calls()
    encoder = device.handle.create_command_encoder()
    buffer = device.staging("spied", 4)
    spied: list[tuple[Any, Callable[[str], bool]]] = [
        (device.handle, lambda name: name.startswith("create_") and not name.endswith("_async")),
        (device.queue, {"submit", "write_buffer"}.__contains__),
        (encoder, {"begin_compute_pass", "copy_buffer_to_buffer"}.__contains__),
        (buffer, {"map_sync", "read_mapped"}.__contains__),
    ]
    encode_pass = submit.encode_pass

    def count_dispatches(encoder: Any, dispatches: Sequence[submit.Dispatch]) -> None:
        counted["dispatches"] += len(dispatches)
        encode_pass(encoder, dispatches)

    monkeypatch.setattr(submit, "encode_pass", count_dispatches)
    for owner, wanted in spied:
        for name in filter(wanted, dir(owner)):
            counted.spy(monkeypatch, type(owner), name)
    return counted


def open_model(device: GpuDevice, count: int = 1, fire_rate: float = 1.0, **options: Any) -> GpuModel:
    jobs = [make_job(seed, fire_rate=fire_rate, **options) for seed in range(count)]
    return on_device(device, jobs, [start(job) for job in jobs])


def test_samples_are_sent_once(device: GpuDevice) -> None:
    jobs = [task_job("samples", seed) for seed in (1, 2)]
    model = on_device(device, jobs, [start(job) for job in jobs])
    sent = device.uploaded.copy()
    model.train(40)
    model.fetch_metrics()
    assert device.uploaded == sent
    assert jobs[0].data is not None
    assert model.workspace.buffers["x"].size == 4 * len(jobs[0].data) * -(-5 * 7 // 32)
    model.close()


@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
@pytest.mark.parametrize("steps", [1, 3, 20])
def test_a_train_step_is_few_dispatches(device: GpuDevice, steps: int, fire_rate: float, models: int) -> None:
    """2T + 1: T steps, the loss, T steps back. Besides them: seeds, masks, gradients, commit and AdamW."""
    model = open_model(device, models, fire_rate, steps=steps)
    kernels = Counter(dispatch.kernel for dispatch in model.train_step)
    core = {name: kernels.pop(name) for name in ("gate_forward", "loss", "gate_backward")}
    assert core == {"gate_forward": steps, "loss": 1, "gate_backward": steps}
    assert kernels.total() == (5 if fire_rate < 1 else 4)
    assert len(model.workspace.evaluation) == steps + 2
    model.close()


def test_what_a_task_asks_for_costs_its_own_dispatches(device: GpuDevice) -> None:
    """Compare with the table of shaders/README.md: features that are not used cost no dispatch."""
    job = task_job("everything")
    assert (job.config.task.judged_steps, job.config.task.damage_steps) == ((2, 3, 4), (0, 3))
    model = on_device(device, [job], [start(job)])
    once = ("same_start", "draw_pool", "fire_mask", "draw_corners", "loss", "gradients", "commit", "sample_losses")
    kernels = Counter(dispatch.kernel for dispatch in model.train_step)
    assert kernels == {
        **dict.fromkeys((*once, "adamw", "write_back"), 1),
        **dict.fromkeys(("gate_forward", "gate_backward"), 4),
        **dict.fromkeys(("step_loss", "step_loss_backward", "damage"), 2),
        "d_damage": 1,
    }
    judging = Counter(dispatch.kernel for dispatch in model.workspace.evaluation)
    assert judging == {"pack": 1, "hard_forward": 4, "hard_loss": 3, "hard_damage": 2}
    model.close()
    ruled = task_job("boards and a rule, torus")
    model = on_device(device, [ruled], [start(ruled)])
    assert [dispatch.kernel for dispatch in model.train_step][:3] == ["seed_boards", "rule_target", "gate_forward"]
    model.close()


def test_steps_between_kept_states_are_run_again(device: GpuDevice) -> None:
    """The worked example of `difflogic/gpu/launch.py`."""
    job, launch = make_job(steps=6), SOFTWARE[0].with_memory(store_activations=False, checkpoint_every=3)
    model = on_device(device, [job], [start(job)], launch)
    letters = {"gate_forward": "F", "loss": " ", "gate_backward": "B"}
    assert "".join(letters.get(dispatch.kernel, "") for dispatch in model.train_step) == "FFFFFF BBBFFBBB"
    model.close()


def test_steps_of_one_submit_share_one_pass(device: GpuDevice, calls: Calls) -> None:
    model = open_model(device, steps=3)
    model._epochs_per_submit = 4
    calls.clear()
    model.train(4)
    each = 2 * 3 + 1 + 4
    assert (calls.submits, calls["begin_compute_pass"], calls["dispatches"]) == (1, 1, 4 * each)
    calls.clear()
    model.fetch_metrics()
    assert (calls.submits, calls["map_sync"]) == (0, 1)
    calls.clear()
    model.evaluate()
    assert (calls.submits, calls["begin_compute_pass"], calls["dispatches"]) == (1, 1, 3 + 2)
    model.close()


def test_evaluation_is_submitted_before_metrics_are_read(device: GpuDevice, calls: Calls, monkeypatch) -> None:
    model = open_model(device)
    model.train(1)
    calls.clear()
    collect, submitted = model._collect, []
    monkeypatch.setattr(model, "_collect", lambda: (submitted.append(calls["submit"]), collect()))
    model.evaluate()
    assert submitted == [1]
    model.close()


def test_submits_come_to_hold_several_steps(device: GpuDevice, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Submits last about SUBMIT_SECONDS, which is long here so that load does not matter."""
    monkeypatch.setattr(model_room, "SUBMIT_SECONDS", 60.0)
    model = open_model(device)
    model.train(50)
    model.fetch_metrics()
    assert model.epochs_per_call() == HISTORY
    calls.clear()
    model.train(model.epochs_per_call())
    assert calls.submits == 1
    model.close()


@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_nothing_is_created_after_the_first_epochs(device: GpuDevice, calls: Calls, fire_rate: float) -> None:
    model = open_model(device, fire_rate=fire_rate)
    model.train(2)
    model.evaluate()
    assert {"create_buffer", "create_bind_group"} <= set(calls.created)
    calls.clear()
    model.train(20)
    model.fetch_metrics()
    model.evaluate()
    model.states()
    assert not calls.created
    model.close()


@pytest.mark.parametrize("models", [1, 3])
def test_little_crosses(device: GpuDevice, calls: Calls, models: int) -> None:
    """Nothing up and eight bytes down per epoch and model; and the device counts what really crosses."""
    sent = device.uploaded.total()
    model = open_model(device, models)
    assert device.uploaded.total() - sent == calls["bytes written"] > 0
    model.train(2)
    model.fetch_metrics()
    uploaded, downloaded = device.uploaded.copy(), device.downloaded.copy()
    calls.clear()
    for _ in range(5):
        model.train(25)
        model.fetch_metrics()
    assert device.uploaded == uploaded
    assert calls["write_buffer"] == calls["bytes written"] == 0
    received = device.downloaded - downloaded
    assert received == {"metrics": 125 * 8 * models}
    assert received.total() == calls["bytes read"] <= 64 * 125 * models
    model.evaluate()
    model.states()
    received = device.downloaded - downloaded
    assert set(received) == {"metrics", "evaluation", "checkpoint"}
    assert received.total() == calls["bytes read"]
    assert received["evaluation"] == model.plan.groups * 8 * models
    model.close()
