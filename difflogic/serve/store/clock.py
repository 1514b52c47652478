"""Clock for back-offs and leases that cannot be set back.

The first process that opens the store after a boot of the machine stores the time of the boot. All processes add the
machine's uptime to this time, so that they agree, and a change of the system clock affects no back-off or lease.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str | None:
    """Return the identifier of the machine's current boot, or None if the system has no such identifier."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None


def up_s() -> float:
    """Return the seconds since the system's start, including time in suspension."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def begun(connection: sqlite3.Connection) -> Callable[[], float]:
    """Return the store's clock, which returns seconds since 1970; it is the system clock if there is no boot id."""
    boot = boot_id()
    if boot is None:
        return time.time
    now = time.time() - up_s()
    # The boot id is nearly always stored already, and a read delays no writer.
    if connection.execute("SELECT boot FROM clock").fetchone()[0] != boot:
        connection.execute("UPDATE clock SET boot = ?, began = ? WHERE boot IS NOT ?", (boot, now, boot))
    began = float(connection.execute("SELECT began FROM clock").fetchone()[0])
    return lambda: began + up_s()
