"""Generate random numbers with threefry2x32 of twenty rounds, equal to JAX's original stream.

The bits equal those of `jax.random` with `jax_threefry_partitionable=False`, as in the authors' notebook, so
that seed 23 yields their wiring, grids and masks. Threefry needs only 32-bit add, rotate and xor, so
`shaders/common/threefry.wgsl` produces the same words.
Source: Salmon et al., *Parallel random numbers: as easy as 1, 2, 3* (2011).

A key is a uint32 array `[2]`. For example, seed 23 is the key `[0, 23]`; three random words under it are
2160167688, 3300718841 and 4285582716, and a permutation of four numbers is 1, 2, 3, 0.
"""

import math

import numpy as np
import numpy.typing as npt

Key = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint32]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry2x32(key: Key, x0: Words, x1: Words) -> tuple[Words, Words]:
    """Return two arrays of random words: the counters `x0` and `x1`, uint32 of equal shape, encrypted with `key`."""
    # Five groups of four rounds of adding, rotating and mixing; a part of the key is added after each group.
    schedule = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    with np.errstate(over="ignore"):  # uint32 wraps by design
        x0, x1 = x0 + schedule[0], x1 + schedule[1]
        for group in range(5):
            x0, x1 = four_rounds(x0, x1, group)
            x0 = x0 + schedule[(group + 1) % 3]
            x1 = x1 + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def four_rounds(x0: Words, x1: Words, group: int) -> tuple[Words, Words]:
    """Apply four rounds of threefry2x32 to `x0` and `x1`, without the key; `group`, 0 to 4, selects the rotations."""
    with np.errstate(over="ignore"):
        for distance in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ (x1 << np.uint32(distance) | x1 >> np.uint32(32 - distance))
    return x0, x1


def key_from_seed(seed: int) -> Key:
    """Return the key of JAX's `PRNGKey(seed)`: the high and the low 32 bits of `seed`."""
    return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], dtype=np.uint32)


def random_bits(key: Key, count: int) -> Words:
    """Return uniformly distributed random words, uint32 `[count]`."""
    # JAX pairs the first half of the counters with the second half, after appending a zero to an odd number of
    # counters. For five words, counters 0 1 2 are paired with 3 4 0, and the last of the six words is dropped.
    half = (count + 1) // 2
    counters = np.zeros(2 * half, dtype=np.uint32)
    counters[:count] = np.arange(count, dtype=np.uint32)
    return np.concatenate(threefry2x32(key, counters[:half], counters[half:]))[:count]


def split(key: Key, count: int = 2) -> tuple[Key, ...]:
    """Split `key` into `count` new keys; by convention, the first replaces `key`."""
    return tuple(random_bits(key, 2 * count).reshape(count, 2))


def fold_in(key: Key, data: int) -> Key:
    """Derive the key of stream number `data` from `key`, independent of the keys returned by `split`."""
    x0, x1 = threefry2x32(key, np.zeros(1, np.uint32), np.full(1, data, np.uint32))
    return np.concatenate([x0, x1])


def uniform(key: Key, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Sample float32 numbers uniformly from [0, 1): 23 random bits are the mantissa of a number in [1, 2), minus 1."""
    bits = random_bits(key, math.prod(shape)).reshape(shape)
    # 0x3F800000 is 1.0; with 23 random bits as the mantissa, the word is a float in [1, 2).
    return (bits >> np.uint32(9) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def normal(key: Key, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Sample float32 numbers from the standard normal distribution, two `uniform` numbers each (Box & Muller 1958)."""
    # Samples are computed in float64, since they are only needed when a run begins, and not in engines. `uniform` may
    # return 0 but never 1, so the logarithm is that of 1 minus the number.
    radius, turn = uniform(key, (2, *shape)).astype(np.float64)
    samples: npt.NDArray[np.float64] = np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * turn)
    return samples.astype(np.float32)


def randint_power_of_two(key: Key, shape: tuple[int, ...], bound: int) -> Words:
    """Sample uint32 numbers uniformly from [0, bound), for `bound` a power of two, from a subkey's words as in JAX."""
    if bound < 1 or bound & (bound - 1):
        raise ValueError(f"expected a power of two as bound, got {bound}")
    _, low = split(key)  # JAX also samples high bits, with the first subkey; a power of two does not need them
    return random_bits(low, math.prod(shape)).reshape(shape) & np.uint32(bound - 1)


def permutation(key: Key, count: int) -> npt.NDArray[np.int64]:
    """Return a random permutation of `0 .. count-1`, the result of repeated stable sorting by random words.

    As in `jax.random.permutation`, sorting is repeated until ties between words are unlikely to affect the result.
    """
    order = np.arange(count)
    rounds = math.ceil(3 * math.log(max(1, count)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sub = split(key)
        order = order[np.argsort(random_bits(sub, count), kind="stable")]
    return order
