"""How a tuning looks on the screen: lines, or a progress bar below them."""

from __future__ import annotations

import math
import sys

import click

from difflogic.cli.live_bar import LiveBar
from difflogic.train.tuning import Progress, Screen


class Lines(Screen):
    """Plain lines on standard output."""

    def say(self, text: str) -> None:
        click.echo(text)

    def began(self, progress: Progress) -> None:
        before = f", {progress.done} of them measured before" if progress.done else ""
        self.say(f"At most {progress.total} variants{before}; each is compiled, which software adapters take long for.")

    def measured(self, text: str, progress: Progress) -> None:
        self.say(f"{text} ({progress.done} of at most {progress.total}, {left(progress)})")


class Bar(LiveBar, Lines):
    """The lines, and below them how many variants are done and what is left."""

    def __init__(self) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("variant"),
            progress.MofNCompleteColumn(),
            progress.BarColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.fields[left]}"),
            transient=True,
        )

    def began(self, progress: Progress) -> None:
        super().began(progress)
        self._task = self._bar.add_task("tune", total=progress.total, completed=progress.done, left="")

    def measured(self, text: str, progress: Progress) -> None:
        self.say(text)
        self._bar.update(self._task, total=progress.total, completed=progress.done, left=left(progress))


def left(progress: Progress) -> str:
    """The time left, in words: less where variants turn out not to be worth measuring."""
    seconds = progress.seconds_left
    return f"about {math.ceil(seconds)} s left" if seconds < 90 else f"about {math.ceil(seconds / 60)} min left"


def choose(as_json: bool) -> Screen:
    """Nothing beside JSON, a bar on a terminal, else lines."""
    if as_json:
        return Screen()
    return Bar() if sys.stdout.isatty() else Lines()
