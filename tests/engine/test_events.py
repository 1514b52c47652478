"""Test the places of damage and faults."""

import numpy as np
import pytest

from difflogic.core import prng
from difflogic.engine.events import DAMAGE_STREAM, Damage, FaultRates, draw_corners


def test_corners_have_their_recorded_values() -> None:
    """Pinned: a run that is resumed with another version must see the same damage."""
    assert draw_corners(prng.key_from_seed(23), 2, 2, 16, 20).tolist() == [[[2, 8], [12, 16]], [[7, 16], [6, 10]]]


@pytest.mark.parametrize(("height", "width"), [(3, 3), (14, 65535)])
def test_a_corner_is_a_words_share_of_the_side(height: int, width: int) -> None:
    key = prng.key_from_seed(5)
    words = [int(word) for word in prng.random_bits(prng.fold_in(key, DAMAGE_STREAM), 300)]
    expected = [word * side // 2**32 for word, side in zip(words, [height, width] * 150, strict=True)]
    corners = draw_corners(key, 3, 50, height, width)
    assert corners.shape == (3, 50, 2)
    assert corners.reshape(-1).tolist() == expected
    assert {*corners[..., 0].flat} == set(range(height)) or height > 3


def test_corners_are_uniform() -> None:
    counts = np.bincount(draw_corners(prng.key_from_seed(1), 1, 6000, 3, 4)[0, :, 1], minlength=4)
    assert (abs(counts - 1500) < 150).all()


def test_a_square_is_clipped_at_the_border() -> None:
    damage = Damage(2, (4,), np.array([[[0, 0], [2, 3]]]))
    kept = damage.undamaged(0, 3, 4)
    assert kept.astype(int).tolist() == [
        [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]],
        [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]],
    ]


def test_faults_have_their_recorded_values() -> None:
    """The faults of a sample also do not depend on the number of samples."""
    rates, key = FaultRates(1 << 29, 1 << 30, 1 << 30), prng.key_from_seed(23)
    assert np.flatnonzero(rates.draw_flips(key, 3, 40)).tolist() == [9, 12, 35, 37, 39]
    assert rates.draw_cells(key, 20).tolist() == [0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]
    assert "".join(map(str, rates._replace(value=1).draw_gates(key, 20))) == "00200020000020200002"
    for count in (7, 20):
        assert rates.draw_flips(key, 3, count).tolist() == rates.draw_flips(key, 3, 40)[:count].tolist()
    few, more = (FaultRates(flip).draw_flips(key, 0, 4000) for flip in (1 << 26, 1 << 30))
    assert (more >= few).all()
    assert 0.2 < more.mean() < 0.3
