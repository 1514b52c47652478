"""The library as a person in a notebook meets it: names complete, types are known, objects print short."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflogic
from difflogic.circuits.readers import source
from difflogic.engine.job import Job, TrainState, make_job
from tests.train.tiny import tiny_config

LONGEST = 500


def test_type_checkers_see_what_is_exported() -> None:
    tree = ast.parse(Path(difflogic.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: "difflogic.config.presets" if alias.name == "presets" else each.module
        for each in guarded.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    assert seen == difflogic._EXPORTS  # type: ignore[attr-defined]


def test_names_complete() -> None:
    assert dir(difflogic) == sorted(difflogic.__all__)
    assert all(getattr(difflogic, name) is not None for name in difflogic.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Tariner'"):
        difflogic.Tariner  # type: ignore[attr-defined]  # noqa: B018


def objects(value: Any) -> Iterator[Any]:
    """Every dataclass in a value, and the value."""
    if is_dataclass(value):
        yield value
        for field in fields(value):
            yield from objects(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from objects(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from objects(each)


def assert_short(value: Any) -> None:
    found = list(objects(value))
    assert found
    for each in found:
        assert 0 < len(repr(each)) <= LONGEST, type(each)


def test_a_run_and_all_that_is_in_it_prints_short(tmp_path: Path) -> None:
    engine = difflogic.open_engine("reference")
    run = difflogic.Trainer(tiny_config(), engine).run(epochs=5, population=2, out=tmp_path / "run")
    assert_short(run)
    assert repr(run) == f"<Run of tiny, seed 23, in {tmp_path / 'run'}: {run.summary.splitlines()[0]}>"
    assert repr(run.circuit) == "<Circuit of 54 gates, 2 kernels, 2 channels, zero boundary>"
    assert "float32[54, 16]" in repr(run.state)
    assert_short(difflogic.evaluate(run.path, quick=True))
    assert_short(source.load(run.path))
    assert_short(difflogic.simplify(source.load(run.path).netlist))


@pytest.mark.parametrize("name", difflogic.presets.PRESETS)
def test_presets_print_short(name: str) -> None:
    config = difflogic.presets.get(name)
    assert_short(config)
    assert repr(config).startswith(f"Config(name='{name}', ")
    job: Job = make_job(config, difflogic.Circuit.initial(config.model, config.seed))
    assert_short([job, TrainState.initial(job)])


def test_a_batch_prints_its_shapes() -> None:
    grid = np.zeros((2, 5, 6, 2), dtype=np.float32)
    assert repr(difflogic.Batch(grid, grid, steps=3)) == (
        "Batch(x=float32[2, 5, 6, 2], y=float32[2, 5, 6, 2], steps=3)"
    )
    assert_short(difflogic.Batch(grid.tolist(), grid.tolist(), steps=3))
