"""Functions that print the text of commands, escaped since it may come from untrusted files and servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from difflogic.system.words import visible

if TYPE_CHECKING:
    from rich.console import Console

FAILED, INTERRUPTED = 1, 130
"""Exit codes of a command that failed, and of one that Ctrl-C ended."""


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text with its control characters escaped, on standard error if `err`, otherwise on standard output."""
    click.echo(visible(str(text)), err=err, nl=nl)


def echo_above(console: Console, text: object) -> None:
    """Print text, or a renderable of rich, above the progress bar or the grid of a console."""
    console.print(visible(text) if isinstance(text, str) else text, markup=False, highlight=False, soft_wrap=True)
