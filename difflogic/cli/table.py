"""Tables: drawn on a terminal, plain aligned columns where the output is piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

Row = Sequence[str]


def show(headers: Row, rows: Sequence[Row], title: str = "", texts: bool = False) -> None:
    """Print a table; the first column is left-aligned, as is every column without a digit, or with `texts` all."""
    words = [not any(any(map(str.isdigit, row[column])) for row in rows) for column in range(len(headers))]
    left = [texts or column == 0 or words[column] for column in range(len(headers))]
    if sys.stdout.isatty():
        _drawn(headers, rows, left, title)
    else:
        click.echo("\n".join(_plain(headers, rows, left, title)))


def _plain(headers: Row, rows: Sequence[Row], left: Sequence[bool], title: str) -> list[str]:
    lines = [headers, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    cells = [
        [
            text.ljust(width) if is_left else text.rjust(width)
            for text, width, is_left in zip(line, widths, left, strict=True)
        ]
        for line in lines
    ]
    return ([title] if title else []) + ["  ".join(line).rstrip() for line in cells]


def _drawn(headers: Row, rows: Sequence[Row], left: Sequence[bool], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for header, is_left in zip(headers, left, strict=True):
        table.add_column(Text(header), justify="left" if is_left else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
