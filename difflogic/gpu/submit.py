"""Long work in several submits: each short enough for watchdogs and signals, and never more than two waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from difflogic.gpu.device import Device
from difflogic.gpu.encoding import Dispatch, encode

SUBMIT_SECONDS = 0.08
"""Aim for the length of one submit: long enough to hide its cost, short enough for signals and watchdogs."""


class Pacer:
    """Cuts dispatch lists by work, and learns from how long it takes how much makes a submit."""

    def __init__(self, device: Device, marked: Any, least: int) -> None:
        """Work up to `least` is never divided. `marked`: any buffer; a copied word of it says that a submit is done."""
        self.device, self._marked, self._least = device, marked, least
        self._most = least
        self._marks = [device.staging("mark", 4) for _ in range(2)]
        self._under_way: list[Any] = []

    def pieces(self, dispatches: Sequence[Dispatch]) -> list[list[Dispatch]]:
        """What each submit should do."""
        return cut(dispatches, self._most)

    def submit(self, pieces: Sequence[Sequence[Dispatch]]) -> None:
        """Queue pieces, a submit each, waiting for those before the last two."""
        for piece in pieces:
            mark = self._free_mark()
            encoder = encode(self.device, piece)
            encoder.copy_buffer_to_buffer(self._marked, 0, mark, 0, 4)
            self.device.queue.submit([encoder.finish()])
            self._under_way.append(mark)

    def _free_mark(self) -> Any:
        """A mark that no submit under way uses: with two of them, the first is waited for."""
        if len(self._under_way) < len(self._marks):
            return next(mark for mark in self._marks if mark not in self._under_way)
        mark = self._under_way.pop(0)
        self.device.read_staging(mark, 4, np.uint32, "pacing")
        return mark

    def learn(self, dispatches: Sequence[Dispatch], seconds: float) -> None:
        """Size submits by what this work took."""
        work = sum(dispatch.work for dispatch in dispatches)
        self._most = max(self._least, int(work * SUBMIT_SECONDS / max(seconds, 1e-6)))

    def close(self) -> None:
        """Free the marks. Only after everything submitted has been waited for."""
        for mark in self._marks:
            mark.destroy()


def cut(dispatches: Sequence[Dispatch], most: int) -> list[list[Dispatch]]:
    """The list in pieces, each of at most so much work or of one dispatch."""
    pieces: list[list[Dispatch]] = [[]]
    work = 0
    for dispatch in dispatches:
        if work and work + dispatch.work > most:
            pieces.append([])
            work = 0
        pieces[-1].append(dispatch)
        work += dispatch.work
    return pieces
