"""Measure the memory of the machine and of this process."""

import os
from pathlib import Path

_MEMINFO, _STATM = Path("/proc/meminfo"), Path("/proc/self/statm")


def physical_memory() -> int | None:
    """Return the size of the machine's memory in bytes, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def free_memory() -> int | None:
    """Return the size of the available memory in bytes, or of all memory if the system does not report it."""
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return physical_memory()
    # Unlike MemFree, MemAvailable includes memory that caches would release.
    available = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(available[0]) if available else physical_memory()


def resident_memory() -> int | None:
    """Return the size of this process's resident memory in bytes, or None if the system does not report it."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
