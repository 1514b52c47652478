"""Places of damage and faults, and the growing share of hard gates."""

import itertools

import numpy as np
import pytest

from difflogic.config.train import HARDENING_EPOCHS, HardeningConfig
from difflogic.core import prng
from difflogic.engine.events import DAMAGE_STREAM, UNITS, Damage, FaultRates, Hardening, draw_corners
from difflogic.errors import ConfigError


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


GROWING = Hardening(first=10, length=100, peak=UNITS // 2)


def test_the_share_grows_evenly_and_stays() -> None:
    shares = [GROWING.share(epoch) for epoch in range(200)]
    assert set(shares[:11]) == {0}
    assert shares[60] == UNITS // 4
    assert set(shares[110:]) == {UNITS // 2}
    assert {b - a for a, b in itertools.pairwise(shares)} == {0, 327, 328}


def test_products_stay_below_two_to_the_32() -> None:
    """Then 32-bit words give the same shares."""
    longest = Hardening(0, HARDENING_EPOCHS - 1, UNITS)
    assert longest.peak * longest.length < 2**32
    assert longest.share(2**32 - 1) == UNITS


def test_without_hardening_no_gate_is_ever_hard() -> None:
    assert Hardening.of(HardeningConfig()) == Hardening()
    assert not Hardening().draw(prng.key_from_seed(1), 10**6, 999).any()


@pytest.mark.parametrize("gates", [1, 2, 999, 1000])
def test_hard_gates_are_sampled_again_each_epoch(gates: int) -> None:
    key = prng.key_from_seed(5)
    draws = np.stack([GROWING.draw(each, 110, gates) for each in prng.split(key, 64)])
    assert draws.shape == (64, gates)
    assert draws.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(draws.size))
    assert (draws.any(axis=0) & ~draws.all(axis=0)).all()


def test_a_larger_share_only_adds_gates() -> None:
    key = prng.key_from_seed(7)
    fewer, more = GROWING.draw(key, 40, 3040), GROWING.draw(key, 80, 3040)
    assert (more >= fewer).all()
    assert more.sum() > fewer.sum() > 0


@pytest.mark.parametrize(("begin", "end"), [(5, 5), (6, 5), (0, HARDENING_EPOCHS)])
def test_impossible_hardening_schedule_is_refused(begin: int, end: int) -> None:
    with pytest.raises(ConfigError, match=rf"1 to 65535 epochs after hardening\.begin, {begin}, got {end}\.$"):
        HardeningConfig(0.5, begin, end)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_0_and_1(share: float) -> None:
    with pytest.raises(ConfigError, match=r"^hardening\.share must be a number in \[0, 1\], got"):
        HardeningConfig(share, end=9)
