"""A kernel is declared in WGSL, in KERNELS, by its reference and in the table of shaders/README.md. All agree."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass

import pytest

from difflogic.config import presets
from difflogic.engine.shape import Shape
from difflogic.gpu.kernels import KERNELS, TILED, Binding, KernelSpec, Tiled
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.shaders import load_source, shader_root
from difflogic.gpu.wiring import wired
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout

ROOT = shader_root()
FILES = sorted(path.stem for path in ROOT.glob("*.wgsl"))

BINDING = re.compile(r"@group\(0\) @binding\((\d+)\) var<(\w+)(?:, (\w+))?> (\w+):")
WORKGROUP = re.compile(r"^var<workgroup> \w+: array<(f32|u32|Four|vec4<f32>), (\w+)>;", re.MULTILINE)

LEADING = {"shape", "hyper", "fire_rate", "hardening", "rates", "resets", "samples", "layout"}
"""First arguments of a reference: the content of the uniform `shape`, and the wiring."""
WIRING = {"shape", "hard_shape", "wires", "edges"}
"""The bindings that hold just that."""
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
        header = re.search(
            r"^Reference: (.*)\nDispatch: (.*?)\nShapes(?:, per model)?: (.*)", text, re.MULTILINE | re.DOTALL
        )
        assert header, f"{kernel}.wgsl must open with its Reference, Dispatch and Shapes"
        return cls(*header.groups())


@pytest.fixture(params=KERNELS)
def spec(request: pytest.FixtureRequest) -> KernelSpec:
    return KERNELS[request.param]


def test_every_file_is_a_kernel() -> None:
    assert sorted(KERNELS) == FILES
    assert all(name == spec.name for name, spec in KERNELS.items())


def test_bindings(spec: KernelSpec) -> None:
    found = BINDING.findall(load_source(spec.name).text)
    assert [int(number) for number, *_ in found] == list(range(len(found)))
    assert tuple(Binding(name, access or kind) for _, kind, access, name in found) == spec.bindings
    assert load_source(spec.name).text.count("@binding") == len(found)


def test_overrides(spec: KernelSpec) -> None:
    assert tuple(re.findall(r"^override (\w+)", load_source(spec.name).text, re.MULTILINE)) == spec.overrides


@pytest.mark.parametrize("launch", [LaunchConfig(8, 8), LaunchConfig(256, 1, split_chunks=True)], ids=str)
def test_workgroup_memory(spec: KernelSpec, launch: LaunchConfig) -> None:
    """The driver does not check it, so what is declared must be what the planner counts."""
    text = load_source(spec.name).text
    circuit = Circuit.initial(presets.checkerboard(small=True).model, 1)
    plan = Plan(tuple(wired([flat_layout(circuit)])), Shape.of(circuit, (1, 16, 16, 8), 2), launch)
    sizes = {
        **spec.constants(plan),
        "WG": spec.workgroup_size(launch),
        **{n: int(v) for n, v in re.findall(r"const (\w+) = (\d+)u;", text)},
    }
    (wg,) = re.findall(r"@workgroup_size\((\w+)\)", text)
    assert sizes[wg] == spec.workgroup_size(launch)
    arrays = WORKGROUP.findall(text)
    assert len(arrays) == text.count("var<workgroup>")
    declared = sum((4 if kind in ("f32", "u32") else 16) * sizes[length] for kind, length in arrays)
    near = spec.near_bytes(plan)
    assert declared == near + spec.workgroup_bytes_per_invocation * spec.workgroup_size(launch)
    assert (near > 64) == (launch.split_chunks and isinstance(spec.grid, Tiled))
    # A kernel that needed more would fail at a user's whose device grants no more; only what is split asks the planner.
    assert launch.split_chunks or declared <= 1 << 14


def test_reference_has_the_parameters_of_its_kernel(spec: KernelSpec) -> None:
    """Compare names and order."""
    module = importlib.import_module(f"difflogic.reference.kernels.{spec.name}")
    assert f"Reference implementation of `{spec.name}.wgsl`" in module.__doc__
    arguments = list(inspect.signature(getattr(module, spec.name)).parameters)
    ours = [RECORDS.get(name, name) for name in arguments if name not in LEADING | set(IN_RECORDS)]
    behind = arguments[arguments.index(next(name for name in arguments if name not in LEADING | {"at"})) :]
    assert not LEADING & set(behind)
    skipped = WIRING | NOT_IN_REFERENCE.get(spec.name, set())
    assert ours == [binding.name for binding in spec.bindings if binding.name not in skipped]
    has_wiring = any(binding.name in ("wires", "edges") for binding in spec.bindings)
    assert not has_wiring or "layout" in arguments


def test_kernel_header_names_reference_dispatch_and_shapes(spec: KernelSpec) -> None:
    header = Header.of(spec.name)
    assert header.reference == f"difflogic/reference/kernels/{spec.name}.py"
    assert ("y = model" in header.dispatch) != (spec.name in TILED)
    for binding in spec.bindings:
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
        reads = ", ".join(binding.name for binding in spec.bindings if binding.access != "read_write")
        writes = ", ".join(binding.name for binding in spec.bindings if binding.access == "read_write")
        dispatch = header.dispatch.partition(".")[0]
        rows.append(f"| `{name}` | `{header.reference}` | {reads} | {writes} | {dispatch} |")
    table = re.search(r"^\|.*?(?=\n\n)", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert table is not None
    assert table[0].splitlines() == rows
