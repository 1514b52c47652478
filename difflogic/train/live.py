"""Live display of training in an IPython notebook: progress bar, current automaton, and curves."""

from __future__ import annotations

import base64
import html
import importlib
import io
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from difflogic.engine.api import Engine
from difflogic.train import results
from difflogic.train.observer import Beginning, Observer
from difflogic.train.replica import Replica, best_of

if TYPE_CHECKING:  # these modules import many others that only agents need
    from difflogic.policies.member import Member

FRAME_S = 0.5
"""Minimum number of seconds between two updates of the display."""
SHARE = 0.05
"""Maximum share of the training time that is spent on drawing."""


def observer(engine: Engine) -> Observer:
    """Return the default observer: a live display in a notebook, otherwise one that does nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return Observer() if getattr(shell, "kernel", None) is None else LiveDisplay(engine)


def in_html(images: Mapping[str, bytes], text: str) -> str:
    """Return HTML that embeds `images`, a mapping from file names to contents, above a text."""
    elements = [
        f'<img alt="{name}" style="display: block; max-width: 100%" '
        f'src="data:image/{name.rpartition(".")[2]};base64,{base64.b64encode(data).decode()}">'
        for name, data in images.items()
    ]
    return f"{''.join(elements)}<pre>{html.escape(text)}</pre>"


class LiveDisplay(Observer):
    """Observer that draws progress into the output of a notebook's cell; `engine` runs the rollouts."""

    def __init__(self, engine: Engine) -> None:
        from rich import progress
        from rich.console import Console

        self._engine, self._ipython = engine, importlib.import_module("IPython.display")
        self._handle: Any = None
        self._images = ""
        self._members: Sequence[Replica] = ()
        self._next_text = self._next_images = 0.0
        # Rich's own display in a notebook needs ipywidgets, so the bar is drawn into this display instead.
        self._console = Console(file=io.StringIO(), record=True, width=80, force_jupyter=False)
        columns = progress.MofNCompleteColumn(), progress.BarColumn(), progress.TimeRemainingColumn()
        self._bar = progress.Progress("epoch", *columns, "left", console=self._console, auto_refresh=False)

    def began(self, beginning: Beginning) -> None:
        # Each attempt has a separate bar.
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._task = self._bar.add_task("", total=beginning.epochs, completed=beginning.epoch)
        self._show()

    def advanced(self, epoch: int) -> None:
        self._bar.update(self._task, completed=epoch)
        if time.monotonic() >= self._next_text:
            self._show()

    def wants_states(self) -> bool:
        return time.monotonic() >= self._next_images

    def judged(self, members: Sequence[Replica] | Sequence[Member]) -> None:
        if not isinstance(members[0], Replica):
            return
        self._members = cast("Sequence[Replica]", members)
        if self.wants_states():
            self.shown(self._members)

    def ending(self) -> None:
        if self._members:
            self.shown(self._members)

    def noticed(self, text: str) -> None:
        self._ipython.display(text)

    def shown(self, members: Sequence[Replica]) -> None:
        began = time.monotonic()
        self._images = in_html(results.images(self._engine, members, members[best_of(members)].checkpoint(0.0)), "")
        self._show()
        now = time.monotonic()
        self._next_images = now + max(FRAME_S, (now - began) / SHARE)

    def _show(self) -> None:
        self._console.print(self._bar.get_renderable())
        bar = self._console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
        shown = self._ipython.HTML(bar + self._images)
        if self._handle is None:
            self._handle = self._ipython.display(shown, display_id=True)
        else:
            self._handle.update(shown)
        self._next_text = time.monotonic() + FRAME_S
