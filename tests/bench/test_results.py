"""Results files: kept, read, refused, compared only where that means something, and drawn as curves."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from difflogic.bench import scaling
from difflogic.bench.results import Results, compare
from difflogic.errors import UsageError
from tests.bench.made_up import line


def changed(results: Results, *path: str | int, to: Any) -> Results:
    data = copy.deepcopy(results.data)
    inside: Any = data
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = to
    return Results(data)


def test_saved_and_loaded(results: Results, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\ufeff" + results.to_json())
    assert Results.load(tmp_path / "a.json").data == results.data


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "is not a readable results file of `difflogic bench`: [Errno 2] No such file"),
        ("nonsense", "is not a readable results file of `difflogic bench`: Expecting value"),
        ("[" * 100_000, "is not a readable results file of `difflogic bench`: "),
        ("[1]", "is not a results file of `difflogic bench`: it has no field `format`."),
        ('{"format": 99}', "has format 99, but this version reads format 2: measure again."),
        ('{"format": 2, "cases": []}', "is not a complete results file: it lacks engines, machine, skipped."),
    ],
)
def test_what_is_no_results_file(text: str | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as caught:
        Results.load(path)
    assert str(caught.value).startswith(f"{path} {sentence}")


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("cases",), 5, "the machine, the engines or the cases are none"),
        (("machine",), [], "the machine, the engines or the cases are none"),
        (("cases", 1), {}, "its case 1 has no name"),
        (("engines",), {}, "the engine of train/a is not described"),
        (("cases", 0, "median_ms"), "x", "median_ms of train/a should be a positive number"),
        (("cases", 0, "max_ms"), 0, "max_ms of train/a should be a positive number"),
        (("cases", 0, "gate_evaluations"), None, "gate_evaluations of train/a should be a positive number"),
    ],
)
def test_a_damaged_file(path: tuple[str | int, ...], value: object, sentence: str, results: Results, tmp_path) -> None:
    file = tmp_path / "a.json"
    file.write_text(changed(results, *path, to=value).to_json())
    with pytest.raises(UsageError) as caught:
        Results.load(file)
    assert str(caught.value) == f"{file} is damaged: {sentence}. Measure again."


def test_ratios(results: Results) -> None:
    faster = changed(results, "cases", 0, to=line("train/a", 5.0))
    busy = changed(changed(faster, "machine", "load_1min", to=9.0), "date", to="2030-01-01")
    ratios = compare(results, changed(busy, "cases", 1, to=line("grid/16", 1.05)))
    assert [(each.case, round(each.ratio, 2), each.clear) for each in ratios] == [
        ("train/a", 2.0, True),
        ("grid/16", 0.95, False),
        ("grid/32", 1.0, False),
        ("grid/64", 1.0, False),
    ]


@pytest.mark.parametrize(
    ("path", "value", "difference"),
    [
        (("machine", "processor"), "Another", "the processor is 'Processor 9' {} 'Another' {}."),
        (("machine", "cores"), 64, "the number of cores is 2 {} 64 {}."),
        (("machine", "system"), "Darwin", "the system is 'Linux' {} 'Darwin' {}."),
        (("engines", "cpu", "adapter"), "Card", "the adapter of engine cpu is 'Processor 9' {} 'Card' {}."),
        (("engines", "cpu", "driver"), "Numba 2", "the driver of engine cpu is 'Numba 1' {} 'Numba 2' {}."),
        (("cases", 0, "gate_evaluations"), 7, "train/a has 100 gate evaluations {} 7 {}."),
        (("cases",), [line("train/a", 1.0, "gpu")], "no case was measured on the same engine in both."),
    ],
)
def test_what_cannot_be_compared(results: Results, path: tuple[str | int, ...], value: Any, difference: str) -> None:
    with pytest.raises(UsageError) as caught:
        compare(results, changed(results, *path, to=value))
    difference = difference.format("in the first and", "in the second")
    assert str(caught.value) == f"The files cannot be compared: {difference}"


def test_json_has_no_infinities(results: Results) -> None:
    json.loads(results.to_json())
    with pytest.raises(ValueError, match="not JSON compliant"):
        changed(results, "machine", "load_1min", to=float("inf")).to_json()


def test_growth(results: Results) -> None:
    results.cases[-1]["rounds_ms"].pop()  # the run was interrupted
    (curve,) = scaling.curves(results)
    assert (curve.axis, curve.engine, curve.sizes) == ("grid", "cpu", (16, 32, 64))
    assert curve.growth == (4.0, 5.0)


def test_what_logging_costs(results: Results) -> None:
    assert scaling.logging_share(results, "cpu") is None
    lines = [line("train/checkerboard", 10.0), line("logged/checkerboard", 12.5)]
    found = Results({**results.data, "cases": [*lines, line("train/checkerboard", 1.0, "gpu")]})
    assert scaling.logging_share(found, "cpu") == 0.8
    assert scaling.logging_share(found, "gpu") is None


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ((2.0, 3.0, 5.0), "A train step on gpu:0 overtakes cpu between grid side 16 and 32"),
        ((0.5, 5.0, 5.0), "A train step on gpu:0 overtakes cpu between grid side 32 and 64"),
        ((0.9, 3.0, 5.0), "A train step on gpu:0 is faster than cpu from grid side 16 on, the smallest measured"),
        ((2.0, 5.0, 21.0), "A train step on gpu:0 does not overtake cpu up to grid side 64, the largest measured"),
        ((0.5, 3.0, 21.0), "A train step on gpu:0 does not overtake cpu up to grid side 64, the largest measured"),
    ],
)
def test_where_a_gpu_overtakes_the_cpu(results: Results, gpu: tuple[float, ...], said: str) -> None:
    """Beside 1, 4 and 20 ms; from where on it is faster at every size that was measured."""
    lines = [line(f"grid/{size}", ms, "gpu:0") for size, ms in zip((16, 32, 64), gpu, strict=True)]
    engines = {**results.engines, "gpu:0": {**results.engines["cpu"], "engine": "gpu"}}
    found = Results({**results.data, "engines": engines, "cases": [*results.cases, *lines]})
    assert scaling.overtaking(results) == []
    assert scaling.overtaking(found) == [said]
