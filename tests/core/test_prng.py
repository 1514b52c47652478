"""Threefry: the published known answers, JAX's stream, and what random numbers owe their users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core import prng
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
def test_known_answers(counter: tuple[int, int], key: tuple[int, int], answer: tuple[int, int]) -> None:
    """The threefry2x32-20 vectors of Random123's `kat_vectors`."""
    got = prng.threefry2x32(words(*key), words(counter[0]), words(counter[1]))
    assert (int(got[0][0]), int(got[1][0])) == answer


def test_a_seed_is_the_low_word_of_its_key() -> None:
    assert prng.key_from_seed(23).tolist() == [0, 23]
    assert prng.key_from_seed(2**32 - 1).tolist() == [0, 2**32 - 1]
    assert prng.key_from_seed(5 << 32 | 7).tolist() == [5, 7]
    assert prng.key_from_seed(23).dtype == np.uint32


def test_bits_encrypt_the_counters_in_two_halves() -> None:
    key = prng.key_from_seed(1)
    x0, x1 = prng.threefry2x32(key, words(0, 1, 2), words(3, 4, 5))
    assert prng.random_bits(key, 6).tolist() == [*x0, *x1]


def test_an_odd_count_appends_a_zero_counter() -> None:
    key = prng.key_from_seed(1)
    x0, x1 = prng.threefry2x32(key, words(0, 1, 2), words(3, 4, 0))
    assert prng.random_bits(key, 5).tolist() == [*x0, *x1][:5]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8])
def test_bits_have_the_length_asked_for(count: int) -> None:
    got = prng.random_bits(prng.key_from_seed(1), count)
    assert got.shape == (count,)
    assert got.dtype == np.uint32


def test_split_is_jax_split() -> None:
    """`jax.random.split(PRNGKey(0))` in the original stream, as JAX's documentation printed it for years."""
    first, second = prng.split(prng.key_from_seed(0))
    assert first.tolist() == [4146024105, 967050713]
    assert second.tolist() == [2718843009, 1272950319]


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_split_gives_the_number_of_keys_asked_for(count: int) -> None:
    key = prng.key_from_seed(9)
    keys = prng.split(key, count)
    assert np.concatenate(keys).tolist() == prng.random_bits(key, 2 * count).tolist()
    assert len({tuple(k.tolist()) for k in keys}) == count == len(keys)


def test_uniform_takes_the_upper_23_bits() -> None:
    key = prng.key_from_seed(3)
    got = prng.uniform(key, (2, 5))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.reshape(-1), (prng.random_bits(key, 10) >> 9) / 2.0**23)


def test_fire_masks_are_the_authors() -> None:
    """Five steps from `PRNGKey(4)`, each one split and one draw per cell."""
    masks = parity.load("small_async")["masks"]
    key = prng.key_from_seed(4)
    for mask in masks:
        key, sub = prng.split(key)
        np.testing.assert_array_equal((prng.uniform(sub, (6, 5, 1)) <= 0.6).astype(np.float32), mask)


def test_randint_takes_the_low_bits_of_the_second_subkey() -> None:
    key = prng.key_from_seed(3)
    got = prng.randint_power_of_two(key, (3, 7), 512)
    assert got.shape == (3, 7)
    assert got.reshape(-1).tolist() == (prng.random_bits(prng.split(key)[1], 21) % 512).tolist()


@pytest.mark.parametrize("bound", [0, -2, 3, 6, 511])
def test_randint_refuses_a_bound_that_is_no_power_of_two(bound: int) -> None:
    with pytest.raises(ValueError, match=f"bound must be a power of two, got {bound}"):
        prng.randint_power_of_two(prng.key_from_seed(0), (2,), bound)


@given(seeds, st.integers(0, 300))
def test_a_permutation_holds_every_index_once(seed: int, count: int) -> None:
    assert sorted(prng.permutation(prng.key_from_seed(seed), count)) == list(range(count))


def test_permutations_of_different_keys_differ() -> None:
    drawn = {tuple(prng.permutation(prng.key_from_seed(seed), 16)) for seed in range(50)}
    assert len(drawn) == 50


def test_a_permutation_of_many_sorts_twice() -> None:
    """Beyond 1625 elements one round of sorting would leave ties too likely, and JAX does a second."""
    key, sub = prng.split(prng.key_from_seed(5))
    once = np.argsort(prng.random_bits(sub, 1626), kind="stable")
    _, sub = prng.split(key)
    twice = once[np.argsort(prng.random_bits(sub, 1626), kind="stable")]
    np.testing.assert_array_equal(prng.permutation(prng.key_from_seed(5), 1626), twice)
    once = np.argsort(prng.random_bits(prng.split(prng.key_from_seed(5))[1], 1625), kind="stable")
    np.testing.assert_array_equal(prng.permutation(prng.key_from_seed(5), 1625), once)


@given(seeds, st.integers(1, 500))
def test_uniform_lies_in_the_half_open_unit_interval(seed: int, count: int) -> None:
    drawn = prng.uniform(prng.key_from_seed(seed), (count,))
    assert (drawn >= 0).all()
    assert (drawn < 1).all()


def test_uniform_is_uniform() -> None:
    drawn = prng.uniform(prng.key_from_seed(23), (20_000,))
    counts = np.histogram(drawn, bins=10, range=(0, 1))[0]
    assert abs(counts - 2000).max() < 200  # over four standard deviations


def test_fold_in_encrypts_the_number() -> None:
    """As JAX's: the counter is the number's own key, its high word 0."""
    key = prng.key_from_seed(23)
    x0, x1 = prng.threefry2x32(key, words(0), words(2**32 - 1))
    assert prng.fold_in(key, 2**32 - 1).tolist() == [*x0, *x1]


@given(seeds, st.sets(st.integers(0, 2**32 - 1), min_size=2, max_size=20))
def test_fold_in_gives_every_number_its_own_key(seed: int, data: set[int]) -> None:
    key = prng.key_from_seed(seed)
    folded = {tuple(prng.fold_in(key, number).tolist()) for number in data}
    assert len(folded) == len(data)
    assert folded.isdisjoint({tuple(k.tolist()) for k in prng.split(key)})


def test_the_example_of_the_text() -> None:
    key = prng.key_from_seed(23)
    assert prng.random_bits(key, 3).tolist() == [2160167688, 3300718841, 4285582716]
    assert prng.permutation(key, 4).tolist() == [1, 2, 3, 0]
