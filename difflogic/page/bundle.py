"""Modules of JavaScript as one: a server sends one file instead of fifty, and a page that is a file has no other."""

import json
import posixpath
import re
from functools import cache
from importlib import resources

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache  # a server is asked for it by everybody, and waits meanwhile
def joined(entry: str) -> str:
    """A module and all it imports as one, which exports what it does; `entry` is a path such as `page/face.js`.

    Each becomes a function that is called once and returns its exports, so that none sees another's names.
    """
    names: dict[str, str] = {}
    texts: list[str] = []

    def collect(path: str) -> str:
        """The text of a module, whose imports are functions' results and stand before it."""

        def imported(found: re.Match[str]) -> str:
            other = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
            if other not in names:
                text = collect(other)
                body, exports = _EXPORT.sub(r"\1", text), ", ".join(name for _, name in _EXPORT.findall(text))
                names[other] = f"module{len(names)}"
                texts.append(f"const {names[other]} = (() => {{\n{body}return {{ {exports} }};\n}})();\n")
            return f"const {found[1].replace(' as ', ': ')} = {names[other]};"

        return _IMPORT.sub(imported, package_text(path))

    last = collect(entry)
    return "".join([*texts, last])


def as_json(data: object) -> str:
    """JSON that may stand in a script of a page."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def package_text(path: str) -> str:
    """A text file of the package."""
    return resources.files("difflogic").joinpath(path).read_text(encoding="utf-8")
