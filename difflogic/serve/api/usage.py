"""How much room the jobs of each owner take, counted no more often than that is worth."""

from __future__ import annotations

import threading
import time

from difflogic.serve.errors import ApiError
from difflogic.serve.store.cleanup import size_of_job
from difflogic.serve.store.jobs import ENDED
from difflogic.serve.store.store import Store

FRESH_S = 10.0
"""Seconds for which what was counted is good enough; and at least SHARE times what counting took."""
SHARE = 20


class Usage:
    """Bytes of the files of each owner's jobs. A job that is over is counted once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._ended: dict[tuple[str, int], int] = {}
        """Bytes of jobs that are over, by id and version: another version may have other files."""
        self._bytes: dict[str, int] = {}
        self._until = 0.0

    def bytes(self) -> dict[str, int]:
        """The bytes of each owner."""
        # Who comes while somebody counts again gets what was counted before, and only the first count is waited for: a
        # store of many jobs takes seconds, in which other requests need the threads.
        if time.monotonic() >= self._until and self._lock.acquire(blocking=self._until == 0.0):
            try:
                self._count()
            finally:
                self._lock.release()
        return self._bytes

    def _count(self) -> None:
        begun = time.monotonic()
        if begun < self._until:  # somebody has just counted
            return
        self._bytes = self._counted()
        ended = time.monotonic()
        self._until = ended + max(FRESH_S, SHARE * (ended - begun))

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
        """Raises ApiError where the owner's jobs take all the room that there is for them."""
        if quota is None or (used := self.bytes().get(owner, 0)) < quota:
            return
        raise ApiError(
            507,
            "quota",
            f"The jobs of {owner} take {used / 1e6:.1f} MB of the {quota / 1e6:.1f} MB that an owner has here: delete "
            "some that are over, and submit again.",
        )
