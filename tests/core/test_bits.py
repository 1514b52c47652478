"""Thirty-two samples in a word, and out again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflogic.bits import pack, unpack
from tests.random_circuits import bits


@given(
    st.sampled_from([1, 17, 32, 33, 64, 65]),
    st.integers(1, 3),
    st.integers(3, 6),
    st.integers(3, 6),
    st.integers(0, 2**32 - 1),
)
def test_unpacking_undoes_packing(batch: int, channels: int, height: int, width: int, seed: int) -> None:
    grids = bits(np.random.default_rng(seed), batch, height, width, channels)
    words = pack(grids)
    assert words.dtype == np.uint32
    assert words.shape == (channels, -(-batch // 32) * height * width)
    np.testing.assert_array_equal(unpack(words, grids.shape), grids)
    np.testing.assert_array_equal(unpack(np.stack([words, words]), grids.shape), np.stack([grids, grids]))


def test_sample_i_is_bit_i_of_its_group() -> None:
    grids = np.zeros((34, 3, 4, 2), dtype=np.float32)
    grids[33, 2, 1, 1] = grids[5, 2, 1, 1] = 1
    words = pack(grids).reshape(2, 2, 3, 4)  # channel, group, row, column
    assert words[1, 0, 2, 1] == 1 << 5
    assert words[1, 1, 2, 1] == 1 << 1
    words[1, :, 2, 1] = 0
    assert not words.any()
