"""What a target looks like."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.train import pictures, tasks


def cells_of(config: Config) -> np.ndarray:
    """RGB of target.png, a pixel per cell."""
    job = tasks.make_job(config, Circuit.initial(config.model, config.seed))
    with Image.open(io.BytesIO(pictures.target_png(job))) as picture:
        return np.asarray(picture)[::8, ::8]


@pytest.mark.parametrize(
    ("bits", "rgb"),
    [
        ([1], [255, 255, 255]),
        ([0, 1], [0, 255, 0]),
        ([1, 0, 1], [255, 0, 255]),
        ([1, 0, 1, 0, 1, 1], [170, 85, 255]),
        ([1, 0, 0, 0, 0, 0, 1, 1], [170, 0, 0]),
    ],
)
def test_colours(bits: list[int], rgb: list[int]) -> None:
    assert pictures.colors(np.array(bits, dtype=np.uint8)).tolist() == rgb


def test_a_picture_in_its_colours() -> None:
    cells = cells_of(presets.colored_g())
    assert cells[1, 5].tolist() == [255, 0, 0]
    assert cells[7, 2].tolist() == [255, 255, 0]
    assert cells[:, :, 2].sum() == 27 * 255


def test_a_rule_is_shown_by_boards_and_what_becomes_of_them() -> None:
    """Each has a grey border; the first board is empty, the last is full, where nothing survives."""
    cells = cells_of(presets.game_of_life())[..., 0]
    assert cells.shape == (2 * 5, 8 * 5)
    boards = cells.reshape(2, 5, 8, 5).transpose(0, 2, 1, 3)
    assert (boards[:, :, 0] == 128).all()
    inside = boards[:, :, 1:4, 1:4]
    assert not inside[:, 0].any()
    assert (inside[0, 7] == 255).all()
    assert not inside[1, 7].any()
    assert inside[0, 3].sum() == 255 * (511 * 3 // 7).bit_count()
