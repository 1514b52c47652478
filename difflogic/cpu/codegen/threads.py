"""Run compiled code in several threads, which do not hold Python's global lock (GIL)."""

import threading
from collections.abc import Callable
from contextlib import suppress

from numba.core import config


def default_threads() -> int:
    """Return NUMBA_NUM_THREADS if set, otherwise the number of processors that this process may use."""
    return int(config.NUMBA_NUM_THREADS)


def together(threads: int, work: Callable[[int], None]) -> None:
    """Run `work(0)` in this thread and `work(1)` to `work(threads - 1)` in new threads; return when all have finished.

    `work` must take its items from a shared counter: if the system refuses a thread, the other threads do all items.
    """
    # New threads for every call: starting one takes tens of microseconds of a call's tens of milliseconds, and a pool
    # would have to survive forks and exceptions.
    started = []
    with suppress(RuntimeError):  # the system refuses more threads
        for number in range(1, threads):
            helper = threading.Thread(target=work, args=(number,), daemon=True)
            helper.start()
            started.append(helper)
    try:
        work(0)
    finally:
        for helper in started:
            helper.join()
