"""Reader of .csv files as rows of text; it detects the column separator and the decimal separator."""

import csv
import io
import re
from pathlib import Path

from difflogic.errors import DataError
from difflogic.system import array_files

_OTHER_FILES = {
    r"@relation\b": "It is an ARFF file: save it as .csv, with a first row of names",
    r"\S+( +\d+:\S+)+ *$": "It is a LIBSVM file: save it as .csv, with a row of names and a column for each index",
    r"[^,;\t|]*\|[^,;\t]*$": "Its columns are separated by vertical bars: expected commas, semicolons or tabs",
    r"[^,;\t ]+ +[^,;\t]*$": "Its columns are separated by spaces: expected commas, semicolons or tabs",
}
"""Mapping from patterns of the first line of files in other formats to error messages."""


def read(path: Path) -> list[tuple[int, list[str]]]:
    """Return line number and texts of each row in a .csv file; the first row has the column names. Raises DataError."""
    try:
        text = io.TextIOWrapper(io.BytesIO(array_files.content(path)), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise DataError("It is not UTF-8 text: expected a .csv or .npz file.") from error
    beginning = re.search(r"^[^%\s].*", text, re.MULTILINE)
    first = beginning[0] if beginning else ""
    separator = max(",;\t", key=first.count)
    if declared := re.fullmatch(r"sep=(.)\s*", first):  # such a first line tells Excel the separator
        separator, text = declared[1], text.replace(first, "", 1)
    elif refusal := next((text for form, text in _OTHER_FILES.items() if re.match(form, first, re.IGNORECASE)), ""):
        raise DataError(f"{refusal}.")
    try:
        reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
        rows = [(reader.line_num, [value.strip() for value in row]) for row in reader if row]
    except csv.Error as error:
        raise DataError(f"It is not a table: {error}.") from error
    if not rows:
        raise DataError("It is empty: expected a first row that names the columns.")
    line, names = rows[0]
    names = ["" if re.fullmatch(r"Unnamed: \d+", name) else name for name in names]
    _check_columns(names, rows)
    return [(line, names), *(_with_points(rows[1:]) if separator == ";" else rows[1:])]


def _check_columns(names: list[str], rows: list[tuple[int, list[str]]]) -> None:
    """Raise DataError unless names are unique, no name but the first is empty, and rows have one value per column."""
    if "" in names[1:]:
        raise DataError(f"Column {names.index('', 1) + 1} has no name in the first row: name it, or leave it out.")
    if len(names) - (not names[0]) < 2:
        raise DataError(
            f"The first row names one column, {names[-1][:40]!r}: expected a label and features, separated by commas, "
            "semicolons or tabs."
        )
    if repeated := [name for place, name in enumerate(names) if name in names[:place]]:
        raise DataError(f"Two columns are named {repeated[0][:40]!r} in the first row: rename one of them.")
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(f"row {line} has {len(row)} values, but there are {len(names)} columns.")


def _with_points(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Replace decimal commas by points. Raises DataError if rows have both, since one may separate thousands."""
    comma, point = (re.compile(rf"[+-]?\d*[{sign}]\d+(e[+-]?\d+)?", re.IGNORECASE) for sign in ",.")
    some, others = ([text for _, row in rows for text in row if sign.fullmatch(text)] for sign in (comma, point))
    if some and others:
        raise DataError(
            f"it contains {some[0][:40]!r} and {others[0][:40]!r}: write decimals with commas only, or points only."
        )
    return [(line, [text.replace(",", ".") if comma.fullmatch(text) else text for text in row]) for line, row in rows]
