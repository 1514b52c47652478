"""Test the growing share of hard gates, and their sampling."""

import itertools

import numpy as np
import pytest

from difflogic.config.train import HARDENING_EPOCHS, HardeningConfig
from difflogic.core import prng
from difflogic.engine.events import UNITS, Hardening
from difflogic.errors import ConfigError

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
