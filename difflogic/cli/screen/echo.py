"""Functions that print all text of commands, and escape it since it may come from other people's files and servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from difflogic.system.words import visible

if TYPE_CHECKING:
    from rich.console import Console


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text with its control characters escaped, on standard output, or with `err` on standard error."""
    click.echo(visible(str(text)), err=err, nl=nl)


def echo_above(console: Console, text: object) -> None:
    """Print text, or a drawing of rich, above the bar or the grid of a console."""
    console.print(visible(text) if isinstance(text, str) else text, markup=False, highlight=False, soft_wrap=True)
