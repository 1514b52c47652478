"""Random numbers in compiled code, bit for bit equal to those of `difflogic.core.prng`."""

from typing import Any

import numpy as np

from difflogic.cpu.codegen.compiled import inlined


@inlined
def threefry2x32(key0: Any, key1: Any, x0: Any, x1: Any) -> Any:
    """Return two random words for the key `(key0, key1)` and the counter `(x0, x1)`; all words are uint32."""
    # The key schedule has three words; the third and its constant come from Threefish (Skein), so that a key of zeros
    # still mixes. Unrolled, so that the rotation distances are constants of the machine code.
    key2 = np.uint32(key0 ^ key1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = np.uint32(x0 + key0), np.uint32(x1 + key1)
    x0, x1 = _four_rounds(x0, x1, 13, 15, 26, 6)
    x0, x1 = np.uint32(x0 + key1), np.uint32(x1 + key2 + np.uint32(1))
    x0, x1 = _four_rounds(x0, x1, 17, 29, 16, 24)
    x0, x1 = np.uint32(x0 + key2), np.uint32(x1 + key0 + np.uint32(2))
    x0, x1 = _four_rounds(x0, x1, 13, 15, 26, 6)
    x0, x1 = np.uint32(x0 + key0), np.uint32(x1 + key1 + np.uint32(3))
    x0, x1 = _four_rounds(x0, x1, 17, 29, 16, 24)
    x0, x1 = np.uint32(x0 + key1), np.uint32(x1 + key2 + np.uint32(4))
    x0, x1 = _four_rounds(x0, x1, 13, 15, 26, 6)
    return np.uint32(x0 + key2), np.uint32(x1 + key0 + np.uint32(5))


@inlined
def _four_rounds(x0: Any, x1: Any, r0: Any, r1: Any, r2: Any, r3: Any) -> Any:
    x0, x1 = _round(x0, x1, r0)
    x0, x1 = _round(x0, x1, r1)
    x0, x1 = _round(x0, x1, r2)
    return _round(x0, x1, r3)


@inlined
def _round(x0: Any, x1: Any, distance: Any) -> Any:
    x0 = np.uint32(x0 + x1)
    # LLVM recognises this pattern as one rotation.
    rotated = np.uint32(x1 << np.uint32(distance)) | np.uint32(x1 >> np.uint32(32 - distance))
    return x0, np.uint32(x0 ^ rotated)


@inlined
def split(key0: Any, key1: Any) -> Any:
    """Return the two keys of `difflogic.core.prng.split` as four words."""
    a0, b0 = threefry2x32(key0, key1, np.uint32(0), np.uint32(2))
    a1, b1 = threefry2x32(key0, key1, np.uint32(1), np.uint32(3))
    return a0, a1, b0, b1


@inlined
def pair_of_bits(key0: Any, key1: Any, index: Any, count: Any) -> Any:
    """Return words `index` and `half + index` of `prng.random_bits(key, count)`; `half` is `(count + 1) // 2`.

    If `half + index` equals `count`, which is possible only if `count` is odd, the second word must be ignored.
    """
    # For 5 words the counters are 0 to 4, padded with a 0 to an even number. Blocks pair the halves: (0, 3), (1, 4),
    # (2, 0).
    second = (count + 1) // 2 + index
    counter = np.uint32(second) if second < count else np.uint32(0)
    return threefry2x32(key0, key1, np.uint32(index), counter)


@inlined
def word_of_bits(key0: Any, key1: Any, index: Any, count: Any) -> Any:
    """Return word `index` of `difflogic.core.prng.random_bits(key, count)`."""
    # A block has the words of two indices half of `count` apart. So it may be computed twice, which costs little.
    half = (count + 1) // 2
    low, high = pair_of_bits(key0, key1, index % half, count)
    return low if index < half else high
