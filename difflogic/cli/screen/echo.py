"""Prints text, which no other module does: names, messages and logs come from files and servers of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from difflogic.system.words import visible

if TYPE_CHECKING:
    from rich.console import Console


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text on standard output, or on standard error.

    Args:
        text: The text; a terminal shows it as it is, see `visible`.
        err: Whether it goes to standard error.
        nl: Whether a line ends after it.
    """
    click.echo(visible(str(text)), err=err, nl=nl)


def echo_above(console: Console, text: object) -> None:
    """Print text, or what rich draws, above the bar or the grid of a console."""
    drawn = visible(text) if isinstance(text, str) else text
    console.print(drawn, markup=False, highlight=False, soft_wrap=True)
