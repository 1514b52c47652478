"""Detect workers that have ended by the file lock of each worker, which the system releases when the process ends.

For a worker on another machine, the StoreActor on this machine holds the lock as long as Ray reports it as alive.
"""

import re
from pathlib import Path

import filelock

from difflogic.errors import StoreError
from difflogic.serve.store.files import WORKERS

NAME = re.compile(r"[a-z0-9-]{1,80}")


# A lock is safer than a process id: an id is soon used by another process, means nothing on another machine, and cannot
# be tested from inside a container. The system releases a lock if its holder ends, crashes or is killed.
class Presence:
    """File lock that shows that a worker is alive, held until `close` is called. Raises OSError."""

    def __init__(self, store: Path, name: str) -> None:
        self._path = path_of(store, name)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = filelock.FileLock(self._path)
        self._lock.acquire(blocking=False)

    def close(self) -> None:
        self._lock.release()
        self._path.unlink(missing_ok=True)


def is_gone(store: Path, name: str) -> bool:
    """Return whether the process of the worker `name` has ended. Raises OSError."""
    path = path_of(store, name)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(blocking=False)
    # The lock is held: the worker runs. If the worker hangs, its lease ends.
    except filelock.Timeout:
        return False
    except FileNotFoundError:  # the folder is gone
        return True
    lock.release()
    path.unlink(missing_ok=True)
    return True


def path_of(store: Path, name: str) -> Path:
    """Return the path of the lock file of the worker `name`. Raises StoreError for an invalid name."""
    # The name comes from the database, where another program may have changed it to a path.
    if not NAME.fullmatch(name):
        raise StoreError(f"A worker's name must have at most 80 characters from a-z, 0-9 and -, got {name!r}.")
    return store / WORKERS / f"{name}.lock"
