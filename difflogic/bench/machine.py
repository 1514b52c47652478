"""Describe the machine of a measurement, and measure the speed of its memory."""

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np

from difflogic.runs.manifest import git_commit
from difflogic.system.processor import cores, processor_name
from difflogic.version import __version__

COPIED_BYTES = 64 << 20
"""Number of bytes that each thread copies, far more than the size of a cache."""


def stamp() -> dict[str, Any]:
    """Return the date, commit, machine and software versions as a dictionary for a results file."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None  # of the last minute
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": (git_commit() or "unknown")[:12],
        "machine": {"processor": processor_name(), "cores": cores(), "system": platform.system(), "load_1min": load},
        "versions": {
            "difflogic": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            **{name: metadata.version(name) for name in ("wgpu", "numba")},
        },
    }


def copy_bytes_per_s(threads: int) -> float:
    """Return the best rate of five copies by `threads` threads; each byte counts twice, for reading and writing."""
    pairs = [(np.zeros(COPIED_BYTES, dtype=np.uint8), np.ones(COPIED_BYTES, dtype=np.uint8)) for _ in range(threads)]
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        # The best copy is the one least disturbed by other processes.
        for _ in range(5):
            begin = time.perf_counter()
            list(pool.map(np.copyto, *zip(*pairs, strict=True)))
            seconds.append(time.perf_counter() - begin)
    return 2 * COPIED_BYTES * threads / min(seconds)
