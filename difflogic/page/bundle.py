"""Bundle JavaScript modules into one script: local HTML files cannot import modules, and a server sends fewer files."""

import json
import posixpath
import re
from functools import cache
from importlib import resources

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache  # every visitor of a server requests the same script
def joined(entry: str) -> str:
    """Return the source of the module `entry`, such as `page/face.js`, combined with all modules that it imports.

    Each imported module becomes a function that is called once and returns its exports, so that names cannot collide.
    """
    names: dict[str, str] = {}
    texts: list[str] = []

    def collect(path: str) -> str:
        """Return the source of a module with each import replaced by a constant for the imported module's exports."""

        def imported(statement: re.Match[str]) -> str:
            other = posixpath.normpath(posixpath.join(posixpath.dirname(path), statement[2]))
            if other not in names:
                text = collect(other)
                body, exports = _EXPORT.sub(r"\1", text), ", ".join(name for _, name in _EXPORT.findall(text))
                names[other] = f"module{len(names)}"
                texts.append(f"const {names[other]} = (() => {{\n{body}return {{ {exports} }};\n}})();\n")
            return f"const {statement[1].replace(' as ', ': ')} = {names[other]};"

        return _IMPORT.sub(imported, package_text(path))

    text = collect(entry)
    return "".join([*texts, text])


def as_json(data: object) -> str:
    """Return `data` as JSON that is safe inside a `<script>` element."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def package_text(path: str) -> str:
    """Return the contents of a text file of the package; `path` is relative to `difflogic`."""
    return resources.files("difflogic").joinpath(path).read_text(encoding="utf-8")
