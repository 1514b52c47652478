"""What every format shares: names that are words in each language, templates, and what a file says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files

import difflogic
from difflogic.errors import ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import expression, lines

Files = dict[str, str | bytes]
"""A format's files by name."""

MAX_NAME = 60
"""Characters of a name that are kept: file systems and Golly have limits."""

_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d", re.IGNORECASE)
_MARK = re.compile(r"@([A-Z_]+)@")
_TEMPLATES = files(__package__) / "templates"


def identifier(name: str) -> str:
    """A word in every language: ASCII letters, digits and single underscores, a letter first and none last.

    It may be a keyword: what is written is the word with an ending, such as `_cell`. No file of Windows may be called
    by it where it is a device there, such as `aux`.
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    if not word or not word[0].isalpha() or _DEVICE.fullmatch(word):
        word = f"circuit_{word}".rstrip("_")
    return word[:MAX_NAME].rstrip("_")


def text_of(files: Files, file: str) -> str:
    """A file that is text."""
    content = files[file]
    return content if isinstance(content, str) else content.decode()


def template(file: str) -> str:
    """The text of a template."""
    return (_TEMPLATES / file).read_text(encoding="utf-8")


def fill(file: str, netlist: CellNetlist, name: str, **values: object) -> str:
    """A template with `@MARK@` replaced by `values["mark"]`, or by what `_COMMON` says of the circuit.

    Raises ExportError for a mark without a value, or a value without a mark.
    """
    text = template(file)
    marks = {mark.lower() for mark in _MARK.findall(text)}
    # A mark without a value would be shipped as it stands, and a value without a mark is an error of ours.
    if wrong := (marks - _COMMON.keys() - {"name", "upper"} - values.keys()) | (values.keys() - marks):
        raise ExportError(f"The template {file} and what fills it differ in {', '.join(sorted(wrong))}.")
    known = {"name": name, "upper": name.upper()} | values
    known |= {mark: _COMMON[mark](netlist) for mark in marks - known.keys()}
    return _MARK.sub(lambda mark: str(known[mark[1].lower()]), text)


def about(netlist: CellNetlist) -> str:
    """One line: what made the file, and from what; gates are counted that read two inputs, as everywhere.

    Channels are named where some were dropped: `3 channels (0, 2, 3)`.
    """
    boundary = "wraps around" if netlist.periodic else "is 0 outside"
    count = sum(len(line.reads) == 2 for line in lines(netlist))
    names = "" if netlist.origin == tuple(range(netlist.channels)) else f" ({channel_names(netlist.origin)})"
    return (
        f"difflogic {difflogic.__version__}: {counted(count, 'gate')}, {counted(netlist.channels, 'channel')}{names}, "
        f"{netlist.visible} visible; the grid {boundary}."
    )


_COMMON: dict[str, Callable[[CellNetlist], object]] = {
    "about": about,
    "channels": lambda netlist: netlist.channels,
    "inputs": lambda netlist: netlist.inputs,
    "last_channel": lambda netlist: netlist.channels - 1,
    "last_input": lambda netlist: netlist.inputs - 1,
    "visible": lambda netlist: netlist.visible,
    "periodic": lambda netlist: int(netlist.periodic),
}
"""What templates ask of every circuit; a language that writes one of them otherwise gives its own value."""


def channel_names(origin: tuple[int, ...]) -> str:
    """Channel numbers, few enough for a line."""
    names = ", ".join(map(str, origin[:12]))
    return names if len(origin) <= 12 else f"{names}, ... ({len(origin)})"


def counted(count: int, noun: str) -> str:
    """`1 gate`, `2 gates`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def bit_names(netlist: CellNetlist, patch: str = "patch[{}]") -> list[str]:
    """What each bit of a cell is called: inputs by their number, gates as in circuit.json."""
    inputs = [patch.format(bit) for bit in range(netlist.inputs)]
    return inputs + [f"g{gate}" for gate in range(len(netlist.gates))]


def statements(netlist: CellNetlist, assign: str, result: str, zero: str, one: str, patch: str = "patch[{}]") -> str:
    """The cell in the operators `~ & | ^`: `assign` with `{name}` and `{value}` for each gate, then `result`.

    Indented by four blanks, the first line's left out.
    """
    names = bit_names(netlist, patch)
    found = [
        assign.format(name=names[line.bit], value=expression(line, names.__getitem__, zero, one))
        for line in lines(netlist)
    ]
    outputs = enumerate(netlist.outputs.tolist())
    return "\n    ".join(found + [result.format(name=channel, value=names[output]) for channel, output in outputs])
