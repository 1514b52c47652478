"""The machine of a measurement is described, without which a number means nothing, and its memory's speed measured."""

from __future__ import annotations

import os
import platform
import threading
import time
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
    pairs = [(np.ones(COPIED_BYTES, dtype=np.uint8), np.zeros(COPIED_BYTES, dtype=np.uint8)) for _ in range(threads)]
    # The best of five: what a copy can reach, not what else ran meanwhile.
    return max(2 * COPIED_BYTES * threads / _copy_together(pairs) for _ in range(5))


def _copy_together(pairs: list[tuple[np.ndarray, np.ndarray]]) -> float:
    copies = [threading.Thread(target=np.copyto, args=(target, source)) for source, target in pairs]
    begin = time.perf_counter()
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.join()
    return time.perf_counter() - begin
