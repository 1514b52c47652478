"""The loop budget: what the planner counts bounds what the kernels do, and old drivers get a schedule within it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.errors import LimitError
from difflogic.gpu import plan as planning
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.device import Device
from difflogic.gpu.encoding import Dispatch
from difflogic.gpu.kernels import KERNELS
from difflogic.gpu.loops import loop_trips
from difflogic.gpu.plan import LOOP_BUDGET, SOFTWARE, Schedule, Supply, constants_of, make_plan
from difflogic.gpu.shaders import load_source
from difflogic.gpu.trees import wired
from difflogic.layout import flat_layout
from difflogic.shape import Shape
from tests.gpu.rig import RECOMPUTING, SCHEDULES, Rig, rig
from tests.random_circuits import random_circuit

LOOP = re.compile(r"^(\s*)((?:for|while) .*?\{)(?= |$)", re.MULTILINE)


def counting(text: str) -> str:
    """A kernel that counts every look at a loop's condition, and leaves the most of any invocation in `most`."""
    text = re.sub("//.*", "", text)
    keywords = len(re.findall(r"\b(?:for|while|loop)\b", text))
    text, loops = LOOP.subn(r"\1trips++; \2 trips++;", text)
    assert loops == keywords
    head, _, body = text.partition("@compute")
    signature, _, rest = body.partition(") {")
    declarations = "@group(1) @binding(0) var<storage, read_write> most: atomic<u32>;\nvar<private> trips: u32;\n"
    run = f"fn work{signature.partition('fn main')[2]}) {{{rest}"
    run = re.sub(r"@builtin\(\w+\) ", "", run)
    names = re.findall(r"@builtin\(\w+\) (\w+):", signature)
    entry = f"@compute{signature}) {{ work({', '.join(names)}); atomicMax(&most, trips); }}\n"
    return head + declarations + run + entry


LONGEST = np.array([0, 1, 2, 3, 0xFFFFFFFF, 5, 0, 0], dtype=np.uint32)
"""The control block with which AdamW takes longest: the highest power, and nothing to skip."""


@dataclass
class Counter:
    """Runs a dispatch with the counting twin of its kernel."""

    device: Device
    schedule: Schedule

    def __post_init__(self) -> None:
        self.buffer = self.device.buffer("most", 4)
        entry = {"binding": 0, "visibility": 4, "buffer": {"type": "storage"}}
        self.layout = self.device.handle.create_bind_group_layout(entries=[entry])
        resource = {"buffer": self.buffer, "offset": 0, "size": 4}
        self.group = self.device.handle.create_bind_group(
            layout=self.layout, entries=[{"binding": 0, "resource": resource}]
        )
        self.pipelines: dict[tuple[str, bool], Any] = {}

    def pipeline(self, kernel: str, trees: bool) -> Any:
        if (kernel, trees) not in self.pipelines:
            spec, handle = KERNELS[kernel], self.device.handle
            module = handle.create_shader_module(code=counting(load_source(kernel).text))
            self.pipelines[kernel, trees] = handle.create_compute_pipeline(
                layout=handle.create_pipeline_layout(bind_group_layouts=[self.device.layout(spec), self.layout]),
                compute={
                    "module": module,
                    "entry_point": "main",
                    "constants": constants_of(spec, self.schedule, half=False, trees=trees),
                },
            )
        return self.pipelines[kernel, trees]

    def count(self, dispatch: Dispatch, trees: bool) -> int:
        self.device.queue.write_buffer(self.buffer, 0, np.zeros(1, dtype=np.uint32))
        encoder = self.device.handle.create_command_encoder()
        compute_pass = encoder.begin_compute_pass()
        compute_pass.set_pipeline(self.pipeline(dispatch.kernel, trees))
        compute_pass.set_bind_group(0, dispatch.bind_group)
        compute_pass.set_bind_group(1, self.group)
        compute_pass.dispatch_workgroups(dispatch.x, dispatch.y)
        compute_pass.end()
        self.device.queue.submit([encoder.finish()])
        return int(np.frombuffer(self.device.queue.read_buffer(self.buffer), dtype=np.uint32)[0])


def every_dispatch(r: Rig) -> Iterator[Dispatch]:
    work = r.work
    yield from (*work.coefficients, *work.harden, *work.seed, *work.fire, *work.corners, *work.forward)
    yield from (*work.backward, *work.update, *work.evaluation)


def unlike_the_others(shape: Shape) -> Circuit:
    """All gates of a layer read one node: whoever sums its slots has all the work."""
    circuit = random_circuit(np.random.default_rng(1), shape.channels, kernels=3, hidden=(40, 9))
    first, *rest = circuit.update_wires
    return replace(circuit, update_wires=(np.full_like(first, 7), *(np.zeros_like(wires) for wires in rest)))


@pytest.fixture(scope="module", params=(*SCHEDULES[:3], *RECOMPUTING), ids=str)
def counter(request: pytest.FixtureRequest, adapter: Adapter) -> Counter:
    """On a device that binds one more storage buffer than the kernels may need."""
    return Counter(Device(adapter, {"max-storage-buffers-per-shader-stage": 9}), request.param)


@pytest.mark.parametrize("limits", [{}, {"MAX_BLOCKS": 4, "MAX_SCRATCH_GROUPS": 1}], ids=["usual", "looping"])
def test_the_estimate_bounds_the_trips(
    counter: Counter, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(planning, name, value)
    device, schedule = counter.device, counter.schedule
    seen: set[str] = set()
    for shape, circuits, supply in work_for_every_kernel(schedule):
        options = {"schedule": schedule, "fire_rate": 0.5, "probes": 70, "hard_batch": shape.batch, "supply": supply}
        with rig(device, circuits, shape, **options) as r:
            estimate = loop_trips(r.plan)
            most: dict[str, int] = {}
            for name in ("corners", "places", "rule"):
                if name in r.work.buffers:
                    r.put(name, np.zeros(r.work.buffers[name].size // 4, dtype=np.uint32))
            r.put(r.work.state(0), np.zeros(r.work.state(0).size // 4, dtype=np.float32))
            for dispatch in every_dispatch(r):
                r.put("control", np.tile(LONGEST, len(circuits)))
                most[dispatch.kernel] = max(most.get(dispatch.kernel, 0), counter.count(dispatch, r.plan.trees))
        seen |= set(most)
        for kernel, trips in most.items():
            assert 0 < trips <= estimate[kernel], kernel
        for kernel in ("gate_forward", "gate_backward", "hard_forward"):
            assert estimate[kernel] < 3 * most[kernel], f"{kernel}: {estimate[kernel]} is far above {most[kernel]}"
    assert seen == set(estimate) == set(KERNELS)


def work_for_every_kernel(schedule: Schedule) -> Sequence[tuple[Shape, list[Circuit], Supply]]:
    """Trees, whose kernels take long to compile, where nodes are kept and where they are not."""
    odd, with_trees = Shape(3, 5, 7, 2, steps=3), (SCHEDULES[0], RECOMPUTING[0])
    rich = replace(odd, loss_steps=(1, 3), damage_side=4, damage_steps=(0, 2))
    return [
        (odd, [random_circuit(np.random.default_rng(m), per_kernel=True) for m in range(2)], Supply()),
        (odd, [unlike_the_others(odd)], Supply("boards", ruled=True)),
        (rich, [random_circuit(np.random.default_rng(2))], Supply("seed", pool=6, resets=1)),
        *(
            [(odd, [random_circuit(np.random.default_rng(3), trees=True, unique=True)], Supply())]
            if schedule in with_trees
            else []
        ),
    ]


OLD = "Mesa 22.3.6 (LLVM 15.0.6)"


def software(adapter: Adapter, driver: str) -> Adapter:
    return replace(adapter, name="llvmpipe (LLVM 15.0.6, 256 bits)", type="CPU", driver=driver)


@pytest.mark.parametrize(
    ("name", "driver", "limited"),
    [
        ("llvmpipe (LLVM 15.0.6, 256 bits)", OLD, True),
        ("llvmpipe (LLVM 17.0.6, 256 bits)", "Mesa 24.2.8", True),
        ("llvmpipe (LLVM 15.0.6, 256 bits)", "", True),
        ("llvmpipe (LLVM 19.1.7, 256 bits)", "Mesa 25.0.7-2", False),
        ("llvmpipe (LLVM 19.1.7, 256 bits)", "Mesa 100.1", False),
        ("SwiftShader Device (LLVM 10.0.0)", "SwiftShader 5.0.0", False),
        ("NVIDIA H200", "570.86", False),
    ],
)
def test_which_drivers_cut_loops_short(adapter: Adapter, name: str, driver: str, limited: bool) -> None:
    assert replace(adapter, name=name, driver=driver).limits_loops is limited


def checkerboard(wide: int = 1) -> tuple[list[Any], Shape]:
    config = presets.checkerboard()
    circuit = Circuit.initial(config.model, 0)
    return wired([flat_layout(circuit)]), Shape.of(circuit, (wide * config.train.batch, 16, 16, 8), config.task.steps)


def test_old_drivers_get_a_schedule_within_the_budget(adapter: Adapter, device: Device) -> None:
    """The checkerboard under Mesa 22.3, and one that needs several workers per chunk."""
    old, new = software(adapter, OLD), software(adapter, "Mesa 25.0.7")
    for wide in (1, 10):
        wirings, shape = checkerboard(wide)
        free = make_plan(new, device.limits, wirings, shape, 32, shape.batch)
        held = make_plan(old, device.limits, wirings, shape, 32, shape.batch)
        assert replace(free.schedule, keep=True) == SOFTWARE[0]
        assert held.loop_trips() <= LOOP_BUDGET < 65535
        assert (held.schedule == free.schedule) == (free.loop_trips() <= LOOP_BUDGET)


def test_too_long_loops_are_refused(adapter: Adapter, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LOOP_BUDGET", 100)
    wirings, shape = checkerboard()
    expected = r"A dispatch would make up to \d+ loop trips per invocation, but this driver silently stops at 65535"
    with pytest.raises(LimitError, match=expected):
        make_plan(software(adapter, OLD), device.limits, wirings, shape)


def test_hard_evaluation_has_loops_too(adapter: Adapter, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Very many probes: the soft batch is small, the hard one is not."""
    monkeypatch.setattr(planning, "SOFTWARE_WORK", 1 << 40)  # a dispatch may be long, as far as time goes
    wirings, shape = checkerboard()
    shape = replace(shape, steps=1)
    old = make_plan(software(adapter, OLD), device.limits, wirings, shape, 200_000, 2)
    new = make_plan(software(adapter, "Mesa 25.0.7"), device.limits, wirings, shape, 200_000, 2)
    assert max(loop_trips(new), key=loop_trips(new).__getitem__) == "hard_forward"
    assert old.loop_trips() <= LOOP_BUDGET < new.loop_trips()
    assert old.schedule == new.schedule  # in more dispatches, not in a slower way
