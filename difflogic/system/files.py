"""Files that are either whole or absent: written beside their place, flushed to the disk, renamed.

`write_atomically` is for the files of our own folders, `Output` for every file that a user named.
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
"""Suffix of a file under way. A process that was killed may leave one; the next write of that file removes it."""
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Flags of every `os.open` that writes. A link that somebody put in the file's place is an error and is not followed;
Windows has no such flag.
"""


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: after a crash at any moment it holds the old bytes or the new ones.

    Raises OSError; the temporary file is then removed, so that a full disk gets its space back.
    """
    with written_beside(path, data) as temporary:
        temporary.replace(path)
    sync_folder(path.parent)


@contextmanager
def written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """Write `data` to a temporary file next to `path`, flushed to the disk, for the block to rename.

    The temporary file is removed unless the block renames it. Raises OSError.
    """
    _remove_leftovers(path)
    # Nobody can put a link in the place of a name that nobody can guess.
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}{TEMPORARY}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o666)
    try:
        with os.fdopen(descriptor, "wb", buffering=0):
            # The lock lasts until the rename, except on Windows, which renames no open file.
            _lock(descriptor)
            write_all(descriptor, data)
            # Only after `fsync` may a rename follow: in a power cut some systems keep the new name and lose the bytes.
            os.fsync(descriptor)
            if sys.platform != "win32":
                yield temporary
        if sys.platform == "win32":
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of `path` that killed processes left: those that have content and no lock."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.*{TEMPORARY}"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | PLAIN)
            with os.fdopen(descriptor):
                # A writer takes the lock before it writes the first byte.
                if os.fstat(descriptor).st_size and _lock(descriptor):
                    left.unlink()


def _lock(descriptor: int) -> bool:
    """Return whether this process now holds the lock of a file; False if the system has none."""
    if sys.platform == "win32":
        return False
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def append(path: Path, data: bytes) -> None:
    """Append to a file, which is made if it is missing. Raises OSError, also if a link is in its place."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | PLAIN, 0o666)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def inside(path: Path, folder: Path) -> Path:
    """Return a path in a folder, of a file that is read to be published or that is written.

    Raises:
        RunFolderError: A link leads the path out of the folder.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise RunFolderError(f"{path} leads out of {folder} through a link: put a file or folder in the link's place.")
    return path


def read_bounded(path: Path, most: int) -> bytes:
    """Return what a file holds. Raises OSError, also where it has more than `most` bytes or, as a device, no end."""
    with path.open("rb") as file:
        # The size comes first, to read nothing of a file that is too long; a device has none.
        if os.fstat(file.fileno()).st_size <= most and len(data := file.read(most + 1)) <= most:
            return data
    raise OSError(errno.EFBIG, f"at most {most} bytes are read")


def check_links(folder: Path) -> None:
    """Raises RunFolderError if a link in a folder, or in a folder below it, leads out of it."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            inside(path, folder)


def write_all(descriptor: int, data: bytes) -> None:
    """`os.write` until nothing is left: a nearly full disk takes a part before it refuses. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def replace_folder(made: Path, place: Path) -> None:
    """Put a finished folder in its place; what was there goes only when the new one is there. Raises OSError."""
    old = place.with_name(f"{place.name}.old{TEMPORARY}")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    made.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def quoted(path: Path) -> str:
    """Return a path as the system's shell reads it, for commands that are shown; it is no option."""
    name = f".{os.sep}{path}" if str(path).startswith("-") else str(path)
    return shlex.quote(name) if os.name == "posix" else subprocess.list2cmdline([name])


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` last through a power cut, where the system can open folders."""
    if os.name != "posix":
        return
    # A rename is a change of the folder: the file may be on the disk and its name not yet.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Output:
    """A file to write, as the user named it. What is there is replaced by `force` alone.

    A link is followed: what it leads to is written, and it stays. Devices and pipes are written to and never replaced.
    Raises UsageError at once where it could not be written in the end, so that no work is done in vain.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        self.path, self.force = path, force
        self.is_stream = self._check()

    def __str__(self) -> str:
        return str(self.path)

    def write(self, data: bytes) -> None:
        """The whole file or, where that fails, what was there. Raises DifflogicError."""
        with self.open() as file:
            file.write(data)

    @contextmanager
    def open(self, private: bool = False) -> Iterator[BinaryIO]:
        """Write a file piece by piece; it takes its place when the block ends. Nobody else may read a `private` one.

        Raises UsageError where another file has come there since, DifflogicError.
        """
        # Checked when it was named, and again now: what took hours must not replace a file that came in between.
        self.is_stream = self._check()
        try:
            with self.path.open("wb") if self.is_stream else self._replacing(private) as file:
                yield file
        except OSError as error:
            raise self._refused(error) from error

    def _check(self) -> bool:
        """Return whether it is a device or a pipe, which is written to. Raises UsageError."""
        if str(self.path) == "-":
            raise UsageError("'-' is not supported: name a file, or /dev/stdout.")
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._check_folder()
            return False
        except OSError as error:  # a circle of links, a name that is too long
            raise UsageError(str(self._refused(error))) from error
        if stat.S_ISDIR(found.st_mode):
            raise UsageError(f"{self.path} is a folder: name a file in it.")
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISBLK(found.st_mode):
            return True
        if not self.force:
            raise UsageError(f"{self.path} exists already: choose another name, or replace it with --force.")
        if stat.S_ISREG(found.st_mode):
            self._check_folder()
        return stat.S_ISBLK(found.st_mode)

    def _check_folder(self) -> None:
        folder = self.path.resolve().parent
        if not folder.is_dir():
            raise UsageError(f"There is no folder {folder} to write {self.path.name} to: make it first.")
        if not os.access(folder, os.W_OK):
            raise UsageError(f"The folder {folder} cannot be written to: name a file in another one.")

    @contextmanager
    def _replacing(self, private: bool) -> Iterator[BinaryIO]:
        path = self.path.resolve()
        # A name that nobody can have laid there before, since the folder may be one that others write to.
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
        # Also for Ctrl-C, which is no Exception: half a file is never left behind.
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)

    def _refused(self, error: OSError) -> DifflogicError:
        return DifflogicError(f"Cannot write {self.path}: {error.strerror or error}.")


def tail(path: Path, size: int) -> bytes:
    """The last whole lines of a file, at most so many bytes. Raises OSError."""
    with path.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - size)
        file.seek(begin)
        text = file.read(size)
    # The first line is cut somewhere, unless the text begins with the file.
    return text.partition(b"\n")[2] if begin else text
