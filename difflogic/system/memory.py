"""These functions say how much memory this machine has, and how much of it this process takes."""

import os
from pathlib import Path

_MEMINFO, _STATM = Path("/proc/meminfo"), Path("/proc/self/statm")


def physical_memory() -> int | None:
    """Bytes; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def free_memory() -> int | None:
    """Bytes that can be had without taking them from others; all, where the system does not tell apart."""
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return physical_memory()
    # MemAvailable counts what caches would give back, which MemFree does not.
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(found[0]) if found else physical_memory()


def resident_memory() -> int | None:
    """Bytes that this process takes; None where the system does not tell."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
