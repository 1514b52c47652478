"""Sinks, which show events as lines, as lines above a progress bar, or as JSON.

A long command describes each event once, in machine-readable fields and in text, and passes the event to a sink:

    with choose(as_json, "epoch") as sink:
        sink.show(Event("saved", {"epoch": 50}, ["Saved after epoch 50"]))
        sink.advance(50, 1000)
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from difflogic.cli.screen.echo import echo, echo_above

if TYPE_CHECKING:
    from rich.console import RenderableType

    from difflogic.circuits.synthesis.simplify import PassReport

IMAGE_S = 2.0
"""Minimum number of seconds between two images on a terminal, since an image costs a rollout."""


@dataclass(frozen=True)
class Event:
    """Event that a command reports, with machine-readable fields and human-readable text."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the event in JSON, in addition to its name."""
    text: Sequence[object] = ()
    """Lines of text, or renderables of rich, which are printed as plain text if there is no terminal."""
    is_warning: bool = False
    """True if the text is printed on standard error."""
    brief: str = ""
    """Text in the progress bar, shown in place of `text`; if it is empty, `text` is printed above the bar."""


class Lines:
    """Sink of plain lines on standard output, with warnings on standard error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def show(self, event: Event) -> None:
        """Show the text of an event, if it has any."""
        for line in event.text:
            if event.is_warning:
                echo(f"Warning: {line}", err=True)
            else:
                self.write(line)

    def write(self, text: object) -> None:
        echo(text)

    def advance(self, done: int, total: int | None = None, speed: str | None = None) -> None:
        """Show the progress, `done` of `total` units, and the speed; a sink of plain lines shows nothing."""

    def show_image(self, draw: Callable[[], RenderableType]) -> None:
        """Replace the last image by the result of `draw` if the terminal has colours; plain lines show no images."""

    def finish(self) -> None:
        """Restore the terminal after the last event."""


class Bar(Lines):
    """Sink that prints lines, and below these a bar with the completed units, the speed, and the remaining time."""

    def __init__(self, unit: str) -> None:
        from rich import progress

        self._unit = unit
        self._image: RenderableType | None = None
        self._next_image = 0.0
        sink = self

        class Screen(progress.Progress):
            """Progress display with the last image above its bar."""

            def get_renderables(self) -> Iterator[RenderableType]:
                yield from [] if sink._image is None else [sink._image]
                yield from super().get_renderables()

        self._bar = Screen(
            progress.TextColumn(unit),
            progress.MofNCompleteColumn(),
            progress.BarColumn(bar_width=20),
            progress.TextColumn("{task.fields[brief]}"),
            # The column for speed in rich cannot show cell updates.
            progress.TextColumn("{task.fields[speed]}"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("left"),
            transient=True,
        )
        self._task: progress.TaskID | None = None
        self._brief = ""

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def show(self, event: Event) -> None:
        if event.brief:
            self._brief = event.brief
        else:
            super().show(event)

    def write(self, text: object) -> None:
        echo_above(self._bar.console, text)

    def advance(self, done: int, total: int | None = None, speed: str | None = None) -> None:
        """Show the progress; if `done` falls, another attempt has begun and the bar restarts."""
        # A new bar is needed, since the speed would be the mean of both attempts.
        if self._task is None or done < self._bar.tasks[0].completed:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(self._unit, total=total, completed=done, brief="", speed=speed or "")
            return
        if speed is None and (measured := self._bar.tasks[0].speed) is not None:
            speed = f"{measured:.1f} {self._unit}s/s"
        self._bar.update(self._task, completed=done, total=total, brief=self._brief, speed=speed or "")

    def show_image(self, draw: Callable[[], RenderableType]) -> None:
        has_colours = self._bar.console.color_system is not None and not self._bar.console.options.ascii_only
        if has_colours and time.monotonic() >= self._next_image:
            self._image, self._next_image = draw(), time.monotonic() + IMAGE_S

    def finish(self) -> None:
        self._bar.stop()


class JsonLines(Lines):
    """Sink of JSON objects, one per line for each event."""

    def show(self, event: Event) -> None:
        # JSON has no NaN, so events must have None for such values.
        echo(json.dumps({"event": event.name, **event.fields}, allow_nan=False))


def choose(as_json: bool, unit: str) -> Lines:
    """Return a sink for JSON, or on a terminal a progress bar in `unit`, such as "epoch", or otherwise plain lines."""
    if as_json:
        return JsonLines()
    # A bar redraws its line, so in a file it would leave many escape codes.
    return Bar(unit) if sys.stdout.isatty() else Lines()


def working(text: str) -> None:
    """Print a line about the progress of a command on standard error."""
    echo(f"... {text}", err=True)


def show_pass(step: PassReport) -> None:
    """Print the result of a simplification pass on standard error."""
    working(f"{step.name}: {step.gates[1]} gates, {step.seconds:.1f} s{', stopped by Ctrl-C' if step.stopped else ''}")
