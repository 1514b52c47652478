"""A uniform is packed by its fields' names: a shader reads under a name what was given under it."""

import re
from typing import Any

import numpy as np
import pytest

from difflogic.engine import control
from difflogic.errors import KernelError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.probes import AnyShader
from difflogic.gpu.shaders import Source, load_source
from difflogic.gpu.uniforms import UniformStruct, uniform_struct

TEXT = load_source("common/shape").text
SHAPE = uniform_struct("common/shape", "Shape")
FIELDS = SHAPE.fields
WORDS = tuple(name for name in FIELDS.names or () if name != "level_table")
VALUES: dict[str, Any] = {name: 100 + place for place, name in enumerate(WORDS)}
"""No two alike: a field in another's place shows."""
VALUES["level_table"] = np.arange(1024).reshape(256, 4)

SMALL = "struct Small { first: u32, rate: f32, // a comment: u32\n key: vec2<u32>, table: array<vec4<f32>, 2>, }"
SMALL_VALUES = {"first": 1, "rate": 0.5, "key": [2, 3], "table": [[1, 2, 3, 4], [5, 6, 7, 8]]}


def reversed_fields() -> str:
    (body,) = re.findall(r"struct Shape \{(.*?)\}", TEXT, re.DOTALL)
    declared = re.findall(r"\w+: (?:array<.*>|\w+)(?=,)", body)
    assert len(declared) == len(FIELDS)
    return TEXT.replace(body, ", ".join(reversed(declared)))


@pytest.mark.parametrize("text", [TEXT, reversed_fields()], ids=["as declared", "reversed"])
def test_the_order_of_the_fields_changes_nothing(device: GpuDevice, text: str) -> None:
    """The shader's compiler decides where a field lies."""
    reads = [f"seen[{i}] = bitcast<u32>(shape.{name});" for i, name in enumerate(WORDS)]
    main = f"""
        @group(0) @binding(0) var<uniform> shape: Shape;
        @group(0) @binding(1) var<storage, read_write> seen: array<u32>;
        @compute @workgroup_size(1) fn main() {{
            {"".join(reads)}
            for (var i = 0u; i < 1024u; i++) {{ seen[{len(WORDS)}u + i] = shape.level_table[i / 4u][i % 4u]; }}
        }}"""
    block = np.frombuffer(UniformStruct.parse(text, "Shape").pack(VALUES), dtype=np.uint32)
    seen = np.zeros(len(WORDS) + 1024, dtype=np.uint32)
    shader = AnyShader(device, Source("uniform", text + main, (("uniform", 1),)), [block, seen])
    shader.run([0, 1], (1, 1))
    expected = [np.array(VALUES[name], dtype=FIELDS[name]).view(np.uint32) for name in WORDS]
    np.testing.assert_array_equal(shader.read(1), [*expected, *range(1024)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"frist": 1}, "frist"),
        *(({"first": value}, "uint32 for the field first of Small, got") for value in (None, 1.0, -1, 2**32, [1, 1])),
        ({"rate": True}, "float32 for the field rate of Small, got"),
        ({"key": 2}, "for the field key of Small, got"),
        ({"table": np.zeros((3, 4))}, "for the field table of Small, got"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(KernelError, match=said):
        UniformStruct.parse(SMALL, "Small").pack(SMALL_VALUES | change)


@pytest.mark.parametrize("name", FIELDS.names or ())
def test_a_missing_field_is_named(name: str) -> None:
    with pytest.raises(KernelError, match=f": {name}\\."):
        SHAPE.pack({other: value for other, value in VALUES.items() if other != name})


def test_a_misspelt_field_of_the_shader_is_refused() -> None:
    with pytest.raises(KernelError, match="chanels, channels"):
        UniformStruct.parse(TEXT.replace("channels: u32", "chanels: u32", 1), "Shape").pack(VALUES)


@pytest.mark.parametrize("field", ["x: array<u32, 4>, y: i32", "x: vec3<f32>", "x: mat2x2<f32>"])
def test_a_type_that_cannot_be_packed_is_refused(field: str) -> None:
    with pytest.raises(KernelError, match="of an unsupported type"):
        UniformStruct.parse(f"struct Strange {{ {field} }}", "Strange")


def test_a_struct_that_is_not_there_is_refused() -> None:
    with pytest.raises(KernelError, match="Expected a struct Shap"):
        UniformStruct.parse(TEXT, "Shap")


def test_the_control_block_has_the_same_words_on_both_sides() -> None:
    declared = re.findall(r"const (\w+) = (\d+)u;", load_source("common/control").text)
    ours = {name: value for name, value in vars(control).items() if name.isupper()}
    places = {name: value.start if isinstance(value, slice) else value for name, value in ours.items()}
    assert {name.removeprefix("CONTROL_"): int(value) for name, value in declared} == places
