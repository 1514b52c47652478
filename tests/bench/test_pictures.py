"""Benchmark of custom images: it samples the same ones each time, and compares with the bits that the command reads."""

from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks import pictures
from difflogic.config import picture_file


def test_pictures_follow_from_the_seed_and_are_read_as_they_are_judged(tmp_path: Path) -> None:
    one, two = pictures.pictures(1), pictures.pictures(1)
    assert [picture.name for picture in one] == [picture.name for picture in two]
    for picture, again in zip(one, two, strict=True):
        assert np.array_equal(picture.pixels, again.pixels)
        Image.fromarray(picture.pixels).save(tmp_path / "picture.png")
        assert np.array_equal(picture_file.load(tmp_path / "picture.png", picture.colors).bits, picture.bits)
        assert picture.pixels.any()
