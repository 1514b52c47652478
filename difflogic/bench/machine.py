"""The machine of a measurement is described, without which a number means nothing, and its memory's speed measured."""

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
"""Per thread: far more than a cache holds."""


def stamp() -> dict[str, Any]:
    """Date, commit, machine and versions of this moment."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": (git_commit() or "unknown")[:12],
        "machine": {"processor": processor_name(), "cores": cores(), "system": platform.system(), "load_1min": load()},
        "versions": {
            "difflogic": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            **{name: metadata.version(name) for name in ("wgpu", "numba")},
        },
    }


def load() -> float | None:
    """How many processes wanted to run, in the mean of the last minute; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def copy_bytes_per_s(threads: int) -> float:
    """A copy by several threads at once, the best of five; each byte counts twice, read and written."""
    pairs = [(np.zeros(COPIED_BYTES, dtype=np.uint8), np.ones(COPIED_BYTES, dtype=np.uint8)) for _ in range(threads)]
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        # The best of five: what a copy can reach, not what else ran meanwhile.
        for _ in range(5):
            begin = time.perf_counter()
            list(pool.map(np.copyto, *zip(*pairs, strict=True)))
            seconds.append(time.perf_counter() - begin)
    return 2 * COPIED_BYTES * threads / min(seconds)
