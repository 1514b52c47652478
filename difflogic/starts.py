"""Fresh start grids, and which grids of a sample pool a batch takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic import prng

POOL_STREAM = 0x706F6F6C
"""`fold_in` data ("pool"): of a run's first data key for the grids that fill the pool, and of an epoch's data subkey
for the places that it takes grids from."""

Grids = npt.NDArray[np.uint8]


def boards(numbers: npt.NDArray[np.integer], height: int, width: int) -> Grids:
    """`[N, H, W, 1]`: board `i` is the bits of `i`, row by row, most significant first."""
    bits = numbers[:, None] >> np.arange(height * width, dtype=numbers.dtype)[::-1] & 1
    return bits.reshape(-1, height, width, 1).astype(np.uint8)


def draw(kind: str, key: prng.Key, shape: tuple[int, int, int, int], same: Grids | None) -> Grids:
    """`shape = [N, H, W, C]` of 0 and 1: fair bits (`random`), boards drawn from all (`boards`), or all `same`."""
    count, height, width, _ = shape
    if same is not None:
        return np.repeat(same[None], count, axis=0)
    if kind == "boards":
        return boards(prng.randint_power_of_two(key, (count,), 1 << height * width), height, width)
    return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def places(key: prng.Key, batch: int, pool: int) -> npt.NDArray[np.int64]:
    """`[batch]`: sample `b` takes its grid from the pool's `b`-th part; `key` is the epoch's data subkey."""
    part = pool // batch
    within = prng.randint_power_of_two(prng.fold_in(key, POOL_STREAM), (batch,), part)
    found: npt.NDArray[np.int64] = part * np.arange(batch) + within
    return found
