"""What a measurement was made on: without it a number means nothing."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import difflogic
from difflogic.train.manifest import git_commit


def stamp() -> dict[str, Any]:
    """Date, commit, machine and versions of this moment."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": (git_commit() or "unknown")[:12],
        "machine": {"processor": processor(), "cores": cores(), "system": platform.system(), "load_1min": load()},
        "versions": {
            "difflogic": difflogic.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            **{name: metadata.version(name) for name in ("wgpu", "numba")},
        },
    }


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> float | None:
    """How many processes wanted to run, in the mean of the last minute; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def processor() -> str:
    """The processor's name."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]
