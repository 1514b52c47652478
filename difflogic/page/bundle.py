"""Modules of JavaScript in one file: an import map gives each its text as an address, so that none is asked for.

A browser opens the page from a file too, where no module may import another one beside it.
"""

from __future__ import annotations

import json
import posixpath
import re
from importlib import resources

_IMPORT = re.compile(r'^((?:import|export)\b[^"]*)"(\.[^"]+)";$', re.MULTILINE)
_ADDRESS = str.maketrans({"%": "%25", "#": "%23", "\n": "%0A", "\t": "%09"})
"""What an address would lose, or read as its end."""


def modules(entry: str) -> str:
    """The scripts of a module and all that it imports; `entry` is a path in the package, such as `page/face.js`."""
    texts: dict[str, str] = {}
    _collect(entry, texts)
    # Not base64, which gzip cannot make smaller.
    imports = {name: f"data:text/javascript;charset=utf-8,{text.translate(_ADDRESS)}" for name, text in texts.items()}
    table = as_json({"imports": imports})
    return f'<script type="importmap">{table}</script>\n<script type="module">import "{entry}";</script>'


def as_json(data: object) -> str:
    """JSON that may stand in a script of a page."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def package_text(path: str) -> str:
    """A text file of the package."""
    return resources.files("difflogic").joinpath(path).read_text(encoding="utf-8")


def _collect(path: str, texts: dict[str, str]) -> None:
    """Add a module, whose imports become paths in the package, and those that it imports."""
    text = package_text(path)

    def place(relative: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))

    texts[path] = _IMPORT.sub(lambda found: f'{found[1]}"{place(found[2])}";', text)
    for _, relative in _IMPORT.findall(text):
        if place(relative) not in texts:
            _collect(place(relative), texts)
