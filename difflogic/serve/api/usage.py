"""What takes long to find out, found out no more often than that is worth: how much room jobs take, say."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from difflogic.serve.errors import ApiError
from difflogic.serve.store.cleanup import size_of_job
from difflogic.serve.store.jobs import ENDED
from difflogic.serve.store.store import Store

FRESH_S = 10.0
"""Seconds for which what was counted is good enough."""
SHARE = 20
"""What was found is good for so many times the seconds that it took: at most a twentieth of a processor."""

Found = TypeVar("Found")


class Throttled(Generic[Found]):
    """Calls a function, and gives what it found for a while."""

    def __init__(self, find: Callable[[], Found], fresh_s: float = 0.0) -> None:
        """`fresh_s`: so long at least."""
        self._find, self._fresh_s = find, fresh_s
        self._lock = threading.Lock()
        self._found: list[Found] = []
        self._until = 0.0

    def __call__(self) -> Found:
        # While somebody finds it out again, others get what was found before: only the first time is waited for.
        if time.monotonic() >= self._until and self._lock.acquire(blocking=not self._found):
            try:
                begun = time.monotonic()
                if begun >= self._until:  # nobody has just found it
                    self._found = [self._find()]
                    ended = time.monotonic()
                    self._until = ended + max(self._fresh_s, SHARE * (ended - begun))
            finally:
                self._lock.release()
        return self._found[0]


class Usage:
    """Bytes of the files of each owner's jobs. A job that is over is counted once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended: dict[tuple[str, int], int] = {}
        """Bytes of jobs that are over, by id and version: another version may have other files."""
        self.bytes = Throttled(self._counted, FRESH_S)
        """The bytes of each owner."""

    def _counted(self) -> dict[str, int]:
        found: dict[str, int] = {}
        ended: dict[tuple[str, int], int] = {}
        for job, owner, status, version in self._store.owned():
            size = self._ended.get((job, version))
            if size is None:
                size = size_of_job(self._store, job)
            if status in ENDED:
                ended[job, version] = size
            found[owner] = found.get(owner, 0) + size
        self._ended = ended
        return found

    def check(self, owner: str, quota: int | None) -> None:
        """Raise ApiError if the owner's jobs take all the room that there is for them."""
        if quota is not None and (used := self.bytes().get(owner, 0)) >= quota:
            words = (
                f"The jobs of {owner} take {used / 1e6:.1f} MB of the {quota / 1e6:.1f} MB that an owner has here: "
                "delete some that are over, and submit again."
            )
            raise ApiError(507, "quota", words)
