"""How a simulation looks on the screen: lines, a progress bar, JSON, or the grid itself in half blocks."""

from __future__ import annotations

import json
import signal
import sys
import time
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.live_bar import LiveBar
from difflogic.errors import UsageError
from difflogic.planes import population

if TYPE_CHECKING:
    from rich.text import Text

    from difflogic.circuits.simulation.engines import Opened
    from difflogic.circuits.simulation.loop import Progress
    from difflogic.circuits.simulation.pictures import Picture
    from difflogic.circuits.simulation.results import Recording
    from difflogic.circuits.source import Source
    from difflogic.simulation import Simulation

FRAMES_PER_S = 20
REPORT_S = 0.5
"""Seconds between reports in JSON."""


class Watching:
    """Lines on standard output; a `loop.Watcher` that is open while the run lasts, and writes the file."""

    def __init__(self, recording: Recording | None) -> None:
        self.recording = recording
        self.every = 0 if recording is None else recording.every

    def __enter__(self) -> Watching:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the screen back."""

    def say(self, text: str) -> None:
        click.echo(text)

    def began(self, source: Source, start: str, opened: Opened) -> None:
        scene = opened.simulation.scene
        outside = "wrapped at the border" if scene.netlist.periodic else "nothing outside"
        fires = (
            f"{scene.fire_units / 65536:.4g} of the cells in each step"
            if scene.asynchronous
            else "all cells in each step"
        )
        self.say(
            f"Circuit ({source.kind}): {len(source.netlist.gates)} gates, {len(scene.netlist.gates)} of them at work, "
            f"{_channels(scene.channels)}"
        )
        self.say(f"{scene.width}x{scene.height} cells, {outside}, {fires}; start: {start}")
        self.say(f"Engine {opened.name} {opened.reason}")
        for note in [] if self.recording is None else self.recording.notes:
            self.say(f"Note: {note}")

    def frame(self, progress: Progress, simulation: Simulation) -> None:
        if self.recording is not None:
            self.recording.add(simulation.planes())

    def advanced(self, progress: Progress) -> None:
        """Lines tell the end only."""

    def ended(self, progress: Progress, simulation: Simulation, stopped: signal.Signals | None) -> None:
        planes = simulation.planes()
        if stopped is not None:
            self.say(f"Stopped by {stopped.name} after {progress.step} of {progress.steps} steps")
        alive = ", ".join(map(str, population(planes)))
        self.say(f"{progress.step} steps in {progress.seconds:.3g} s: {progress.updates_per_s:.2e} cell updates/s")
        self.say(f"Cells that are 1, by channel: {alive}")
        if self.recording is not None:
            self.recording.write(planes)
            self.say(f"Wrote {self.recording.path}")


class Bar(LiveBar, Watching):
    """The lines, and below them progress, rate and the time left."""

    def __init__(self, recording: Recording | None) -> None:
        from rich import progress

        super().__init__(recording)
        self._bar = progress.Progress(
            progress.TextColumn("step"),
            progress.MofNCompleteColumn(),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[speed]}"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("left"),
            transient=True,
        )
        self._task = self._bar.add_task("simulate", total=None, speed="")

    def advanced(self, progress: Progress) -> None:
        speed = f"{progress.updates_per_s:.1e} cell updates/s"
        self._bar.update(self._task, completed=progress.step, total=progress.steps, speed=speed)

    def ended(self, progress: Progress, simulation: Simulation, stopped: signal.Signals | None) -> None:
        self._bar.stop()
        super().ended(progress, simulation, stopped)


class Screen(Watching):
    """The grid itself, two pixels in a character, at most `FRAMES_PER_S` frames a second."""

    def __init__(self, recording: Recording | None, every: int) -> None:
        from rich.live import Live

        super().__init__(recording)
        self.every = every
        self._live = Live(auto_refresh=False, transient=True)
        self._next = 0.0

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def frame(self, progress: Progress, simulation: Simulation) -> None:
        from rich.console import Group

        from difflogic.circuits.simulation.pictures import picture

        super().frame(progress, simulation)
        scene, room = simulation.scene, self._live.console.size
        most = (2 * max(1, room.height - 2), room.width)
        shown = half_blocks(picture(simulation.planes(), scene.width, scene.netlist.visible, most))
        time.sleep(max(0.0, self._next - time.monotonic()))
        self._next = time.monotonic() + 1 / FRAMES_PER_S
        self._live.update(Group(shown, f"step {progress.step} of {progress.steps}"), refresh=True)

    def ended(self, progress: Progress, simulation: Simulation, stopped: signal.Signals | None) -> None:
        self._live.stop()
        super().ended(progress, simulation, stopped)


class JsonLines(Watching):
    """Events as JSON objects, one per line: begin, progress, end."""

    def __init__(self, recording: Recording | None) -> None:
        super().__init__(recording)
        self._next = 0.0

    def began(self, source: Source, start: str, opened: Opened) -> None:
        scene = opened.simulation.scene
        _emit("begin", circuit=source.kind, gates=len(scene.netlist.gates), channels=scene.channels,
              width=scene.width, height=scene.height, boundary="periodic" if scene.netlist.periodic else "zero",
              fire_rate=scene.fire_units / 65536, seed=scene.seed, start=start, engine=opened.name, why=opened.reason,
              notes=[] if self.recording is None else self.recording.notes)  # fmt: skip

    def advanced(self, progress: Progress) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_S
            _emit("progress", **_numbers(progress))

    def ended(self, progress: Progress, simulation: Simulation, stopped: signal.Signals | None) -> None:
        planes = simulation.planes()
        if self.recording is not None:
            self.recording.write(planes)
        out = None if self.recording is None else str(self.recording.path)
        interrupted = None if stopped is None else stopped.name
        _emit("end", **_numbers(progress), population=population(planes), interrupted=interrupted, out=out)


def choose(as_json: bool, live: bool, recording: Recording | None, every: int | None) -> Watching:
    """Raises UsageError where the wishes do not go together."""
    if live and as_json:
        raise UsageError("--live draws on the screen, where --json writes lines: give one of them.")
    if live and not sys.stdout.isatty():
        raise UsageError("--live needs a terminal: leave it out, and give -o FILE.gif.")
    if every is not None and recording is None and not live:
        raise UsageError("--every says how often a frame is kept: give -o FILE.gif, -o FILE.npy or --live with it.")
    if as_json:
        return JsonLines(recording)
    if live:
        return Screen(recording, every or 1)
    return Bar(recording) if sys.stdout.isatty() else Watching(recording)


def half_blocks(picture: Picture) -> Text:
    """A picture as text: the upper pixel of each two in the colour of a half block, the lower behind it."""
    import numpy as np
    from rich.text import Text

    colours = picture if picture.ndim == 3 else picture[..., None].repeat(3, axis=2)
    if len(colours) % 2:
        colours = np.concatenate([colours, np.zeros_like(colours[:1])])
    text = Text(no_wrap=True)
    for upper, lower in zip(colours[::2].tolist(), colours[1::2].tolist(), strict=True):
        for (above, below), run in groupby(zip(upper, lower, strict=True)):
            text.append("▀" * len(list(run)), "rgb({},{},{}) on rgb({},{},{})".format(*above, *below))
        text.append("\n")
    return text


def _channels(channels: int) -> str:
    return "1 channel" if channels == 1 else f"{channels} channels"


def _numbers(progress: Progress) -> dict[str, Any]:
    return {
        "step": progress.step,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 6),
        "cell_updates_per_s": round(progress.updates_per_s),
    }


def _emit(event: str, **fields: Any) -> None:
    click.echo(json.dumps({"event": event, **fields}, allow_nan=False))
