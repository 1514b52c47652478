"""Measure back-offs and leases by a clock that cannot be set back.

The process that opens the store first after the machine's start stores the time of that start. Every process adds the
machine's uptime, so that all agree, and setting the system's clock does not change a wait.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str | None:
    """Return the system's id of the time since its start, or None if it has none."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None


def up_s() -> float:
    """Return the seconds since the system's start, including sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def begun(connection: sqlite3.Connection) -> Callable[[], float]:
    """Return the clock of a store, in seconds since 1970; the system's own without a boot id. Raises sqlite3.Error."""
    boot = boot_id()
    if boot is None:
        return time.time
    now = time.time() - up_s()
    # Nearly always it is stored already, and a read delays no writer.
    if connection.execute("SELECT boot FROM clock").fetchone()[0] != boot:
        connection.execute("UPDATE clock SET boot = ?, began = ? WHERE boot IS NOT ?", (boot, now, boot))
    began = float(connection.execute("SELECT began FROM clock").fetchone()[0])
    return lambda: began + up_s()
