"""Tables: drawn on a terminal, line by line if it is too narrow, plain columns if the output is piped.

Wide columns of prose are printed line by line in a pipe too. Nothing is cut: only prose is wrapped, between words.
"""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

import click

from difflogic.system.words import visible

Row = Sequence[str]

PIPED = 120
"""Characters of a piped line with columns of prose."""
NARROWEST = 24
"""Fewest characters of a column of prose; a narrower terminal gets lines."""


def show(headers: Row, rows: Sequence[Row], title: str = "", texts: bool = False) -> None:
    """Print a table; the first column is left-aligned, like every column without a digit, or with `texts` all."""
    title, rows = visible(title), [[*map(visible, row)] for row in rows]
    columns = list(zip(headers, *rows, strict=True))
    left = [
        texts or not index or not any(any(map(str.isdigit, cell)) for cell in column[1:])
        for index, column in enumerate(columns)
    ]
    if sys.stdout.isatty():
        _fitted(headers, rows, left, title)
    else:
        plain = _plain(headers, rows, left, title)
        wide = texts and max(map(len, plain)) > PIPED
        click.echo("\n".join(_lines(headers, rows, title, PIPED) if wide else plain))


def loss_cells(soft: float | None, hard: int | None, solved: int | None, models: int) -> tuple[str, str, str]:
    """Return soft loss, hard loss and solved models as texts; the last two are empty before the first evaluation."""
    exact = ("", "") if hard is None else (str(hard), solved_cell(solved, models))
    return "" if soft is None else f"{soft:.4g}", *exact


def solved_cell(solved: int | None, models: int) -> str:
    """Return the number of solved models as text; empty if it is unknown."""
    return "" if solved is None else ("yes" if solved else "no") if models == 1 else f"{solved} of {models}"


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


def _fitted(headers: Row, rows: Sequence[Row], left: Sequence[bool], title: str) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(title=title or None, title_justify="left")
    for column, is_left in zip(zip(headers, *rows, strict=True), left, strict=True):
        prose, most = is_left and any(map(_is_prose, column)), max(map(cell_len, column))
        least = max(NARROWEST, *(cell_len(word) for cell in column for word in cell.split())) if prose else most
        justify: Literal["left", "right"] = "left" if is_left else "right"
        table.add_column(Text(column[0]), justify=justify, min_width=min(most, least), no_wrap=not prose)
    for row in rows:
        table.add_row(*map(Text, row))
    endless = console.options.update(width=1 << 16)
    if console.measure(table, options=endless).minimum > console.width:
        click.echo("\n".join(_lines(headers, rows, title, console.width)))
    else:
        console.print(table)


def _lines(headers: Row, rows: Sequence[Row], title: str, room: int) -> Iterator[str]:
    """Yield the lines of a table on a narrow terminal: each row's first cell, and below it the others with headers."""
    if title:
        yield title
    for first, *rest in rows:
        yield click.style(first, bold=True)
        facts = [
            f"{header}: {text}" if header else text for header, text in zip(headers[1:], rest, strict=True) if text
        ]
        for is_prose, some in groupby(facts, _is_prose):  # prose has lines of its own
            # NULs in place of spaces keep a fact such as `epochs: 3/500` on one line.
            for text in some if is_prose else ["  ".join(fact.replace(" ", "\0") for fact in some)]:
                wrapped = textwrap.wrap(text, max(1, room - 4), break_long_words=False, break_on_hyphens=False)
                yield from (f"  {line}".replace("\0", " ") for line in wrapped)


def _is_prose(text: str) -> bool:
    return text.count(" ") > 3
