"""Input words to evaluate a graph on: all combinations where there are few inputs, else random ones."""

from __future__ import annotations

from functools import cache

import numpy as np

from difflogic.bit_parallel import Words

MOST = 20
"""Up to so many inputs all combinations are tried: a million, 128 KB per node."""

_IN_WORD = np.array(
    [sum(1 << bit for bit in range(64) if bit >> index & 1) for index in range(6)],
    dtype=np.uint64,
)
"""Bit `s` of word `i` is bit `i` of `s`: the inputs that change within a word of 64 samples."""


@cache
def all_patterns(inputs: int) -> Words:
    """uint64 `[inputs, max(1, 2^inputs / 64)]`: input `i` of sample `s` is bit `i` of `s`.

    Below 6 inputs the combinations repeat within the one word.
    """
    words = 1 << max(0, inputs - 6)
    patterns = np.empty((inputs, words), dtype=np.uint64)
    patterns[:6] = _IN_WORD[: min(inputs, 6), None]
    for index in range(6, inputs):
        patterns[index] = np.where(np.arange(words) >> (index - 6) & 1, np.uint64(2**64 - 1), np.uint64(0))
    patterns.setflags(write=False)
    return patterns


def random_patterns(rng: np.random.Generator, inputs: int, words: int) -> Words:
    """Fair bits, uint64 `[inputs, words]`."""
    return rng.integers(0, 2**64, (inputs, words), dtype=np.uint64)


def sample(patterns: Words, index: int) -> tuple[int, ...]:
    """The bits of one sample, one per row."""
    word, bit = divmod(index, 64)
    return tuple((patterns[:, word] >> np.uint64(bit) & np.uint64(1)).tolist())


def first_one(words: Words) -> int:
    """The number of the first sample that is 1; there must be one."""
    word = int(np.flatnonzero(words)[0])
    value = int(words[word])
    return 64 * word + (value & -value).bit_length() - 1
