"""Printing of text, which comes from files and servers of others, in this module alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from difflogic.system.words import visible

if TYPE_CHECKING:
    from rich.console import Console


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text, whose control characters a terminal shows, on standard output, or with `err` on standard error."""
    click.echo(visible(str(text)), err=err, nl=nl)


def echo_above(console: Console, text: object) -> None:
    """Print text, or a drawing of rich, above the bar or the grid of a console."""
    drawn = visible(text) if isinstance(text, str) else text
    console.print(drawn, markup=False, highlight=False, soft_wrap=True)
