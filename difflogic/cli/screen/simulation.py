"""Reporter of a simulation, which sends events to a sink or draws the grid in half blocks."""

from __future__ import annotations

import sys
import time
from itertools import groupby
from signal import Signals
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import echo_above
from difflogic.cli.screen.sinks import Event, Lines
from difflogic.core.bits import population
from difflogic.errors import UsageError
from difflogic.system.words import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from difflogic.circuits.readers.source import LoadedCircuit
    from difflogic.circuits.simulation.engines import Opened
    from difflogic.circuits.simulation.loop import SimulationProgress
    from difflogic.circuits.simulation.pictures import Picture
    from difflogic.circuits.simulation.results import Recording
    from difflogic.engine.simulation import Simulation

FRAMES_PER_S = 20
REPORT_S = 0.5
"""Minimum number of seconds between two progress reports in JSON."""
OFF = 48
"""Brightness of a cell that is off, so that it is visible on a black terminal."""
SHAPES = " ▄▀█"
"""Half blocks, indexed by 2 * upper cell + lower cell."""


class SimulationReporter:
    """Watcher of a simulation (see `loop.Watcher`) that reports to a sink and writes the output file."""

    def __init__(self, sink: Lines, recording: Recording | None, every: int | None = None) -> None:
        """Report a frame every `every` steps, by default at the interval of the recording, if there is one."""
        self.sink = sink
        self._recording = recording
        self.every = every or (0 if recording is None else recording.every)
        self._next = 0.0

    def began(self, source: LoadedCircuit, start: str, opened: Opened) -> None:
        from difflogic.circuits.synthesis.function import live_gates

        spec = opened.simulation.spec
        gates = live_gates(spec.netlist)
        outside = "wrapped at the border" if spec.netlist.periodic else "0 outside the grid"
        rate = spec.fire_units / 65536
        fires = f"{rate:.4g} of the cells in each step" if spec.asynchronous else "all cells in each step"
        notes = [] if self._recording is None else self._recording.notes
        fields = {
            "circuit": source.name,
            "gates": gates,
            "channels": spec.channels,
            "width": spec.width,
            "height": spec.height,
            "boundary": "periodic" if spec.netlist.periodic else "zero",
            "fire_rate": rate,
            "seed": spec.seed,
            "start": start,
            "engine": opened.name,
            "why": opened.reason,
            "notes": notes,
        }
        text = [
            f"Circuit ({source.name}): {counted(gates, 'gate')} per cell, {counted(spec.channels, 'channel')}",
            f"{spec.width}x{spec.height} cells, {outside}, {fires}; start: {start}",
            f"Engine {opened.name} {opened.reason}",
            *(f"Note: {note}" for note in notes),
        ]
        self.sink.show(Event("begin", fields, text))

    def frame(self, progress: SimulationProgress, simulation: Simulation) -> None:
        if self._recording is not None:
            self._recording.add(simulation.planes())
        if isinstance(self.sink, GridScreen):
            self.sink.draw(progress, simulation)

    def advanced(self, progress: SimulationProgress) -> None:
        self.sink.advance(progress.step, progress.steps, f"{progress.updates_per_s:.1e} cell updates/s")
        if time.monotonic() >= self._next:
            # A simulation of a small grid has thousands of steps per second, so reports follow the clock.
            self._next = time.monotonic() + REPORT_S
            self.sink.show(Event("progress", _numbers(progress)))

    def ended(
        self, progress: SimulationProgress, simulation: Simulation, stopped: Signals | None, period: int | None = None
    ) -> None:
        """Report the last state; `period` is the number of steps after which it repeats, or None if unknown."""
        planes = simulation.planes()
        alive = population(planes)
        text = [
            f"{progress.step} steps in {progress.seconds:.3g} s: {progress.updates_per_s:.2e} cell updates/s",
            f"Cells that are 1, per channel: {', '.join(map(str, alive))}",
        ]
        if stopped is not None:
            text.insert(0, f"Stopped by {stopped.name} after {progress.step} of {progress.steps} steps")
        if period is not None:
            repeats = "is still" if period == 1 else f"repeats every {period} steps"
            text.insert(0, f"Step {progress.step} equals step {progress.step - period}: the state {repeats}")
        out = None
        if self._recording is not None:
            self._recording.write(planes)
            out = str(self._recording.out)
            text.append(f"Wrote {out}")
        fields = {"population": alive, "period": period, "interrupted": None if stopped is None else stopped.name}
        self.sink.finish()
        self.sink.show(Event("end", {**_numbers(progress), **fields, "out": out}, text))


class GridScreen(Lines):
    """Sink that prints lines, and below these the grid with two cells per character."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(auto_refresh=False, transient=True)
        self._rows: list[Picture] = []
        """Images of a one-row grid after successive steps, oldest first."""
        self._next = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def write(self, text: object) -> None:
        echo_above(self._live.console, text)

    def draw(self, progress: SimulationProgress, simulation: Simulation) -> None:
        """Draw the grid, and delay the simulation so that there are at most `FRAMES_PER_S` frames per second."""
        from rich.console import Group

        from difflogic.circuits.simulation.pictures import picture

        spec, size, console = simulation.spec, self._live.console.size, self._live.console
        # A half block shows two rows of cells; two lines of the screen are for the text and the cursor.
        most = ((1 if console.options.ascii_only else 2) * max(1, size.height - 2), size.width)
        image = picture(simulation.planes(), spec.width, spec.netlist.visible, most, spec.netlist.palette)
        if spec.height == 1:
            self._rows = [*self._rows, image][-most[0] :]
            image = np.concatenate(self._rows)
        shown = blocks(image, console)
        # The simulation waits, so that every frame is visible.
        time.sleep(max(0.0, self._next - time.monotonic()))
        self._next = time.monotonic() + 1 / FRAMES_PER_S
        self._live.update(Group(shown, f"step {progress.step} of {progress.steps}"), refresh=True)

    def finish(self) -> None:
        self._live.stop()


def choose(as_json: bool, live: bool, recording: Recording | None, every: int | None) -> SimulationReporter:
    """Return the reporter of a simulation. Raises UsageError if the options contradict each other."""
    if live and as_json:
        raise UsageError("--live and --json cannot be used together: give one of them.")
    if live and not sys.stdout.isatty():
        raise UsageError("--live requires a terminal: give -o FILE.gif instead.")
    if every is not None and recording is None and not live:
        raise UsageError("--every requires frames to record: add -o FILE.gif, -o FILE.npy or --live.")
    if live:
        return SimulationReporter(GridScreen(), recording, every or 1)
    return SimulationReporter(sinks.choose(as_json, "step"), recording)


def blocks(image: Picture, console: Console) -> Text:
    """Return an image as the console allows: coloured or plain half blocks, or `#` for cells that are on."""
    from rich.text import Text

    is_plain = console.options.ascii_only
    if not is_plain and console.color_system is not None and not console.no_color:
        return half_blocks(image)
    on = (image if image.ndim == 2 else image.max(axis=2)) > OFF
    even = np.pad(on, ((0, len(on) % 2), (0, 0)))
    cells = np.where(on, "#", ".") if is_plain else np.array(list(SHAPES))[2 * even[::2] + even[1::2]]
    return Text("\n".join(map("".join, cells)), no_wrap=True)


def half_blocks(image: Picture) -> Text:
    """Return an image as half blocks: the foreground has the upper pixel's colour, the background the lower pixel's."""
    from rich.text import Text

    colours = image if image.ndim == 3 else image[..., None].repeat(3, axis=2)
    # A dark row completes the last line of half blocks.
    if len(colours) % 2:
        colours = np.concatenate([colours, np.zeros_like(colours[:1])])
    text = Text(no_wrap=True)
    for upper, lower in zip(colours[::2].tolist(), colours[1::2].tolist(), strict=True):
        # Equal neighbours share one style, since large grids would be slow to print otherwise.
        for (above, below), run in groupby(zip(upper, lower, strict=True)):
            text.append("▀" * len(list(run)), "rgb({},{},{}) on rgb({},{},{})".format(*above, *below))
        text.append("\n")
    text.rstrip()
    return text


def _numbers(progress: SimulationProgress) -> dict[str, Any]:
    return {
        "step": progress.step,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 6),
        "cell_updates_per_s": round(progress.updates_per_s),
    }
