"""Use of the library in a notebook: names complete, types are known, objects print short."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflogic
from difflogic.circuits.readers import source
from difflogic.engine.job import Job, TrainState, make_job
from difflogic.errors import DataError, UsageError
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


@pytest.fixture(scope="module")
def run() -> difflogic.Run:
    """A run in memory, with two models and samples."""
    x = np.random.default_rng(0).integers(0, 2, (8, 5, 6))
    samples = difflogic.Dataset.of(x, 1 - x)
    trained = difflogic.fit(data=samples, epochs=2, engine="reference", population=2)
    assert isinstance(trained, difflogic.Run)
    assert trained.path is None
    return trained


@pytest.mark.parametrize(
    "use",
    [
        lambda run, _: difflogic.evaluate(run, difflogic.open_engine("reference"), starts=1),
        lambda run, _: difflogic.prove(run),
        lambda run, folder: difflogic.render(run, folder / "film.gif", engine=difflogic.open_engine("reference")),
        lambda run, _: difflogic.harden(run, epochs=1, engine="reference"),
        lambda run, _: difflogic.fit(run.config, seed=3, data=run.data, init_from=run, engine="reference", epochs=1),
        lambda _, folder: difflogic.simplify(
            difflogic.solve(tiny_config(epochs=1), within=1, engine="reference", out=folder / "attempts")
        ),
        lambda run, _: difflogic.load(difflogic.load_run(run)),
        lambda run, _: difflogic.export(difflogic.simplify(run), ["c"]),
        lambda run, _: difflogic.prove(difflogic.load("B3/S23"), difflogic.load("B3/S23"), judges=["difflogic"]),
    ],
)
def test_functions_take_the_results_of_functions(use, run: difflogic.Run, tmp_path) -> None:
    assert use(run, tmp_path)


@pytest.mark.parametrize("use", [difflogic.evaluate, difflogic.load, difflogic.load_run, difflogic.simplify])
def test_object_of_another_type_is_refused_in_one_sentence(use: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match="an object of type int"):
        use(3)


def test_misspelled_option_is_refused_with_the_nearest_name() -> None:
    trainer = difflogic.Trainer(tiny_config(), difflogic.open_engine("reference"))
    for train in (trainer.run, partial(difflogic.fit, tiny_config(), engine="reference")):
        with pytest.raises(UsageError, match=r"Unknown option `popluation` \(did you mean population\?\): expected "):
            train(popluation=2)


@pytest.mark.parametrize("shape", [(2, 5, 7, 1), (2, 5, 7), (5, 7, 1), (5, 7)])
def test_rollout_takes_one_grid_or_many(shape: tuple[int, ...]) -> None:
    life, grids = difflogic.load("B3/S23"), np.random.default_rng(0).integers(0, 2, shape)
    same = life.netlist.rollout(grids.reshape(-1, 5, 7, 1), 3)
    np.testing.assert_array_equal(life.rollout(grids.tolist(), 3), same.reshape(4, *shape))
    for x in (np.full((5, 7), 2), np.zeros(7), np.zeros((5, 7, 3, 2))):
        with pytest.raises(DataError, match=r"x must (have shape|be 0 or 1)"):
            life.rollout(x, 1)


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


def test_run_and_its_parts_print_short(tmp_path: Path) -> None:
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
    shown = "Batch(x=float32[2, 5, 6, 2], y=float32[2, 5, 6, 2], steps=3)"
    assert repr(difflogic.Batch(grid, grid, steps=3)) == shown
    assert_short(difflogic.Batch(grid.tolist(), grid.tolist(), steps=3))
