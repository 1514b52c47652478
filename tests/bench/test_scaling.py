"""Curves from results."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from difflogic.bench import scaling
from difflogic.bench.results import Results


def test_growth(results: Results) -> None:
    (curve,) = scaling.curves(results)
    assert (curve.axis, curve.engine, curve.sizes) == ("grid", "cpu", (16, 32, 64))
    assert curve.growth == (4.0, 5.0)


def test_picture(results: Results, tmp_path: Path) -> None:
    scaling.draw(results, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (540, 480)


def test_a_picture_of_nothing(results: Results, tmp_path: Path) -> None:
    scaling.draw(Results({**results.data, "cases": []}), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").exists()
