"""Curves from results."""

import pytest

from difflogic.bench import scaling
from difflogic.bench.results import Results
from tests.bench.made_up import line


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
