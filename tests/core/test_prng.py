"""Random numbers: threefry's known answers, JAX's stream, and coins with a probability."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core import bernoulli, bits, prng
from difflogic.errors import UsageError
from tests import parity

seeds = st.integers(0, 2**32 - 1)


def words(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint32)


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_known_answers(counter: tuple[int, int], key: tuple[int, int], answer: tuple[int, int]) -> None:
    """The threefry2x32-20 vectors of Random123's `kat_vectors`."""
    got = prng.threefry2x32(words(*key), words(counter[0]), words(counter[1]))
    assert (int(got[0][0]), int(got[1][0])) == answer


def test_key_holds_seed_in_its_low_word() -> None:
    assert prng.key_from_seed(23).tolist() == [0, 23]
    assert prng.key_from_seed(2**32 - 1).tolist() == [0, 2**32 - 1]
    assert prng.key_from_seed(5 << 32 | 7).tolist() == [5, 7]
    assert prng.key_from_seed(23).dtype == np.uint32


def test_split_equals_jax() -> None:
    """`jax.random.split(PRNGKey(0))` in the original stream, as JAX's documentation printed it for years."""
    first, second = prng.split(prng.key_from_seed(0))
    assert first.tolist() == [4146024105, 967050713]
    assert second.tolist() == [2718843009, 1272950319]


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_split_gives_the_requested_number_of_keys(count: int) -> None:
    key = prng.key_from_seed(9)
    keys = prng.split(key, count)
    assert np.concatenate(keys).tolist() == prng.random_bits(key, 2 * count).tolist()
    assert len({tuple(k.tolist()) for k in keys}) == count == len(keys)


def test_fire_masks_equal_the_authors() -> None:
    """Five steps from `PRNGKey(4)`, each one split and one draw per cell."""
    masks = parity.load("small_async")["masks"]
    key = prng.key_from_seed(4)
    for mask in masks:
        key, sub = prng.split(key)
        np.testing.assert_array_equal((prng.uniform(sub, (6, 5, 1)) <= 0.6).astype(np.float32), mask)


@pytest.mark.parametrize("bound", [0, -2, 3, 6, 511])
def test_randint_refuses_bound_that_is_not_a_power_of_two(bound: int) -> None:
    with pytest.raises(ValueError, match=f"expected a power of two as bound, got {bound}"):
        prng.randint_power_of_two(prng.key_from_seed(0), (2,), bound)


@given(seeds, st.integers(0, 300))
def test_permutation_holds_every_index_once(seed: int, count: int) -> None:
    assert sorted(prng.permutation(prng.key_from_seed(seed), count)) == list(range(count))


def test_long_permutation_sorts_twice() -> None:
    """Beyond 1625 elements one round of sorting would leave ties too likely, and JAX does a second."""
    key, sub = prng.split(prng.key_from_seed(5))
    once = np.argsort(prng.random_bits(sub, 1626), kind="stable")
    _, sub = prng.split(key)
    twice = once[np.argsort(prng.random_bits(sub, 1626), kind="stable")]
    np.testing.assert_array_equal(prng.permutation(prng.key_from_seed(5), 1626), twice)
    once = np.argsort(prng.random_bits(prng.split(prng.key_from_seed(5))[1], 1625), kind="stable")
    np.testing.assert_array_equal(prng.permutation(prng.key_from_seed(5), 1625), once)


def test_fold_in_encrypts_the_number() -> None:
    """As JAX's: the counter is the number's own key, its high word 0."""
    key = prng.key_from_seed(23)
    x0, x1 = prng.threefry2x32(key, words(0), words(2**32 - 1))
    assert prng.fold_in(key, 2**32 - 1).tolist() == [*x0, *x1]


def test_example_of_the_docstring_is_true() -> None:
    key = prng.key_from_seed(23)
    assert prng.random_bits(key, 3).tolist() == [2160167688, 3300718841, 4285582716]
    assert prng.permutation(key, 4).tolist() == [1, 2, 3, 0]


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
