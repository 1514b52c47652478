"""Cache of small results in the user's cache folder: one JSON file per kind of result, with entries by key.

    {"format": "difflogic-NAME", "version": 1, "entries": {KEY: {...}}}

The folder also contains compiled code and matplotlib's cache. All its files can be recomputed, so a file that is
unreadable or unwritable only causes a warning.
"""

import atexit
import errno
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

from difflogic.system import files
from difflogic.system.words import visible

Entry = dict[str, Any]

VARIABLE = "DIFFLOGIC_CACHE_DIR"
"""Name of the environment variable for the folder of all caches."""


def user_cache() -> Path:
    """Create and return the folder of all caches: DIFFLOGIC_CACHE_DIR, or one in the system's cache folder."""
    try:
        usual = platformdirs.user_cache_dir("difflogic", appauthor=False)
    except RuntimeError:  # older versions return a path that begins with "~"
        usual = "~"
    return usable(VARIABLE, os.environ.get(VARIABLE) or usual)


@cache
def usable(variable: str, folder: str) -> Path:
    """Create a cache folder and return it; if it is not writable, warn and return a temporary folder instead.

    `variable` is the folder's environment variable, which then passes the temporary folder to child processes.
    """
    try:
        if folder.startswith("~"):
            raise FileNotFoundError(errno.ENOENT, "the user has no home")
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Path(folder)
    except OSError as error:
        # The name is random, so that other users cannot plant files in the folder: compiled code is executed.
        temporary = tempfile.TemporaryDirectory(prefix="difflogic-cache-", ignore_cleanup_errors=True)
        atexit.register(temporary.cleanup)
        os.environ[variable] = temporary.name
        why = f"The cache folder {folder} is not writable ({error.strerror})"
        warn(f"{why}: using a temporary folder until this process ends. Set {variable} to choose another folder.")
        return Path(temporary.name)


def warn(text: str) -> None:
    """Write a warning to standard error, for code without an observer; standard output may be JSON."""
    sys.stderr.write(f"difflogic: {visible(text)}\n")
    sys.stderr.flush()


@dataclass(frozen=True)
class JsonCache:
    """Cache in the file `NAME.json` of the user's cache folder."""

    name: str
    version: int = 1

    @property
    def path(self) -> Path:
        return user_cache() / f"{self.name}.json"

    def read(self) -> dict[str, Entry]:
        """Return all entries by key; for a corrupt, foreign or incompatible file, warn and return no entries."""
        # The package works without the file, so any error in it only causes a warning.
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if (data["format"], data["version"]) != (f"difflogic-{self.name}", self.version):
                raise ValueError("it has another format or version")
            entries = data["entries"]
            if not (isinstance(entries, dict) and all(isinstance(entry, dict) for entry in entries.values())):
                raise ValueError("its entries are not JSON objects")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            warn(f"The file {self.path} cannot be used ({type(error).__name__}: {error}) and is ignored.")
            return {}
        return entries

    def write(self, key: str, entry: Entry) -> None:
        """Add or replace one entry; on failure, warn and continue."""
        # Two processes that write simultaneously may lose an entry, which is then computed again: no lock is needed.
        self._write(self.read() | {key: entry})

    def drop(self, key: str) -> None:
        """Delete the entry of `key` if it exists."""
        entries = self.read()
        if entries.pop(key, None) is not None:
            self._write(entries)

    def forget(self, which: Callable[[Entry], bool]) -> int:
        """Delete all entries for which `which` returns True; return the number of deleted entries."""
        entries = self.read()
        rest = {key: entry for key, entry in entries.items() if not which(entry)}
        if len(rest) < len(entries):
            self._write(rest)
        return len(entries) - len(rest)

    def _write(self, entries: dict[str, Entry]) -> None:
        data = {"format": f"difflogic-{self.name}", "version": self.version, "entries": entries}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomically(self.path, (json.dumps(data, indent=1) + "\n").encode())
        except OSError as error:
            warn(f"Cannot write {self.path} ({error.strerror}): results are not cached.")


def key_of(*parts: object) -> str:
    """Return a short key for an entry; `parts` are all values on which the entry depends."""
    # The key is a digest, since adapter names may have any length and characters.
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]
