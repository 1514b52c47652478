"""Grids as bit planes, and random words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic import coins, planes
from difflogic.errors import DataError, UsageError
from difflogic.simulation import Scene
from tests.scenes import WIDTHS, life


@given(st.integers(1, 9), st.sampled_from(WIDTHS), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_packed_and_unpacked(height: int, width: int, channels: int, seed: int) -> None:
    grid = np.random.default_rng(seed).integers(0, 2, (height, width, channels)).astype(np.uint8)
    packed = planes.pack(grid)
    assert packed.shape == (height, channels, planes.words_of(width))
    np.testing.assert_array_equal(planes.unpack(packed, width), grid)
    assert planes.population(packed) == grid.sum(axis=(0, 1)).tolist()
    assert not (packed[..., -1] & ~planes.last_word(width)).any()
    row, column, channel = height - 1, width - 1, channels - 1
    assert int(packed[row, channel, column // 64]) >> column % 64 & 1 == grid[row, column, channel]


@pytest.mark.parametrize("units", [1, 655, 16384, 32768, 39322, 65535])
def test_coins_come_up_as_often_as_they_should(units: int) -> None:
    drawn = coins.coins(coins.fire_key(23), 512, 64, units)
    count, chance = drawn.size * 64, units / coins.CERTAIN
    six_sigma = 6 * math.sqrt(chance * (1 - chance) / count)
    assert abs(int(np.bitwise_count(drawn).sum()) / count - chance) < six_sigma


def test_coins_differ_by_key_and_place() -> None:
    one, other = (coins.coins(key, 4, 3, 30000) for key in (coins.start_key(1, 0), coins.start_key(1, 1)))
    assert len(np.unique(np.concatenate([one, other]))) == 24


def test_certain_and_impossible() -> None:
    assert (coins.coins(coins.fire_key(0), 2, 2, coins.CERTAIN) == planes.ONES).all()
    assert not coins.coins(coins.fire_key(0), 2, 2, 0).any()


def test_many_words_are_the_few_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = coins.coins(coins.fire_key(5), 6, 5, 12345)
    monkeypatch.setattr(coins, "_CHUNK", 7)
    np.testing.assert_array_equal(coins.coins(coins.fire_key(5), 6, 5, 12345), whole)


def test_a_probability_is_rounded_to_sixteen_bits() -> None:
    assert coins.probability("--fire-rate", 0.6) == 39322
    assert coins.probability("--density", 0, least=0) == 0
    for value in (0, 1e-9, -1, 1.5, math.nan):
        with pytest.raises(UsageError, match=r"^--fire-rate must be between 1\.5e-05 and 1, got "):
            coins.probability("--fire-rate", value)


@pytest.mark.parametrize("sides", [(2, 9), (9, 2), (0, 3)])
def test_a_grid_of_fewer_than_three_rows_or_columns(sides: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=rf"at least 3x3 cells, got {sides[1]}x{sides[0]}"):
        Scene(life(), *sides)
