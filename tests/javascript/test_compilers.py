"""WGSL is what two compilers take, naga and Tint, and what naga writes from it is valid for every driver."""

import base64
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from difflogic.gpu.device import _LAYOUT_TYPE
from difflogic.gpu.shaders import Source
from tests.javascript import node
from tests.javascript.variants import Variant, all_sources, all_variants
from tests.programs import needs

Sources = Mapping[str, Source]


@pytest.fixture(scope="module")
def sources() -> Sources:
    return all_sources()


def tint(sources: Sources, variants: Sequence[Variant]) -> list[str]:
    """Return the messages of Tint about these modules and pipelines, each with file and line."""
    modules = [{"name": name, "code": source.text} for name, source in sources.items()]
    pipelines = [
        {
            "module": each.module,
            "label": each.label,
            "constants": each.constants,
            "bindings": each.bindings and [_LAYOUT_TYPE[binding.access] for binding in each.bindings],
        }
        for each in variants
    ]
    answer = node.run("tint.js", {"modules": modules, "pipelines": pipelines})
    said = [_located(sources[each["module"]], each) for each in answer["messages"]]
    assert said or answer["pipelines"] == len(variants)
    return said


def _located(source: Source, message: dict[str, Any]) -> str:
    place = source.locate(f"wgsl:{message['line']}:{message['column']}")
    return f"{place} {message['type']}: {message['text']} ({message['label']})"


def naga(sources: Sources, variants: Sequence[Variant], folder: Path) -> list[str]:
    """Return the errors of naga and `spirv-val` in these variants as Metal, HLSL and SPIR-V."""
    texts = [{"name": each.label, "code": with_constants(sources[each.module], each.constants)} for each in variants]
    answers = node.run("naga.js", texts)
    assert len(answers) == len(variants)
    wrong = [f"{each['name']}: {language}: {text}" for each in answers for language, text in each["errors"].items()]
    programs = {base64.b64decode(each["spirv"]): each["name"] for each in answers if each["spirv"]}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda item: spirv_val(item[1], item[0], folder), programs.items())
        return [*wrong, *filter(None, found)]


def with_constants(source: Source, constants: Mapping[str, int]) -> str:
    """The text with these values in place of what a pipeline would set: naga as wasm has no pipelines."""

    def constant(match: re.Match[str]) -> str:
        name, kind, default = match.groups()
        value = {"bool": "bool({})", "u32": "u32({})"}[kind].format(constants[name]) if name in constants else default
        return f"const {name}: {kind} = {value};"

    return re.sub(r"^override (\w+): (\w+)(?: = (\w+))?;", constant, source.text, flags=re.MULTILINE)


def spirv_val(name: str, program: bytes, folder: Path) -> str:
    """Return the output of `spirv-val`, or an empty text if the program is valid for every Vulkan."""
    file = folder / f"{re.sub('[^A-Za-z0-9]', '_', name)}.spv"
    file.write_bytes(program)
    done = subprocess.run(["spirv-val", "--target-env", "vulkan1.0", file], capture_output=True, text=True, check=False)
    return f"{name}: {done.stdout}{done.stderr}" if done.returncode else ""


def test_every_variant_has_a_module_with_an_entry_point(sources: Sources) -> None:
    assert {each.module for each in all_variants(sources)} == set(sources)
    assert all(len(re.findall("^@compute", source.text, re.MULTILINE)) == 1 for source in sources.values())


@pytest.mark.exhaustive
def test_tint_takes_every_variant_without_a_word(sources: Sources) -> None:
    node.needs()
    assert tint(sources, all_variants(sources)) == []


@pytest.mark.exhaustive
def test_naga_writes_every_variant_for_every_driver(sources: Sources, tmp_path: Path) -> None:
    node.needs()
    needs("spirv-val")
    assert naga(sources, all_variants(sources), tmp_path) == []


def spoiled(sources: Sources, kernel: str, old: str, new: str) -> tuple[Sources, list[Variant], str]:
    """One module alone, with another text in one of its lines, its variants, and where that line is."""
    source = sources[kernel]
    (line,) = [number for number, text in enumerate(source.text.splitlines(), start=1) if old in text]
    alone = {kernel: Source(kernel, source.text.replace(old, new), source.origins)}
    return alone, [each for each in all_variants(alone) if each.module == kernel], source.locate(f"wgsl:{line}")


@pytest.mark.parametrize(
    ("kernel", "old", "new", "says"),
    [
        ("draw_samples", "* (end & 0xffffu)) >> 16u)", "* (end & 0xffffu) >> 16u)", "error: mixing '*' and '>>'"),
        ("harden", "const GATES = 16u;", "const GATES = sixteen;", "error: unresolved"),  # in an imported file
        ("clip_norm", "let norm = sqrt(total);", "return; let norm = sqrt(total);", "warning: code is unreachable"),
    ],
)
def test_tint_names_the_line_of_what_is_wrong(sources: Sources, kernel: str, old: str, new: str, says: str) -> None:
    node.needs()
    alone, variants, place = spoiled(sources, kernel, old, new)
    first, *_ = tint(alone, variants)
    assert first.startswith(f"{place}:"), first
    assert says in first


@pytest.mark.parametrize(
    ("kernel", "old", "new", "says"),
    [
        ("clip_norm", "array<f32, SHARERS>", "array<f32, 5000>", "16384"),  # bytes of workgroup memory
        ("clip_norm", "@group(0) @binding(2)", "@group(0) @binding(7)", "binding"),  # not as the table says
    ],
)
def test_what_fits_no_device_makes_no_pipeline(sources: Sources, kernel: str, old: str, new: str, says: str) -> None:
    node.needs()
    alone, variants, _ = spoiled(sources, kernel, old, new)
    said = tint(alone, variants)
    assert len(said) == len(variants)
    assert says in said[0]


def test_spirv_val_finds_what_naga_writes_wrong(sources: Sources, tmp_path: Path) -> None:
    """An untyped zero is right in WGSL, but this naga takes it for integers."""
    node.needs()
    needs("spirv-val")
    alone, variants, _ = spoiled(sources, "tensor/d_unary", "select(vec4<f32>(), d", "select(vec4(), d")
    assert tint(alone, variants) == []
    wrong = naga(alone, variants, tmp_path)
    assert len(wrong) == len(variants)
    assert "tensor/d_unary" in wrong[0]
