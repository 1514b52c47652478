"""Threads of compiled work, which run without Python's lock."""

import threading
from collections.abc import Callable

from numba.core import config


def default_threads() -> int:
    """NUMBA_NUM_THREADS, else one per processor that this process may use."""
    return int(config.NUMBA_NUM_THREADS)


def together(threads: int, work: Callable[[int], None]) -> None:
    """`work(0)` here, `work(1)` ... in threads of their own; returns when all have.

    They share out items among themselves: where the system refuses a thread, the others do its part.
    """
    # New threads for every call: a call takes tens of milliseconds, a thread some tens of microseconds, and a pool
    # would have to outlive forks and exceptions.
    helpers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(1, threads)]
    started = []
    for helper in helpers:
        try:
            helper.start()
        except RuntimeError:  # no more threads to be had
            break
        started.append(helper)
    try:
        work(0)
    finally:
        for helper in started:
            helper.join()
