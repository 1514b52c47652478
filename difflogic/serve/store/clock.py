"""A clock that nobody sets back: back-offs and leases are measured by it.

Whoever opens the store first after the machine has started notes what the time was then. Since then every process adds
the seconds that the machine has been up, so that all of them agree, and a clock that is set does not matter to a wait.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str | None:
    """What the system calls the time since it was started; None where it has no name for that."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None


def up_s() -> float:
    """Seconds since the system was started, those asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def begun(connection: sqlite3.Connection) -> Callable[[], float]:
    """The clock of a store, in seconds since 1970; without a boot's name the system's own. Raises sqlite3.Error."""
    boot = boot_id()
    if boot is None:
        return time.time
    now = time.time() - up_s()
    # Nearly always it stands there already, and a read holds up no writer.
    if connection.execute("SELECT boot FROM clock").fetchone()[0] != boot:
        connection.execute("UPDATE clock SET boot = ?, began = ? WHERE boot IS NOT ?", (boot, now, boot))
    began = float(connection.execute("SELECT began FROM clock").fetchone()[0])
    return lambda: began + up_s()
