"""Curves from results."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from difflogic.bench import scaling
from difflogic.bench.results import Results
from tests.bench.made_up import line


def test_growth(results: Results) -> None:
    (curve,) = scaling.curves(results)
    assert (curve.axis, curve.engine, curve.sizes) == ("grid", "cpu", (16, 32, 64))
    assert curve.growth == (4.0, 5.0)


def test_what_is_compared_is_compared_round_by_round() -> None:
    """A machine that becomes slower between rounds changes the medians' ratio, not that of neighbours."""
    old, new = line("grid/16", 1.0), line("grid/32", 4.0)
    drift = [1.0, 3.0, 2.0]
    old["rounds_ms"], new["rounds_ms"] = drift, [4 * each for each in drift]
    assert scaling.ratio(new, old) == 4.0
    new["rounds_ms"] = [4.0, 15.0, 8.2]
    assert scaling.ratio(new, old) == 4.1


def test_what_logging_costs(results: Results) -> None:
    assert scaling.logging_share(results, "cpu") is None
    lines = [
        line("train/checkerboard", 10.0),
        line("logged/checkerboard", 12.5),
        line("train/checkerboard", 1.0, "gpu"),
    ]
    found = Results({**results.data, "cases": lines})
    assert scaling.logging_share(found, "cpu") == 0.8
    assert scaling.logging_share(found, "gpu") is None


def test_picture(results: Results, tmp_path: Path) -> None:
    scaling.draw(results, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (540, 480)


def test_a_picture_of_nothing(results: Results, tmp_path: Path) -> None:
    scaling.draw(Results({**results.data, "cases": []}), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").exists()
