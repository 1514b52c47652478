"""The folder of a gallery: `index.html`, and a folder for each run. Plain files, which any web server can host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from difflogic import files
from difflogic.circuits.gallery.exhibit import Exhibit
from difflogic.circuits.gallery.template import page
from difflogic.errors import DifflogicError, UsageError
from difflogic.train import catalogue

INDEX = "index.html"


def runs_in(paths: Sequence[Path]) -> list[Path]:
    """The run folders that `paths` are or hold, each once, in order.

    Raises RunFolderError for a path that is no folder, UsageError where there is no run.
    """
    found = list(dict.fromkeys(run for path in paths for run in catalogue.find(path)))
    if not found:
        raise UsageError(f"There is no run in {', '.join(map(str, paths))}: expected run folders, or folders of them.")
    return found


def check_out(out: Path, force: bool) -> None:
    """Raises UsageError where `out` is no place for a gallery, before any work is done for it."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: name a folder.")
    if not force and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"The folder {out} is not empty: --force replaces the pages in it, --out names another.")


def write_exhibit(out: Path, exhibit: Exhibit) -> None:
    """Raises DifflogicError where the disk refuses."""
    for file, content in exhibit.files.items():
        _write(out / exhibit.name / file, content)


def write_index(out: Path, exhibits: Sequence[Exhibit]) -> None:
    """The page that leads to them; last, so that it never leads nowhere. Raises DifflogicError."""
    _write(out / INDEX, page(INDEX, exhibits=exhibits))


def _write(path: Path, content: str | bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise DifflogicError(f"Cannot write {path}: {error.strerror or error}.") from error
