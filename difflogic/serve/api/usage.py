"""Cache of expensive measurements, such as the disk space used by jobs."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from difflogic.serve.errors import ApiError
from difflogic.serve.store.cleanup import size_of_job
from difflogic.serve.store.jobs import ENDED
from difflogic.serve.store.store import Store

FRESH_S = 10.0
"""Minimum seconds for which the measured disk space is cached."""
SHARE = 20
"""Minimum ratio of caching time to measuring time, so that measurements take at most 5 % of a processor."""

Value = TypeVar("Value")


class Throttled(Generic[Value]):
    """Cached result of a function that is called again only after some time."""

    def __init__(self, measure: Callable[[], Value], fresh_s: float = 0.0) -> None:
        """Cache each result of `measure` for at least `fresh_s` seconds."""
        self._measure, self._fresh_s = measure, fresh_s
        self._lock = threading.Lock()
        self._values: list[Value] = []
        self._until = 0.0

    def __call__(self) -> Value:
        # During a measurement other threads get the previous value; they wait only for the first value.
        if time.monotonic() >= self._until and self._lock.acquire(blocking=not self._values):
            try:
                started = time.monotonic()
                if started >= self._until:  # no other thread has just measured it
                    self._values = [self._measure()]
                    ended = time.monotonic()
                    self._until = ended + max(self._fresh_s, SHARE * (ended - started))
            finally:
                self._lock.release()
        return self._values[0]


class Usage:
    """Disk space used by each owner's jobs; the files of a job that is over are measured only once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended: dict[tuple[str, int], int] = {}
        """Bytes used by jobs that are over, by job id and version, since another version may have other files."""
        self.bytes = Throttled(self._measured, FRESH_S)
        """Bytes used by each owner's jobs, cached for at least FRESH_S."""

    def _measured(self) -> dict[str, int]:
        by_owner: dict[str, int] = {}
        ended: dict[tuple[str, int], int] = {}
        for job, owner, status, version in self._store.owned():
            size = self._ended.get((job, version))
            if size is None:
                size = size_of_job(self._store, job)
            if status in ENDED:
                ended[job, version] = size
            by_owner[owner] = by_owner.get(owner, 0) + size
        self._ended = ended
        return by_owner

    def check(self, owner: str, quota: int | None) -> None:
        """Raise ApiError if the jobs of `owner` have used up `quota` in bytes, unless it is None."""
        if quota is not None and (used := self.bytes().get(owner, 0)) >= quota:
            message = (
                f"The jobs of {owner} use {used / 1e6:.1f} MB, and the quota per owner is {quota / 1e6:.1f} MB: delete "
                "ended jobs, and submit again."
            )
            raise ApiError(507, "quota", message)
