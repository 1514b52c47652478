"""Write files atomically: a temporary file in the same folder is flushed to disk and renamed.

`write_atomically` is for files in difflogic's own folders, `Output` for output files that the user selects.
"""

import errno
import glob
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from difflogic.errors import DifflogicError, RunFolderError, UsageError

if sys.platform != "win32":
    import fcntl

TEMPORARY = ".tmp"
"""Suffix of temporary files. The next write of a file removes temporary files of killed processes."""
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Flags for `os.open` that refuse symbolic links (except on Windows) and select binary mode."""


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the contents of a file so that after a crash it has either the old or the new contents.

    On failure, the temporary file is removed to free its space. Raises OSError.
    """
    with written_beside(path, data) as temporary:
        temporary.replace(path)
    sync_folder(path.parent)


@contextmanager
def written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """Write `data` to a temporary file next to `path`, flush it to disk, and yield its path for renaming.

    The temporary file is removed at the end of the context unless it was renamed. Raises OSError.
    """
    _remove_leftovers(path)
    # The name is random, so that no other user can put a link in its place.
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}{TEMPORARY}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o666)
    try:
        with os.fdopen(descriptor, "wb", buffering=0):
            # The lock is held until the rename, except on Windows, which cannot rename open files.
            _lock(descriptor)
            write_all(descriptor, data)
            # `fsync` must precede the rename: after a power failure, some systems have the new name without the bytes.
            os.fsync(descriptor)
            if sys.platform != "win32":
                yield temporary
        if sys.platform == "win32":
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of `path` that are neither empty nor locked: killed processes left them."""
    for leftover in path.parent.glob(f"{glob.escape(path.name)}.*{TEMPORARY}"):
        with suppress(OSError):
            descriptor = os.open(leftover, os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | PLAIN)
            with os.fdopen(descriptor):
                # A writer locks the file before it writes the first byte.
                if os.fstat(descriptor).st_size and _lock(descriptor):
                    leftover.unlink()


def _lock(descriptor: int) -> bool:
    """Lock an open file without waiting; return whether it is locked, always False if the system has no file locks."""
    if sys.platform == "win32":
        return False
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def append(path: Path, data: bytes) -> None:
    """Append `data` to a file, creating it if necessary. Raises OSError, also if the path is a link."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | PLAIN, 0o666)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def inside(path: Path, folder: Path) -> Path:
    """Return `path` after checking that it is inside `folder`, for files that are to be written or published.

    Raises:
        RunFolderError: The path leads out of the folder through a link.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise RunFolderError(f"{path} leads out of {folder} through a link: replace the link by a file or folder.")
    return path


def read_bounded(path: Path, most: int) -> bytes:
    """Return the contents of a file of at most `most` bytes. Raises OSError, also for a larger file or a device."""
    with path.open("rb") as file:
        # The size is checked first, so that nothing is read from a file that is too large; a device has no size.
        if os.fstat(file.fileno()).st_size <= most and len(data := file.read(most + 1)) <= most:
            return data
    raise OSError(errno.EFBIG, f"expected at most {most} bytes, got more")


def check_links(folder: Path) -> None:
    """Raise RunFolderError if a link in a folder or its subfolders leads out of the folder."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            inside(path, folder)


def write_all(descriptor: int, data: bytes) -> None:
    """Call `os.write` until all of `data` is written, since one call may write only a part. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def replace_folder(finished: Path, place: Path) -> None:
    """Move the folder `finished` to `place`, then delete the folder that was at `place` before. Raises OSError."""
    old = place.with_name(f"{place.name}.old{TEMPORARY}")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    finished.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def quoted(path: Path) -> str:
    """Quote a path for the system's shell, for commands in messages; before a leading `-`, add `./`."""
    name = f".{os.sep}{path}" if str(path).startswith("-") else str(path)
    return shlex.quote(name) if os.name == "posix" else subprocess.list2cmdline([name])


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that renames in it survive a power failure; do nothing on Windows."""
    if os.name != "posix":
        return
    # A rename changes only the folder, so the file may be on disk while its new name is not.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Output:
    """Output file that the user selects; an existing file is replaced only if `force` is True.

    If the path is a link, its target is written and the link remains. Devices and pipes are never replaced, only
    written to. The constructor raises UsageError for an unwritable path, so that no results are lost at the end.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        self.path, self.force = path, force
        self.is_stream = self._check()

    def __str__(self) -> str:
        return str(self.path)

    def write(self, data: bytes) -> None:
        """Write the complete file; on failure, the old file remains. Raises DifflogicError."""
        with self.open() as file:
            file.write(data)

    @contextmanager
    def open(self, private: bool = False) -> Iterator[BinaryIO]:
        """Open the file for writing and replace it when the context ends; only its owner can read a `private` file.

        Raises UsageError if the file was created by another process in the meantime, or DifflogicError.
        """
        # The path is checked again: a computation of hours must not replace a file that was created in the meantime.
        self.is_stream = self._check()
        try:
            with self.path.open("wb") if self.is_stream else self._replacing(private) as file:
                yield file
        except OSError as error:
            raise self._refused(error) from error

    def _check(self) -> bool:
        """Return whether the file is a device or a pipe. Raises UsageError if the path cannot be written."""
        if str(self.path) == "-":
            raise UsageError("Expected a file, got '-': for standard output, use /dev/stdout.")
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._check_folder()
            return False
        except OSError as error:  # such as a loop of links, or a name that is too long
            raise UsageError(str(self._refused(error))) from error
        if stat.S_ISDIR(status.st_mode):
            raise UsageError(f"Expected a file, but {self.path} is a folder.")
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISBLK(status.st_mode):
            return True
        if not self.force:
            raise UsageError(f"{self.path} exists already: choose another name, or replace it with --force.")
        if stat.S_ISREG(status.st_mode):
            self._check_folder()
        return stat.S_ISBLK(status.st_mode)

    def _check_folder(self) -> None:
        folder = self.path.resolve().parent
        if not folder.is_dir():
            raise UsageError(f"Cannot write {self.path.name}: the folder {folder} does not exist. Create it first.")
        if not os.access(folder, os.W_OK):
            raise UsageError(f"The folder {folder} is not writable: choose another folder.")

    @contextmanager
    def _replacing(self, private: bool) -> Iterator[BinaryIO]:
        path = self.path.resolve()
        # The name is random, since other users may be able to write to the folder.
        temporary = path.with_name(f".{os.urandom(8).hex()}{TEMPORARY}")
        temporary.touch(0o600 if private else 0o666, exist_ok=False)
        try:
            if path.exists() and not private:
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:  # also after Ctrl-C, so that no incomplete file remains
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)

    def _refused(self, error: OSError) -> DifflogicError:
        return DifflogicError(f"Cannot write {self.path}: {error.strerror or error}.")


def tail(path: Path, size: int) -> bytes:
    """Return the last complete lines of a file, at most `size` bytes. Raises OSError."""
    with path.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - size)
        file.seek(begin)
        text = file.read(size)
    # The first line is incomplete unless the text is the complete file.
    return text.partition(b"\n")[2] if begin else text
