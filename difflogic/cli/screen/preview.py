"""Preview of the target before training, in the cells and channels of the circuit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from difflogic.cli.screen.simulation import OFF, blocks, half_blocks
from difflogic.config.schema import Config
from difflogic.core import text_picture
from difflogic.devices.open import open_engine
from difflogic.engine import job
from difflogic.runs import plots
from difflogic.system.words import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table
    from rich.text import Text

    from difflogic.circuits.simulation.pictures import Picture
    from difflogic.train.replica import Replica


class Preview:
    """Target of a configuration as a line of text, and as an image if it is the same for all initial states.

    The image is drawn in characters of `core.text_picture`, or on a terminal in coloured half blocks.
    """

    def __init__(self, config: Config) -> None:
        self._config, self._is_fixed = config, config.task.is_fixed

    def __str__(self) -> str:
        return "\n".join([self._headline(), *(text_picture.encode(self._bits()) if self._is_fixed else ())])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        yield Text(visible(self._headline()))
        if not self._is_fixed:
            return
        # An image with wrapped lines would be unreadable.
        if self._config.task.width > console.width:
            yield Text("(wider than this terminal: see target.png in the run folder)")
        elif console.options.ascii_only:
            yield Text("\n".join(text_picture.encode(self._bits())))
        else:
            yield blocks(_shaded(self._bits()), console)

    def _headline(self) -> str:
        task = self._config.task
        if task.target == "data":
            data = self._config.data
            held_out = job.probe_count(self._config) if data.held_out else "none"
            return f"Target: the final states of {data.samples} samples, of which {held_out} are held out"
        if task.target == "rule":
            return f"Target: one generation of {task.rule if '/' in task.rule else 'a rule given as a table'}"
        bits = self._bits()
        used = len(np.unique(bits.reshape(-1, bits.shape[-1]), axis=0))
        size = f"{task.width} cells wide, {task.height} high"
        return f"Target: {task.target}, {size}, {bits.any(axis=-1).sum()} on, {used} colours"

    def _bits(self) -> npt.NDArray[np.uint8]:
        return job.fixed_target(self._config.task)[..., : text_picture.MAX_BITS]


def compare(best: Replica) -> Table:
    """Return a table with the target of `best` and the output of its hard circuit for the first evaluation grid."""
    from rich.table import Table

    learned, task = best.job, best.job.config.task
    numpy, damage = open_engine("reference"), learned.damage_of_probes(1)  # the training engine is not disturbed
    states = numpy.rollout(best.circuit, learned.probes[:1], task.steps, "hard", learned.probe_masks, damage)
    target = job.fixed_target(task)[..., : text_picture.MAX_BITS]
    output = states[-1, 0, ..., : target.shape[-1]].astype(np.uint8)
    table = Table.grid(padding=(0, 4))
    table.add_row(half_blocks(_shaded(target)), half_blocks(_shaded(output)))
    table.add_row("target", "circuit now")
    return table


def _shaded(bits: npt.NDArray[np.uint8]) -> Picture:
    """Return the colours of cells, `[H, W, 3]`, dark grey if off; an odd number of rows is padded to an even one."""
    shades = plots.colors(np.pad(bits, ((0, len(bits) % 2), (0, 0), (0, 0))))
    return np.where(shades.any(axis=-1, keepdims=True), shades, np.uint8(OFF))
