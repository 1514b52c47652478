"""The user's cache folder, and small answers that are kept in it: one JSON file per kind, entries by key.

    {"format": "difflogic-NAME", "version": 1, "entries": {KEY: {...}}}

What is kept can be found anew at any time, so a file that cannot be read or written is named in a warning and
ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from difflogic.system import files

Entry = dict[str, Any]


def user_cache() -> Path:
    """The folder: DIFFLOGIC_CACHE_DIR, else the system's usual place. It need not exist yet."""
    return Path(os.environ.get("DIFFLOGIC_CACHE_DIR") or platformdirs.user_cache_dir("difflogic", appauthor=False))


def warn(text: str) -> None:
    """One line on standard error, which never carries JSON as standard output may.

    It is for code so deep that no caller could pass an observer down to it.
    """
    sys.stderr.write(f"difflogic: {text}\n")
    sys.stderr.flush()


@dataclass(frozen=True)
class JsonCache:
    """The file `NAME.json` in the user's cache."""

    name: str
    version: int = 1

    @property
    def path(self) -> Path:
        return user_cache() / f"{self.name}.json"

    def read(self) -> dict[str, Entry]:
        """All entries; none, with a sentence, where the file is corrupt, foreign or of another version."""
        # Whatever is in the file, the package works without it: everything that can be wrong ends in one warning.
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
            warn(f"The file {self.path} cannot be used ({type(error).__name__}: {error}) and is ignored.")
            return {}
        return entries

    def write(self, key: str, entry: Entry) -> None:
        """Keep one entry beside the others; where that cannot be, say so and go on."""
        # Two processes that write at once may lose one entry, which is then found anew: no lock is worth that.
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
            warn(f"The file {self.path} cannot be written ({error.strerror}): what was found is not kept.")

    @property
    def _format(self) -> str:
        return f"difflogic-{self.name}"


def key_of(*parts: object) -> str:
    """One short key for everything that an entry depends on."""
    # A digest, since names of adapters and shapes may be of any length and in any script.
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]
