"""A server that makes room by itself: what `difflogic gc` does, every few minutes."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import TracebackType

from difflogic.errors import StoreError
from difflogic.serve.logs import tell
from difflogic.serve.retention import collect
from difflogic.serve.store import Store

TURN_S = 600.0


class Housekeeper:
    """Collects at once and then every TURN_S, in a thread of its own, while it is open; does nothing without rules."""

    def __init__(self, folder: Path, keep_days: float | None, quota: int | None) -> None:
        """As `collect` takes them."""
        self._folder, self._rules = folder, (keep_days, quota)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def __enter__(self) -> Housekeeper:
        if self._rules != (None, None):
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        store = Store.existing(self._folder)
        try:
            self._collect(store)
            while not self._over.wait(TURN_S):
                self._collect(store)
        finally:
            store.close()

    def _collect(self, store: Store) -> None:
        try:
            for each in collect(store, *self._rules).removed:
                tell("removed", name=each.name, why=each.why, bytes=each.bytes)
        except StoreError as error:
            tell("housekeeper", logging.ERROR, why=str(error))
