"""Small images as rows of text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflogic.core import text_picture
from difflogic.errors import DataError


@given(st.integers(1, 6).flatmap(lambda n: arrays(np.uint8, (3, 5, n), elements=st.integers(0, 1))))
def test_text_holds_bits_of_channels(bits):
    rows = text_picture.encode(bits)
    assert np.array_equal(text_picture.decode(rows, bits.shape[-1]), bits)
    assert not text_picture.decode(rows, 9)[..., bits.shape[-1] :].any()


def test_red_green_and_blue_are_the_first_channels():
    assert text_picture.decode(("124",), 3).tolist() == [[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), "rows of equal length"),
        (("",), "rows of equal length"),
        (("..", "."), r"got lengths \[2, 1\]"),
        (("#",), "got '#'"),
        ((".2",), "the character '2' requires more channels than 1."),
    ],
)
def test_text_that_is_no_image_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        text_picture.decode(rows, 1)
