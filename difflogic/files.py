"""Files that are either whole or absent: written beside their place, flushed to the disk, renamed."""

from __future__ import annotations

import os
from pathlib import Path

TEMPORARY = ".tmp"
"""Suffix of a file under way. A process that was killed may leave one; the next write replaces it."""


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: after a crash at any moment it holds the old bytes or the new ones.

    Raises OSError; the temporary file is then removed, so that a full disk gets its space back.
    """
    write_beside(path, data).replace(path)
    sync_folder(path.parent)


def write_beside(path: Path, data: bytes) -> Path:
    """Write `data` to the temporary name of `path`, flushed to the disk; returns that name. Raises OSError."""
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb", buffering=0) as file:
            write_all(file.fileno(), data)
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def write_all(descriptor: int, data: bytes) -> None:
    """`os.write` until nothing is left: a nearly full disk takes a part before it refuses. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` last through a power cut, where the system can open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
