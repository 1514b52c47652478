"""Sample bits that are 1 with a given probability, 64 at a time, for fire masks and random initial states.

All engines sample equal bits. Each bit is 1 if a random 16-bit number `u` is less than the probability `p` in units of
2^-16. 64 such numbers are compared at once, bit by bit from the lowest: `less = u_k' | less` if bit `k` of `p` is 1,
otherwise `u_k' & less`. The word `u_k'` has the complements of bit `k` of all `u`, which are equally random. If bit `n`
is the lowest 1 of `p`, bits below it have no effect and are not sampled. In word `j` of row `y`, with `words` words per
row, `u_n'` is the threefry2x32 block of the counter `(y*words + j, n)`, its first word in the lower half. Each further
`u_k'` is the previous one after four more rounds of threefry. A new block for each bit would take five times as long.
In a test of two million words, four rounds left no dependence between two or three bits of a word; three rounds left
groups of five dependent bits, and two rounds some dependent pairs.
"""

import numpy as np

from difflogic.core import prng
from difflogic.core.bits import Planes
from difflogic.errors import UsageError

BITS = 16
CERTAIN = 1 << BITS
"""Probability 1 in units of 2^-16."""

_CHUNK = 1 << 16
"""Maximum number of words sampled at a time, to limit the memory used."""


def probability(name: str, value: float, least: int = 1) -> int:
    """Round a probability to units of 2^-16. Raises UsageError about `name` if it is below `least` units or above 1."""
    units = round(value * CERTAIN) if 0 <= value <= 1 else -1
    if units < least:
        lowest = f"{least / CERTAIN:.2g}" if least else "0"
        raise UsageError(f"{name} must be between {lowest} and 1, got {value:g}.")
    return units


def coins(key: prng.Key, height: int, words: int, units: int) -> Planes:
    """Return sampled words, uint64 `[height, words]`, each of whose bits is 1 with probability `units / 2^16`."""
    if units == CERTAIN:
        return np.full((height, words), 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)
    less = np.zeros(height * words, dtype=np.uint64)
    for start in range(0, len(less) if units else 0, _CHUNK):
        # The words are sampled in parts, since the counters and words of a large grid need several times its memory.
        part = less[start : start + _CHUNK]
        counters = np.arange(start, start + len(part)).astype(np.uint32)
        # For p = 0.75, which is 0b11 << 14, two bits are sampled, 14 and 15: `less` is u_14', then u_15' | u_14', which
        # is 1 in three of four cases.
        lowest = (units & -units).bit_length() - 1
        low, high = prng.threefry2x32(key, counters, np.full_like(counters, lowest))
        for k in range(lowest, BITS):
            if k > lowest:
                low, high = prng.four_rounds(low, high, 1)
            sampled = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
            part[:] = sampled | part if units >> k & 1 else sampled & part
    return less.reshape(height, words)


def start_key(seed: int, channel: int) -> prng.Key:
    """Return the random key of a channel's random initial state."""
    return prng.fold_in(prng.fold_in(prng.key_from_seed(seed), 0), channel)


def fire_key(seed: int) -> prng.Key:
    """Return the random key of fire masks: `fold_in(fire_key, t)` is the key of step `t`, counted from 0."""
    return prng.fold_in(prng.key_from_seed(seed), 1)
