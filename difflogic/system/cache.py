"""Small answers that are kept in the user's cache: one JSON file per kind, entries by key.

    {"format": "difflogic-NAME", "version": 1, "entries": {KEY: {...}}}

What is kept can be found anew at any time, so a file that cannot be read or written is told and ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from difflogic import files
from difflogic.tell import tell
from difflogic.user_cache import user_cache

Entry = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """The file `NAME.json` in the user's cache."""

    name: str
    version: int = 1

    @property
    def path(self) -> Path:
        return user_cache() / f"{self.name}.json"

    def read(self) -> dict[str, Entry]:
        """All entries; none, with a sentence, where the file is corrupt, foreign or of another version."""
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if (data["format"], data["version"]) != (self._format, self.version):
                raise ValueError("it has another format or version")
            entries = data["entries"]
            if not (isinstance(entries, dict) and all(isinstance(entry, dict) for entry in entries.values())):
                raise ValueError("its entries are no entries")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            tell(f"The file {self.path} cannot be used ({type(error).__name__}: {error}) and is ignored.")
            return {}
        return entries

    def write(self, key: str, entry: Entry) -> None:
        """Keep one entry beside the others; where that cannot be, say so and go on."""
        self._write(self.read() | {key: entry})

    def drop(self, key: str) -> None:
        """Forget one entry, if there is one."""
        entries = self.read()
        if entries.pop(key, None) is not None:
            self._write(entries)

    def forget(self, which: Callable[[Entry], bool]) -> int:
        """Drop the entries that `which` names; returns how many."""
        entries = self.read()
        left = {key: entry for key, entry in entries.items() if not which(entry)}
        if len(left) < len(entries):
            self._write(left)
        return len(entries) - len(left)

    def _write(self, entries: dict[str, Entry]) -> None:
        data = {"format": self._format, "version": self.version, "entries": entries}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomically(self.path, (json.dumps(data, indent=1) + "\n").encode())
        except OSError as error:
            tell(f"The file {self.path} cannot be written ({error.strerror}): what was found is not kept.")

    @property
    def _format(self) -> str:
        return f"difflogic-{self.name}"


def key_of(*parts: object) -> str:
    """One short key for everything that an entry depends on."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]
