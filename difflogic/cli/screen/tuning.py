"""The screen shows a tuning."""

from __future__ import annotations

import math

from difflogic.cli.screen import sinks
from difflogic.cli.screen.sinks import Event
from difflogic.devices.tune import SweepProgress, TuningObserver


class TuningReporter(TuningObserver):
    """Describes to a sink what the tuner says."""

    def __init__(self, sink: sinks.Lines) -> None:
        self._sink = sink

    def say(self, text: str) -> None:
        self._sink.show(Event("note", {"text": text}, [text]))

    def began(self, progress: SweepProgress) -> None:
        before = f", {progress.done} of them measured before" if progress.done else ""
        self.say(f"At most {progress.total} variants{before}; each is compiled, which software adapters take long for.")
        self._sink.advance(progress.done, progress.total)

    def measured(self, text: str, progress: SweepProgress) -> None:
        self.say(f"{text} ({progress.done} of at most {progress.total}, {left(progress)})")
        self._sink.advance(progress.done, progress.total)


def left(progress: SweepProgress) -> str:
    """The time left, in words: less where variants turn out not to be worth measuring."""
    seconds = progress.seconds_left
    return f"about {math.ceil(seconds)} s left" if seconds < 90 else f"about {math.ceil(seconds / 60)} min left"
