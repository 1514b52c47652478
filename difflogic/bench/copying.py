"""How fast this processor's memory is copied, for comparison."""

from __future__ import annotations

import threading
import time

import numpy as np

BYTES = 64 << 20
"""Per thread: far more than a cache holds."""


def copy_bytes_per_s(threads: int) -> float:
    """A copy by several threads at once, the best of five; each byte counts twice, read and written."""
    pairs = [(np.ones(BYTES, dtype=np.uint8), np.zeros(BYTES, dtype=np.uint8)) for _ in range(threads)]
    return max(2 * BYTES * threads / _together(pairs) for _ in range(5))


def _together(pairs: list[tuple[np.ndarray, np.ndarray]]) -> float:
    copies = [threading.Thread(target=np.copyto, args=(target, source)) for source, target in pairs]
    begin = time.perf_counter()
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.join()
    return time.perf_counter() - begin
