"""Printing of tables: framed on a terminal, line by line on a narrow terminal, in plain columns for a pipe.

Wide columns of prose are also printed line by line in a pipe. No text is cut: only prose is wrapped, between words.
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
"""Maximum number of characters per line in a pipe if a table has columns of prose."""
NARROWEST = 24
"""Minimum number of characters in a column of prose; a table too wide for the terminal is printed line by line."""


def show(headers: Row, rows: Sequence[Row], title: str = "", texts: bool = False) -> None:
    """Print a table. The first column and columns without digits are left-aligned; with `texts`, all columns are."""
    title, rows = visible(title), [[*map(visible, row)] for row in rows]
    columns = list(zip(headers, *rows, strict=True))
    are_left = [
        texts or not index or not any(map(str.isdigit, "".join(column[1:]))) for index, column in enumerate(columns)
    ]
    if sys.stdout.isatty():
        _fitted(headers, rows, are_left, title)
        return
    formats = [f"{'<' if left else '>'}{max(map(len, cells))}" for cells, left in zip(columns, are_left, strict=True)]
    plain = ([title] if title else []) + ["  ".join(map(format, line, formats)).rstrip() for line in (headers, *rows)]
    is_wide = texts and max(map(len, plain)) > PIPED
    click.echo("\n".join(_lines(headers, rows, title, PIPED) if is_wide else plain))


def loss_cells(soft: float | None, hard: int | None, solved: int | None, models: int) -> tuple[str, str, str]:
    """Return soft loss, hard loss and `solved` of `models` as texts; the last two are "" before an evaluation."""
    exact = ("", "") if hard is None else (str(hard), solved_cell(solved, models))
    return "" if soft is None else f"{soft:.4g}", *exact


def solved_cell(solved: int | None, models: int) -> str:
    """Return `N of M` solved models as text, or `yes` or `no` if `models` is 1; "" if `solved` is None."""
    return "" if solved is None else ("yes" if solved else "no") if models == 1 else f"{solved} of {models}"


def _fitted(headers: Row, rows: Sequence[Row], are_left: Sequence[bool], title: str) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(title=title or None, title_justify="left")
    for column, is_left in zip(zip(headers, *rows, strict=True), are_left, strict=True):
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


def _lines(headers: Row, rows: Sequence[Row], title: str, width: int) -> Iterator[str]:
    """Yield the lines of a table: the first cell of each row, and below it the other cells with their headers."""
    if title:
        yield title
    for first, *rest in rows:
        yield click.style(first, bold=True)
        facts = [f"{name}: {text}" if name else text for name, text in zip(headers[1:], rest, strict=True) if text]
        for is_prose, group in groupby(facts, _is_prose):  # each fact in prose has its own line
            # NULs in place of spaces keep a pair such as `epochs: 3/500` on one line.
            for text in group if is_prose else ["  ".join(fact.replace(" ", "\0") for fact in group)]:
                wrapped = textwrap.wrap(text, max(1, width - 4), break_long_words=False, break_on_hyphens=False)
                yield from (f"  {line}".replace("\0", " ") for line in wrapped)


def _is_prose(text: str) -> bool:
    return text.count(" ") > 3
