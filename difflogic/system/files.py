"""Write files atomically: a temporary file in the same folder is flushed to disk and renamed.

`write_atomically` is for files in folders of difflogic, `Output` for every file that a user named.
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
"""Suffix of temporary files. A killed process may leave one; the next write of the same file removes it."""
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Flags of every `os.open` that writes: a link instead of the file is an error. Windows has no such flag."""


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the content of a file: after a crash at any moment, it has either the old or the new content.

    If this fails, the temporary file is removed to free its space. Raises OSError.
    """
    with written_beside(path, data) as temporary:
        temporary.replace(path)
    sync_folder(path.parent)


@contextmanager
def written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """Write `data` to a temporary file next to `path`, flush it to the disk, and yield its path for a rename.

    The temporary file is removed unless the block renames it. Raises OSError.
    """
    _remove_leftovers(path)
    # A random name, so that no other user can put a link in its place.
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}{TEMPORARY}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o666)
    try:
        with os.fdopen(descriptor, "wb", buffering=0):
            # The lock lasts until the rename, except on Windows, which renames no open file.
            _lock(descriptor)
            write_all(descriptor, data)
            # `fsync` must precede the rename: in a power cut some systems keep the new name and lose the bytes.
            os.fsync(descriptor)
            if sys.platform != "win32":
                yield temporary
        if sys.platform == "win32":
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` that killed processes left: files with content and without a lock."""
    for leftover in path.parent.glob(f"{glob.escape(path.name)}.*{TEMPORARY}"):
        with suppress(OSError):
            descriptor = os.open(leftover, os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | PLAIN)
            with os.fdopen(descriptor):
                # A writer takes the lock before it writes the first byte.
                if os.fstat(descriptor).st_size and _lock(descriptor):
                    leftover.unlink()


def _lock(descriptor: int) -> bool:
    """Lock a file, and return whether this succeeded; return False if the system has no locks."""
    if sys.platform == "win32":
        return False
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def append(path: Path, data: bytes) -> None:
    """Append to a file, or create it. Raises OSError, also if the path is a link."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | PLAIN, 0o666)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def inside(path: Path, folder: Path) -> Path:
    """Return `path` if it is inside a folder: call this before a file is written or published.

    Raises:
        RunFolderError: A link leads the path out of the folder.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise RunFolderError(f"{path} leads out of {folder} through a link: put a file or folder in the link's place.")
    return path


def read_bounded(path: Path, most: int) -> bytes:
    """Return the content of a file. Raises OSError, also if the file has more than `most` bytes or is endless."""
    with path.open("rb") as file:
        # The size is checked first, to read nothing of a file that is too long; a device has no size.
        if os.fstat(file.fileno()).st_size <= most and len(data := file.read(most + 1)) <= most:
            return data
    raise OSError(errno.EFBIG, f"at most {most} bytes are read")


def check_links(folder: Path) -> None:
    """Raise RunFolderError if a link in a folder, or in a folder below it, leads out of it."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            inside(path, folder)


def write_all(descriptor: int, data: bytes) -> None:
    """Call `os.write` until all data is written: a nearly full disk accepts a part before an error. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def replace_folder(finished: Path, place: Path) -> None:
    """Move a finished folder to `place`; the old folder is deleted only after that. Raises OSError."""
    old = place.with_name(f"{place.name}.old{TEMPORARY}")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    finished.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def quoted(path: Path) -> str:
    """Quote a path for the system's shell, in commands for users; the path never looks like an option."""
    name = f".{os.sep}{path}" if str(path).startswith("-") else str(path)
    return shlex.quote(name) if os.name == "posix" else subprocess.list2cmdline([name])


def sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that renames in it survive a power cut; do nothing on Windows."""
    if os.name != "posix":
        return
    # A rename changes the folder: the file may be on the disk before its name is.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Output:
    """Output file that the user named. An existing file is replaced only with `force`.

    A link is followed: its target is written, and the link stays. Devices and pipes are written to and never replaced.
    Raises UsageError early, so that no work is lost because the file cannot be written in the end.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        self.path, self.force = path, force
        self.is_stream = self._check()

    def __str__(self) -> str:
        return str(self.path)

    def write(self, data: bytes) -> None:
        """Write the complete file; if that fails, the old file stays. Raises DifflogicError."""
        with self.open() as file:
            file.write(data)

    @contextmanager
    def open(self, private: bool = False) -> Iterator[BinaryIO]:
        """Open the file for writing; it is replaced when the block ends. Only the owner may read a `private` file.

        Raises UsageError if the file was created by someone else meanwhile, DifflogicError.
        """
        # The path is checked again, since a computation of hours must not replace a file that was created meanwhile.
        self.is_stream = self._check()
        try:
            with self.path.open("wb") if self.is_stream else self._replacing(private) as file:
                yield file
        except OSError as error:
            raise self._refused(error) from error

    def _check(self) -> bool:
        """Return whether the file is a device or a pipe. Raises UsageError."""
        if str(self.path) == "-":
            raise UsageError("'-' is not supported: name a file, or /dev/stdout.")
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._check_folder()
            return False
        except OSError as error:  # a circle of links, a name that is too long
            raise UsageError(str(self._refused(error))) from error
        if stat.S_ISDIR(status.st_mode):
            raise UsageError(f"{self.path} is a folder: name a file in it.")
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
            raise UsageError(f"There is no folder {folder} to write {self.path.name} to: make it first.")
        if not os.access(folder, os.W_OK):
            raise UsageError(f"The folder {folder} cannot be written to: name a file in another one.")

    @contextmanager
    def _replacing(self, private: bool) -> Iterator[BinaryIO]:
        path = self.path.resolve()
        # A random name, since other users may write to the folder too.
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
        # This also catches Ctrl-C, which is not an Exception: an incomplete file never stays.
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)

    def _refused(self, error: OSError) -> DifflogicError:
        return DifflogicError(f"Cannot write {self.path}: {error.strerror or error}.")


def tail(path: Path, size: int) -> bytes:
    """Return the last complete lines of a file, at most `size` bytes. Raises OSError."""
    with path.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - size)
        file.seek(begin)
        text = file.read(size)
    # The first line is incomplete, unless the text is the complete file.
    return text.partition(b"\n")[2] if begin else text
