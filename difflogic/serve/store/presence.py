"""Who is alive: a worker holds a lock on a file of its own, and the system lets go of it however the worker ends."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import filelock

from difflogic.errors import StoreError
from difflogic.serve.store.files import WORKERS

NAME = re.compile(r"[a-z0-9-]{1,80}")


# Why a lock and not the process id: an id is soon used by another process, means nothing on another machine, and cannot
# be tested from inside a container. A lock is let go by the system, whether its holder ends, crashes or is killed.
class Presence:
    """A worker's lock, for as long as it is open. Raises OSError."""

    def __init__(self, store: Path, name: str) -> None:
        self._path = path_of(store, name)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = filelock.FileLock(self._path)
        self._lock.acquire(blocking=False)

    def close(self) -> None:
        self._lock.release()
        self._path.unlink(missing_ok=True)


class Heard:
    """Workers on other machines: this process holds the lock of each for as long as something is heard of it."""

    def __init__(self, store: Path, silence_s: float) -> None:
        self._store, self._silence_s = store, silence_s
        self._present: dict[str, tuple[Presence, float]] = {}
        self._lock = threading.Lock()

    def hear(self, name: str) -> None:
        """Record a heartbeat. Raises OSError."""
        with self._lock:
            known = self._present.get(name)
            presence = Presence(self._store, name) if known is None else known[0]
            self._present[name] = presence, time.monotonic()

    def forget(self, name: str) -> None:
        """Let go of the lock of a worker that has ended."""
        with self._lock:
            known = self._present.pop(name, None)
        if known is not None:
            known[0].close()

    def forget_all(self, prefix: str) -> None:
        """Let go of all workers whose names begin so."""
        for name in [name for name in self._present if name.startswith(prefix)]:
            self.forget(name)

    def forget_silent(self) -> None:
        """Let go of those that nothing was heard of for too long: a supervisor then gives their jobs to others."""
        with self._lock:
            now = time.monotonic()
            silent = [name for name, (_, heard) in self._present.items() if now - heard > self._silence_s]
        for name in silent:
            self.forget(name)

    def close(self) -> None:
        """Let go of all."""
        self.forget_all("")


def is_gone(store: Path, name: str) -> bool:
    """True where the worker has ended. Raises OSError."""
    path = path_of(store, name)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(blocking=False)
    # Somebody has the lock: the worker lives, though it may hang, which its lease tells.
    except filelock.Timeout:
        return False
    except FileNotFoundError:  # the whole folder is gone
        return True
    lock.release()
    path.unlink(missing_ok=True)
    return True


def path_of(store: Path, name: str) -> Path:
    """The lock file of a worker. Raises StoreError where its name would be another path."""
    # The name comes from the table of workers, which another program may have written.
    if not NAME.fullmatch(name):
        raise StoreError(f"A worker's name is at most 80 of a to z, 0 to 9 and -, got {name!r}.")
    return store / WORKERS / f"{name}.lock"
