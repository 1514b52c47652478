"""Describe the machine's processor."""

import os
import platform
from functools import cache
from pathlib import Path


@cache
def processor_name() -> str:
    """Return the name of the processor, such as `AMD EPYC 7B13`; on other systems than Linux, it may be generic."""
    # Stored results are identified by this name, and `platform.processor()` is empty on many Linux systems.
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]


def cores() -> int:
    """Return the number of logical processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
