"""Samples and cells into words, and out again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core.bits import (
    last_word_mask,
    pack_grids,
    pack_planes,
    population,
    unpack_grids,
    unpack_planes,
    words_per_row,
)
from tests.random_circuits import bits
from tests.simulation_cases import WIDTHS


@given(
    st.sampled_from([1, 17, 32, 33, 64, 65]),
    st.integers(1, 3),
    st.integers(3, 6),
    st.integers(3, 6),
    st.integers(0, 2**32 - 1),
)
def test_unpacking_inverts_packing(batch: int, channels: int, height: int, width: int, seed: int) -> None:
    grids = bits(np.random.default_rng(seed), batch, height, width, channels)
    words = pack_grids(grids)
    assert words.dtype == np.uint32
    assert words.shape == (channels, -(-batch // 32) * height * width)
    np.testing.assert_array_equal(unpack_grids(words, grids.shape), grids)
    np.testing.assert_array_equal(unpack_grids(np.stack([words, words]), grids.shape), np.stack([grids, grids]))


def test_sample_i_is_bit_i_of_its_group() -> None:
    grids = np.zeros((34, 3, 4, 2), dtype=np.float32)
    grids[33, 2, 1, 1] = grids[5, 2, 1, 1] = 1
    words = pack_grids(grids).reshape(2, 2, 3, 4)  # channel, group, row, column
    assert words[1, 0, 2, 1] == 1 << 5
    assert words[1, 1, 2, 1] == 1 << 1
    words[1, :, 2, 1] = 0
    assert not words.any()


@given(st.integers(1, 9), st.sampled_from(WIDTHS), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_unpacking_planes_inverts_packing(height: int, width: int, channels: int, seed: int) -> None:
    grid = np.random.default_rng(seed).integers(0, 2, (height, width, channels)).astype(np.uint8)
    packed = pack_planes(grid)
    assert packed.shape == (height, channels, words_per_row(width))
    np.testing.assert_array_equal(unpack_planes(packed, width), grid)
    assert population(packed) == grid.sum(axis=(0, 1)).tolist()
    assert not (packed[..., -1] & ~last_word_mask(width)).any()
    row, column, channel = height - 1, width - 1, channels - 1
    assert int(packed[row, channel, column // 64]) >> column % 64 & 1 == grid[row, column, channel]
