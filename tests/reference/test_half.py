"""Values in 16 bits: how far they may be off, and that the ends of a range are exact."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflogic.reference.kernels.half import CHUNK, decode, encode

UNIT = 2.0**-16
"""What the ends of a range are multiples of."""

cells = st.integers(1, 3 * CHUNK + 1)
reals = st.floats(0, 1, width=32)
values = cells.flatmap(lambda count: arrays(np.float32, (2, count), elements=reals))


def rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return decode(*encode(values))


@given(values)
def test_values_move_by_less_than_a_step(values: npt.NDArray[np.float32]) -> None:
    """A step is 2/65535 of the range in its middle, and shrinks to nothing towards its ends."""
    got = rounded(values).astype(float)
    for first in range(0, values.shape[1], CHUNK):
        span = slice(first, first + CHUNK)
        least = np.floor(values[:, span].min(1, keepdims=True) / UNIT) * UNIT
        largest = np.maximum(np.ceil(values[:, span].max(1, keepdims=True) / UNIT) * UNIT, least + UNIT)
        width = largest - least
        near = np.minimum(values[:, span] - least, largest - values[:, span]).clip(0) / width
        step = width * 2 * (2 * np.sqrt(near / 2) / 65535 + 65535.0**-2)
        off = np.abs(got[:, span] - values[:, span])
        assert (off <= 0.51 * step + 2.0**-24 * values[:, span] + 2.0**-30).all()


@given(values)
def test_noughts_and_ones_stay(values: npt.NDArray[np.float32]) -> None:
    values = np.round(values)
    np.testing.assert_array_equal(rounded(values), values)


@given(values, st.integers(1, 2**16))
def test_chunks_know_nothing_of_each_other(values: npt.NDArray[np.float32], seed: int) -> None:
    other = np.random.default_rng(seed).random((2, CHUNK), dtype=np.float32)
    np.testing.assert_array_equal(rounded(np.concatenate([other, values], axis=1))[:, CHUNK:], rounded(values))


def test_what_lies_outside_is_0_or_1() -> None:
    """Rounding leaves soft values there by a few units in the last place."""
    got = rounded(np.float32([[-1e-7, 0.5, 1 + 1e-6]]))
    np.testing.assert_array_equal(got[0, [0, 2]], [0, 1])
