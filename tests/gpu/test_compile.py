"""Every kernel compiles under every schedule, and an error is told where it stands."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from difflogic.bench.plans import sizes
from difflogic.config import presets
from difflogic.engine.events import NO_HARDENING
from difflogic.engine.shape import Hyper, Shape
from difflogic.errors import KernelError
from difflogic.gpu import shaders
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.kernels import KERNELS
from difflogic.gpu.launch import FUSED, HARDWARE, LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import plan_for
from difflogic.gpu.recording import RecordingDevice
from difflogic.gpu.uniforms import shape_values, uniform_struct
from difflogic.gpu.wiring import wired
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from tests.jobs import make_job, start, train


def test_a_pipeline_is_shared_by_schedules_that_it_runs_alike_under(device: GpuDevice) -> None:
    circuit = Circuit.initial(presets.checkerboard(small=True).model, 1)
    plan = Plan(tuple(wired([flat_layout(circuit)])), Shape.of(circuit, (1, 16, 16, 8), 2), LaunchConfig(8, 2))
    other = replace(plan, launch=LaunchConfig(16, 2, forward_workgroup_size=8))
    again = replace(plan, launch=LaunchConfig(8, 2, store_activations=False))

    def pipeline(kernel: str, plan: Plan) -> object:
        return device.pipeline(kernel, KERNELS[kernel].constants(plan))

    assert pipeline("adamw", plan) is pipeline("adamw", other)
    assert pipeline("gate_forward", plan) is pipeline("gate_forward", other)
    assert pipeline("gate_backward", plan) is not pipeline("gate_backward", other)
    assert pipeline("gate_forward", plan) is not pipeline("gate_forward", again)


@pytest.fixture(params=[False, True], ids=["checked", "trusted"])
def baking(adapter: Adapter, request: pytest.FixtureRequest) -> GpuDevice:
    """A device that compiles for sizes, as a card does."""
    device = GpuDevice(adapter)
    device.bakes_sizes, device.trusts_kernels = True, request.param
    return device


def test_sizes_in_the_text_change_no_bit(device: GpuDevice, baking: GpuDevice) -> None:
    job = make_job(0, fire_rate=0.6, steps=2)
    plain, baked = (train(GpuEngine(each, HARDWARE[0]), job, start(job), 2) for each in (device, baking))
    assert plain[0].logits.tobytes() == baked[0].logits.tobytes()
    assert plain[1:] == baked[1:]
    (text,) = [text for kernel, text, _ in baking._pipelines if kernel == "hard_forward"]
    assert "shape.width" not in text
    assert "shape.level_table" in text


@pytest.mark.parametrize("baking", [False], indirect=True)
@pytest.mark.parametrize("name", presets.PRESETS)
def test_kernels_compile_for_the_sizes_of_presets(baking: GpuDevice, name: str) -> None:
    """No expression of sizes overflows or divides by 0 when it is worked out. The driver compiles nothing here."""
    config = presets.get(name)
    plan = plan_for(RecordingDevice(software=False), [sizes(config)])
    for kernel in FUSED:
        values = shape_values(plan, Hyper.of(config), 1.0, NO_HARDENING, hard=kernel == "hard_forward")
        whole = uniform_struct("common/shape", "Shape").whole_numbers(values)
        assert baking.pipeline(kernel, KERNELS[kernel].constants(plan), whole) is not None


def test_error_in_a_trusted_shader_names_file_and_line(device: GpuDevice, root: Path) -> None:
    line = spoil(root / "common/shape.wgsl", "const GATES = 16u;", "const GATES = sixteen;")
    with pytest.raises(KernelError, match=rf"common/shape.wgsl:{line}\b"):
        device.compile(shaders.load_source("adamw"), is_trusted=True)


def test_adapters_that_are_hardware_get_kernels_for_their_sizes(adapter: Adapter) -> None:
    card = replace(adapter, type="DiscreteGPU")
    assert [(each.bakes_sizes, each.trusts_kernels) for each in map(GpuDevice, (adapter, card))] == [
        (False, False), (True, True)
    ]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the shaders, to spoil."""
    copy = tmp_path / "shaders"
    shutil.copytree(shaders.shader_root(), copy)
    monkeypatch.setattr(shaders, "shader_root", lambda: copy)
    shaders.load_source.cache_clear()
    yield copy
    shaders.load_source.cache_clear()


def spoil(path: Path, old: str, new: str) -> int:
    """Replaces a line's text and returns its number."""
    lines = path.read_text().splitlines()
    (index,) = [i for i, line in enumerate(lines) if old in line]
    lines[index] = lines[index].replace(old, new)
    path.write_text("\n".join(lines) + "\n")
    return index + 1


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("adamw.wgsl", "let p = logits[row][i];", "let p = nothing;"),  # behind the imports
        ("common/gates.wgsl", "var best = first;", "var best = first"),
        ("common/gates.wgsl", "var mixed = vec4<f32>();", "var mixed: vec4<u32> = 1.0;"),
        ("common/shape.wgsl", "const GATES = 16u;", "const GATES = sixteen;"),
    ],
)
def test_an_error_names_file_and_line(device: GpuDevice, root: Path, file: str, old: str, new: str) -> None:
    line = spoil(root / file, old, new)
    with pytest.raises(KernelError, match=r"^Could not compile the shader adamw: ") as caught:
        device.compile(shaders.load_source("adamw"))
    at = f"{file}:{line}"
    behind = f"{file}:{line + 1}"  # a missing semicolon is found at the next word
    assert at in str(caught.value) or (new == old.rstrip(";") and behind in str(caught.value)), str(caught.value)


def test_a_file_is_imported_once_and_lines_know_their_origin(root: Path) -> None:
    (root / "inner.wgsl").write_text("inner one\ninner two\n")
    (root / "outer.wgsl").write_text("#import inner.wgsl\nouter two\n")
    (root / "top.wgsl").write_text("top one\n#import outer.wgsl\n#import inner.wgsl\ntop four\n")
    source = shaders.load_source("top")
    assert source.text.splitlines() == ["top one", "inner one", "inner two", "outer two", "top four"]
    assert source.origins == (
        ("top.wgsl", 1), ("inner.wgsl", 1), ("inner.wgsl", 2), ("outer.wgsl", 2), ("top.wgsl", 4)
    )  # fmt: skip
    assert source.locate("at wgsl:3:7 and wgsl:5:1") == "at inner.wgsl:2:7 and top.wgsl:4:1"


def test_the_hash_follows_names_and_texts(root: Path) -> None:
    shaders.shader_hash.cache_clear()
    hashes = {shaders.shader_hash()}
    spoil(root / "common/shape.wgsl", "const WORD = 32u;", "const WORD = 31u;")
    shaders.shader_hash.cache_clear()
    hashes.add(shaders.shader_hash())
    (root / "pack.wgsl").rename(root / "sack.wgsl")
    shaders.shader_hash.cache_clear()
    hashes.add(shaders.shader_hash())
    shaders.shader_hash.cache_clear()
    assert len(hashes) == 3
