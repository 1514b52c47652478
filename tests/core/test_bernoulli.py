"""Random words, and how often their bits are 1."""

import math

import numpy as np
import pytest

from difflogic.core import bernoulli, bits, prng
from difflogic.errors import UsageError


@pytest.mark.parametrize("units", [1, 655, 16384, 32768, 39322, 65535])
def test_coins_have_the_requested_frequency(units: int) -> None:
    drawn = bernoulli.coins(bernoulli.fire_key(23), 512, 64, units)
    count, chance = drawn.size * 64, units / bernoulli.CERTAIN
    six_sigma = 6 * math.sqrt(chance * (1 - chance) / count)
    assert abs(int(np.bitwise_count(drawn).sum()) / count - chance) < six_sigma


def test_coins_differ_by_key_and_place() -> None:
    one, other = (bernoulli.coins(key, 4, 3, 30000) for key in (bernoulli.start_key(1, 0), bernoulli.start_key(1, 1)))
    assert len(np.unique(np.concatenate([one, other]))) == 24


@pytest.mark.parametrize("units", [16384, 39322])
def test_coins_of_a_word_are_pairwise_independent(units: int) -> None:
    drawn = bernoulli.coins(bernoulli.fire_key(23), 512, 64, units)
    cells = bits.unpack_bits(drawn.reshape(-1, 1), 64).astype(np.float32)
    correlations = np.corrcoef(cells.T) - np.eye(64)
    assert abs(correlations).max() < 6 / math.sqrt(len(cells))


def test_seed_gives_the_recorded_coins() -> None:
    """The word of a fair coin is a block of threefry."""
    key = prng.fold_in(bernoulli.fire_key(23), 7)
    low, high = prng.threefry2x32(key, np.arange(2, dtype=np.uint32), np.full(2, 15, np.uint32))
    fair, rare = (bernoulli.coins(key, 1, 2, units)[0] for units in (1 << 15, 39322))
    assert fair.tolist() == [int(a) | int(b) << 32 for a, b in zip(low, high, strict=True)]
    assert rare.tolist() == [9044898815358496025, 16692793760609726366]


def test_probabilities_one_and_zero_are_exact() -> None:
    assert (bernoulli.coins(bernoulli.fire_key(0), 2, 2, bernoulli.CERTAIN) == bits.ONES).all()
    assert not bernoulli.coins(bernoulli.fire_key(0), 2, 2, 0).any()


def test_longer_sample_begins_with_the_shorter_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bernoulli.coins(bernoulli.fire_key(5), 6, 5, 12345)
    monkeypatch.setattr(bernoulli, "_CHUNK", 7)
    np.testing.assert_array_equal(bernoulli.coins(bernoulli.fire_key(5), 6, 5, 12345), whole)


def test_probability_is_rounded_to_sixteen_bits() -> None:
    assert bernoulli.probability("--fire-rate", 0.6) == 39322
    assert bernoulli.probability("--density", 0, least=0) == 0
    for value in (0, 1e-9, -1, 1.5, math.nan):
        with pytest.raises(UsageError, match=r"^--fire-rate must be between 1\.5e-05 and 1, got "):
            bernoulli.probability("--fire-rate", value)
