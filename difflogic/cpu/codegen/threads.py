"""Threads of compiled work, which run without Python's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable

from numba.core import config


def default_threads() -> int:
    """NUMBA_NUM_THREADS, else one per processor that this process may use."""
    return int(config.NUMBA_NUM_THREADS)


def together(threads: int, work: Callable[[int], None], begun: Callable[[int], None] | None = None) -> None:
    """`work(0)` here, `work(1)` ... in threads of their own; returns when all have.

    They share out items among themselves: where the system refuses a thread, the others do its part. `begun` is told
    how many there are before `work(0)` begins.
    """
    helpers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(1, threads)]
    started = []
    for helper in helpers:
        try:
            helper.start()
        except RuntimeError:  # no more threads to be had
            break
        started.append(helper)
    try:
        if begun is not None:
            begun(1 + len(started))
        work(0)
    finally:
        for helper in started:
            helper.join()
