"""Recordings and strips show the given states, to the pixel."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from difflogic.core.wiring import NEIGHBOURHOODS
from difflogic.runs import film
from difflogic.runs.plots import colors


def frames_of(data: bytes) -> tuple[np.ndarray, list[float]]:
    """RGB `[n, h, w, 3]` and milliseconds."""
    with Image.open(io.BytesIO(data)) as picture:
        frames, durations = [], []
        for index in range(picture.n_frames):
            picture.seek(index)
            frames.append(np.asarray(picture.convert("RGB")))
            durations.append(picture.info["duration"])
        assert picture.info["loop"] == 0
    return np.stack(frames), durations


@pytest.mark.parametrize("kind", ["gif", "apng"])
@pytest.mark.parametrize("channels", [1, 3, 6])
def test_an_animation_is_exact(kind: str, channels: int):
    rng = np.random.default_rng(channels)
    states = rng.integers(0, 2, (5, 9, 7, channels), dtype=np.uint8)
    frames, durations = frames_of(film.animation(colors(states), kind, scale=3, frame_ms=50))
    assert np.array_equal(frames[:, 1::3, 1::3], colors(states))
    assert frames.shape == (5, 27, 21, 3)
    assert durations == [50, 50, 50, 50, film.LAST_FRAME_MS]


@pytest.mark.parametrize("kind", ["gif", "apng"])
def test_what_stands_still_takes_its_time(kind: str):
    states = np.zeros((6, 4, 4, 1), dtype=np.uint8)
    states[3:, 1, 1] = 1
    frames, durations = frames_of(film.animation(colors(states), kind))
    assert sum(durations) == 5 * film.FRAME_MS + film.LAST_FRAME_MS
    assert np.array_equal(frames[-1][192, 192], [255, 255, 255])


@pytest.mark.parametrize(("side", "scale"), [(3, 170), (16, 32), (64, 8), (100, 5), (1000, 1)])
def test_scale(side: int, scale: int):
    assert film.scale_for(np.zeros((2, side, side // 2, 3), dtype=np.uint8)) == scale


def test_tiles():
    states = np.random.default_rng(1).integers(0, 2, (2, 4, 5, 5), dtype=np.uint8)
    shown = film.tiles(states)
    assert shown.shape == (2, 2 * 5 - 1, 3 * 6 - 1, 3)
    for channel in range(5):
        top, left = channel // 3 * 5, channel % 3 * 6
        tile = shown[:, top : top + 4, left : left + 5]
        assert np.array_equal(tile, np.repeat(states[..., channel : channel + 1] * 255, 3, axis=-1))
    assert np.array_equal(shown[0, 4, 0], film.GAP)
    assert np.array_equal(shown[0, -1, -1], film.GAP)  # no sixth channel


def test_strip():
    states = np.random.default_rng(1).integers(0, 2, (5, 30, 100, 1), dtype=np.uint8)
    with Image.open(io.BytesIO(film.strip(colors(states), list("abcde"), scale=5))) as picture:
        pixels: Any = np.asarray(picture.convert("RGB"))
    assert pixels.shape[1] <= film.STRIP_WIDTH
    across = (film.STRIP_WIDTH - film.MARGIN) // (500 + film.MARGIN)
    assert across == 3
    row_height = (pixels.shape[0] - film.MARGIN) // 2
    for index in range(5):
        top = film.MARGIN + index // across * row_height
        left = film.MARGIN + index % across * (500 + film.MARGIN)
        assert np.array_equal(pixels[top : top + 150 : 5, left : left + 500 : 5], colors(states[index]))
        label = pixels[top + 150 : top + row_height, left : left + 20]
        assert label.min() < 100


def test_six_bits_are_sixty_four_colours():
    bits = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(np.uint8)
    assert len({tuple(color) for color in colors(bits).tolist()}) == 64


@pytest.mark.parametrize(("height", "width", "scale"), [(1, 3, 8), (3, 3, 12), (5, 2, 9), (4, 6, 1)])
def test_hexagons_touch_the_six_cells_that_they_read(height: int, width: int, scale: int) -> None:
    """And no others; all are of one size, to a pixel or so on each side."""
    cells = film.pixels_of((height, width), scale, "hex")
    wide, none = max(4, scale), height * width
    areas = np.bincount(cells.reshape(-1), minlength=none + 1)[:none]
    hexagon = wide**2 * np.sqrt(3) / 2
    assert np.abs(areas - hexagon).max() <= 2 * wide
    beside = np.concatenate([
        np.stack([cells[:, :-1], cells[:, 1:]], axis=-1).reshape(-1, 2),
        np.stack([cells[:-1], cells[1:]], axis=-1).reshape(-1, 2),
    ])  # fmt: skip
    touching = {(int(a), int(b)) for a, b in np.sort(beside, axis=1) if a != b and b != none}
    ways = [(dy, dx) for dy, dx in (divmod(f, 3) for f in NEIGHBOURHOODS["hex"]) if (dy, dx) > (1, 1)]
    expected = {
        (y * width + x, (y + dy - 1) * width + x + dx - 1)
        for y in range(height) for x in range(width) for dy, dx in ways
        if y + dy - 1 < height and 0 <= x + dx - 1 < width
    }  # fmt: skip
    assert touching == expected


def test_of_one_row_all_steps_are_shown_downwards() -> None:
    rows = np.array([[0, 255, 0], [255, 255, 0], [0, 0, 255]], dtype=np.uint8)
    frames = rows[:, None, :, None].repeat(3, axis=3)
    shown = film.space_time(frames)
    np.testing.assert_array_equal(shown[2, ..., 0], rows)
    np.testing.assert_array_equal(shown[1, :2, :, 0], rows[:2])
    assert (shown[1, 2] == film.PAPER).all()
    picture = Image.open(io.BytesIO(film.strip(frames, ["step 0", "step 1", "step 2"], 4)))
    seen = [picture.getpixel((film.MARGIN + 4 * x + 1, film.MARGIN + 9)) for x in range(3)]
    assert seen == [(0, 0, 0), (0, 0, 0), (255, 255, 255)]


def test_a_long_row_of_many_steps_is_thinned() -> None:
    """Its frames together would be the steps' square times the width: 3 GB of these."""
    frames = np.zeros((1000, 1, 1000, 3), dtype=np.uint8)
    frames[-1] = 255
    shown = film.space_time(frames)
    assert shown.shape == (250, 250, 250, 3)
    assert (shown[-1, -1] == 255).all()
