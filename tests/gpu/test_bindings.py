"""A kernel is declared in WGSL, in KERNELS, by its reference and in the table of shaders/README.md. All agree."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass

import pytest

from difflogic.config import presets
from difflogic.engine.shape import Shape
from difflogic.errors import KernelError
from difflogic.gpu import array_kernels
from difflogic.gpu.kernels import KERNELS, TILED, KernelSpec, Tiled
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.shaders import Binding, Source, load_source, shader_root
from difflogic.gpu.wiring import wired
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout

ROOT = shader_root()
FILES = sorted(path.stem for path in ROOT.glob("*.wgsl"))

LEADING = {"shape", "hyper", "fire_rate", "hardening", "rates", "resets", "samples", "layout"}
"""First arguments of a reference: the content of the uniform `shape`, and the wiring."""
WIRING = {"shape", "hard_shape", "wires", "edges"}
"""The bindings that hold just that."""
LINEAR_BYTES = {"loss": 64, "gradients": 1024, "clip_norm": 256, "commit": 256, "sample_losses": 256}
"""Bytes of workgroup memory of kernels that are no fused steps, if any."""
RECORDS, IN_RECORDS = {"parameters": "coefficients"}, ("candidates", "shares")
"""Arguments of references that kernels read from `coefficients` and from behind the gates' logits."""
NOT_IN_REFERENCE = {"adamw": {"coefficients", "gate_ids"}, "d_start": {"at"}}
"""Bindings for what a kernel does besides: AdamW's leaves what `coefficients` makes of the new logits, and
`d_start` may gather from some of the patches at a time."""


@dataclass(frozen=True)
class Header:
    """The comment that a kernel's file opens with."""

    reference: str
    dispatch: str
    shapes: str

    @classmethod
    def of(cls, kernel: str) -> Header:
        lines = (ROOT / f"{kernel}.wgsl").read_text().splitlines()
        opening = lines[: next(i for i, line in enumerate(lines) if not line.startswith("//"))]
        text = "\n".join(line.removeprefix("//").removeprefix(" ") for line in opening)
        pattern = r"(?ms)^Reference: (.*)\nDispatch: (.*?)\nShapes(?:, per model)?: (.*)"
        header = re.search(pattern, text)
        assert header, f"{kernel}.wgsl must open with its Reference, Dispatch and Shapes"
        return cls(*header.groups())


@pytest.fixture(params=KERNELS)
def spec(request: pytest.FixtureRequest) -> KernelSpec:
    return KERNELS[request.param]


def test_every_file_is_a_kernel() -> None:
    assert sorted(KERNELS) == FILES
    assert all(name == spec.name for name, spec in KERNELS.items())


def test_every_kernel_is_parsed_completely() -> None:
    """Parsing raises an error if it finds less than a kernel declares."""
    others = ("selftest/workgroup_memory", "simulation/simulate")
    names = (*KERNELS, *(kernel.source.name for kernel in array_kernels.KERNELS.values()), *others)
    for source in map(load_source, names):
        assert source.bindings
        size = source.workgroup_bytes(dict.fromkeys(source.overrides, 1))
        if "var<workgroup>" in source.text:
            assert size > 0
        else:
            assert size == 0


DECLARED = """
override LENGTH: u32 = 2u;
const COUNT = 3u;
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;  // @binding(7)
var<workgroup> near: array<vec4<f32>, LENGTH>;
var<workgroup> sums: array<f32, COUNT>;
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("@binding(1)", "@binding(2)", "in the order of their numbers"),
        ("@binding(0)", "@binding(1)", "in the order of their numbers"),
        ("@group(0) @binding(1)", "@binding(1) @group(0)", "does not match .*binding"),
        ("storage, read_write", "storage", "does not match .*binding"),
        ("override", "@id(1) override", "does not match .*override"),
        ("array<f32, COUNT>", "f32", "does not match .*workgroup"),
        ("var<workgroup> sums", "var <workgroup> sums", "does not match .*workgroup"),
        ("array<f32, COUNT>", "array<vec2<f32>, COUNT>", "unknown size: array<vec2<f32>, 3>"),
        ("COUNT = 3u", "COUNT = 1u + 2u", "unknown size: array<f32, COUNT>"),
    ],
)
def test_unsupported_declaration_is_refused(old: str, new: str, says: str) -> None:
    def parse(text: str) -> tuple[list[str], tuple[str, ...], int]:
        source = Source("any", text, ())
        return [each.name for each in source.bindings], source.overrides, source.workgroup_bytes({"LENGTH": 5})

    assert parse(DECLARED) == (["shape", "y"], ("LENGTH",), 5 * 16 + 3 * 4)
    with pytest.raises(KernelError, match=says):
        parse(DECLARED.replace(old, new, 1))


def test_bindings_and_constants_are_read_from_the_shader() -> None:
    source = load_source("gate_forward")
    reads = [Binding(name, "read") for name in ("wires", "coefficients", "masks", "state")]
    uniforms = [Binding("shape", "uniform"), Binding("at", "uniform")]
    writes = [Binding("next_state", "read_write"), Binding("values", "read_write")]
    assert source.bindings == (*uniforms, *reads, *writes)
    assert {"WG", "LANES", "SPLIT", "KEEP", "CANDIDATES"} < set(source.overrides)


@pytest.mark.parametrize("launch", [LaunchConfig(8, 8), LaunchConfig(256, 1, split_chunks=True)], ids=str)
def test_workgroup_memory(spec: KernelSpec, launch: LaunchConfig) -> None:
    """The driver does not check it, so the planner must count what is declared."""
    text = spec.source.text
    circuit = Circuit.initial(presets.checkerboard(small=True).model, 1)
    plan = Plan(tuple(wired([flat_layout(circuit)])), Shape.of(circuit, (1, 16, 16, 8), 2), launch)
    constants = {"WG": spec.workgroup_size(launch)} | spec.constants(plan)
    sizes = constants | {name: int(value) for name, value in re.findall(r"const (\w+) = (\d+)u;", text)}
    (wg,) = re.findall(r"@workgroup_size\((\w+)\)", text)
    assert sizes[wg] == spec.workgroup_size(launch)
    declared = spec.source.workgroup_bytes(constants)
    if isinstance(spec.grid, Tiled):
        assert declared == 16 * plan.near(spec.name)
        assert (plan.near(spec.name) > 4) == launch.split_chunks
    else:
        assert declared == LINEAR_BYTES.get(spec.name, 0)
    # A kernel that needed more would fail at a user's whose device grants no more; only what is split asks the planner.
    if not launch.split_chunks:
        assert declared <= 1 << 14


def test_reference_has_the_parameters_of_its_kernel(spec: KernelSpec) -> None:
    """Compare names and order."""
    module = importlib.import_module(f"difflogic.reference.kernels.{spec.name}")
    assert f"Reference implementation of `{spec.name}.wgsl`" in module.__doc__
    arguments = list(inspect.signature(getattr(module, spec.name)).parameters)
    ours = [RECORDS.get(name, name) for name in arguments if name not in LEADING | set(IN_RECORDS)]
    behind = arguments[arguments.index(next(name for name in arguments if name not in LEADING | {"at"})) :]
    assert not LEADING & set(behind)
    skipped = WIRING | NOT_IN_REFERENCE.get(spec.name, set())
    assert ours == [binding.name for binding in spec.source.bindings if binding.name not in skipped]
    has_wiring = any(binding.name in ("wires", "edges") for binding in spec.source.bindings)
    assert not has_wiring or "layout" in arguments


def test_kernel_header_names_reference_dispatch_and_shapes(spec: KernelSpec) -> None:
    header = Header.of(spec.name)
    assert header.reference == f"difflogic/reference/kernels/{spec.name}.py"
    assert ("y = model" in header.dispatch) != (spec.name in TILED)
    for binding in spec.source.bindings:
        if binding.access != "uniform":
            assert re.search(rf"\b{binding.name}\b", header.shapes), f"{binding.name} has no shape"


def test_files_stay_small() -> None:
    for path in ROOT.rglob("*.wgsl"):
        assert len(path.read_text().splitlines()) <= 140, path


def test_the_table() -> None:
    """The first of shaders/README.md, row by row."""
    rows = ["| kernel | reference | reads | writes | dispatch |", "|--|--|--|--|--|"]
    for name, spec in KERNELS.items():
        header = Header.of(name)
        reads = ", ".join(binding.name for binding in spec.source.bindings if binding.access != "read_write")
        writes = ", ".join(binding.name for binding in spec.source.bindings if binding.access == "read_write")
        dispatch = header.dispatch.partition(".")[0]
        rows.append(f"| `{name}` | `{header.reference}` | {reads} | {writes} | {dispatch} |")
    table = re.search(r"^\|.*?(?=\n\n)", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert table is not None
    assert table[0].splitlines() == rows
