"""Output of commands: text is escaped, since it may come from untrusted files and servers.

The standard streams accept any character and need not be read to the end. In `difflogic train lizard | head -2`, head
closes the pipe after two lines, but training continues.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.system.words import visible

if TYPE_CHECKING:
    from rich.console import Console

UNREAD = (errno.EPIPE, errno.EIO, errno.ENOSPC)
"""Error codes of writes to a pipe without a reader, to a closed terminal, and to a file on a full disk."""
FAILED, INTERRUPTED = 1, 130
"""Exit codes of a command that failed, and of one that Ctrl-C ended."""


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text with its control characters escaped, on standard error if `err`, otherwise on standard output."""
    click.echo(visible(str(text)), err=err, nl=nl)


def echo_above(console: Console, text: object) -> None:
    """Print text, or a renderable of rich, above the progress bar or the grid of a console."""
    console.print(visible(text) if isinstance(text, str) else text, markup=False, highlight=False, soft_wrap=True)


class StandardStream(io.FileIO):
    """Raw stream of standard output or standard error."""

    is_optional = False
    """True if text without a reader is discarded, since the command has other work to complete."""
    has_failed = False
    """True if an error was raised; later errors are ignored, since the interpreter flushes the rest at exit."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not self.has_failed and not (StandardStream.is_optional and error.errno in UNREAD):
                self.has_failed = True
                raise
            return len(data)


def prepare_streams() -> None:
    """Open closed streams (`>&-`) on the null device, and make open streams escape unsupported characters."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        # After `difflogic train >&-`, descriptor 1 is free, and the next opened file would receive the output.
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and stream is getattr(sys, f"__{name}__"):  # not replaced by a test or a notebook
            raw = io.BufferedWriter(StandardStream(stream.fileno(), "w", closefd=False))
            lines = stream.line_buffering or stream.write_through
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=lines))
