"""Read `.npy`, `.npz` and IDX files; only this module opens arrays that other programs wrote.

NumPy parses a header as a Python literal, and an archive may be encrypted or compressed in many ways, so that a damaged
or hostile file raises almost any exception. This module turns all of them into DataError, and limits the memory that a
header can request by the size of its file.
"""

import contextlib
import gzip
import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.errors import DataError, LimitError
from difflogic.system.memory import physical_memory

Array = npt.NDArray[Any]
Opener = Callable[[], IO[bytes]]
MEMORY_SHARE = 4
"""Ratio of the machine's memory to the maximum size of a file's arrays, since several copies of them are made."""
UNREADABLE = (OSError, ValueError, ArithmeticError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error,
              lzma.LZMAError, struct.error)  # fmt: skip
"""Errors of a file that is absent, truncated, damaged, encrypted, or compressed by an unknown method."""
_MALFORMED = (*UNREADABLE, TypeError, LookupError, AttributeError, SyntaxError, MemoryError, tokenize.TokenError)
"""Errors of NumPy's parser of headers; it raises MemoryError for a literal that is nested too deeply."""
_AT_ONCE = 1 << 20
"""Maximum number of bytes to read from a compressed file in one call."""
_IDX_TYPES = {
    bytes((0, 0, code)): np.dtype(name)
    for code, name in {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}.items()
}
"""Types of the values of an IDX file, by its first three bytes."""
_EXPECTED = "it is not a .npy file of numbers"


class Header(NamedTuple):
    """Shape and type of an array, as the header of its file describes it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Size of the array's values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_array(source: Path | bytes, what: str) -> Array:
    """Return the array of an `.npy` file; a file on disk is mapped into memory, and its values are read on access.

    Args:
        source: The file, or its content.
        what: Name of the file for messages.

    Raises:
        DataError: The file cannot be read, or does not contain a plain array.
    """
    with _one_error(what):
        if isinstance(source, bytes):
            _header(partial(io.BytesIO, source), len(source))
            return np.lib.format.read_array(io.BytesIO(source), allow_pickle=False)
        _header(partial(io.FileIO, source), source.stat().st_size)
        return np.lib.format.open_memmap(source, mode="r")


def numbers_in(path: Path, what: str, *shapes: str) -> Array:
    """Return the numbers or truth values of an .npy file, which are read on access. Raises DataError.

    `shapes` are the allowed shapes, such as "[H, W, C]".
    """
    array = read_array(path, f"{what} {path}")
    if array.dtype.kind not in "biuf" or array.ndim not in {shape.count(",") + 1 for shape in shapes}:
        expected = f"numbers of shape {' or '.join(shapes)}"
        raise DataError(f"The {what} {path} must be {expected}, got {array.dtype} of shape {list(array.shape)}.")
    return array


def bits_in(path: Path, what: str, *shapes: str) -> npt.NDArray[np.uint8]:
    """Return the zeros and ones of an .npy file as uint8; see `numbers_in`. Raises DataError."""
    array = numbers_in(path, what, *shapes)
    if not np.isin(array, (0, 1)).all():
        raise DataError(f"The {what} {path} must hold nothing but 0 and 1.")
    return np.array(array, dtype=np.uint8, order="C")


def content(path: Path) -> bytes:
    """Return the bytes of a file, uncompressed if it is a `.gz`.

    Raises:
        DataError: The file cannot be read.
        LimitError: The content of a `.gz` exceeds the machine's memory divided by MEMORY_SHARE.
    """
    with _one_error(f"file {path}"):
        if path.suffix != ".gz":
            return path.read_bytes()
        most = (physical_memory() or 1 << 40) // MEMORY_SHARE
        with gzip.open(path) as file:
            parts, size = [], 0
            while size <= most and (part := file.read(_AT_ONCE)):
                parts.append(part)
                size += len(part)
    if size > most:
        raise LimitError(f"{path} holds more than {most / 1e9:.1f} GB, a {MEMORY_SHARE}th of this machine's memory.")
    return b"".join(parts)


def is_idx(path: Path) -> bool:
    """Return whether a file, or the content of a `.gz`, begins like an IDX file."""
    with contextlib.suppress(*UNREADABLE), (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        return bytes(file.read(2)) == b"\0\0"
    return False


def read_idx(path: Path) -> Array:
    """Return the array of an IDX file, the format of MNIST, plain or as `.gz`.

    Raises:
        DataError: The file cannot be read, or its header does not fit its values.
        LimitError: The content of a `.gz` exceeds the machine's memory divided by MEMORY_SHARE.
    """
    data = content(path)
    with _one_error(f"IDX file {path}"):
        if (dtype := _IDX_TYPES.get(data[:3])) is None:
            raise ValueError("it does not begin with the type of an IDX file")
        shape = struct.unpack_from(f">{data[3]}I", data, 4)
        header, start = Header(shape, dtype), 4 + 4 * len(shape)
        if header.nbytes != len(data) - start:
            raise ValueError(f"its header describes {header.nbytes} bytes of values, and {len(data) - start} follow")
        return np.frombuffer(data, dtype, offset=start).reshape(shape)


def read_arrays(
    source: Path | IO[bytes],
    check: Callable[[Mapping[str, Header]], None] = lambda _: None,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> dict[str, Array]:
    """Return the arrays of an `.npz` file, or of the `.npy` files of a folder, by name.

    Args:
        source: The file or folder.
        check: A function that is called with all headers before a value is read; its exceptions are not caught.
        is_wanted: A function that selects arrays by their names.

    Raises:
        DataError: The file cannot be read, or contains anything but plain arrays.
        LimitError: The arrays exceed the machine's memory divided by MEMORY_SHARE.
    """
    with _one_error(f"arrays in {source}"), contextlib.ExitStack() as stack:
        members = {name: member for name, member in _members(source, stack).items() if is_wanted(name)}
        headers = {name: _header(*member) for name, member in members.items()}
        check(headers)
        _check_memory(source, headers)
        arrays = {}
        for name, (opener, _) in members.items():
            with opener() as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
        return arrays


def names(source: Path | IO[bytes]) -> list[str]:
    """Return the names of the arrays in an `.npz` file. Raises DataError."""
    with _one_error(f"arrays in {source}"), contextlib.ExitStack() as stack:
        return [*_members(source, stack)]


def reason(error: Exception) -> str:
    """Return the reason of an error as the end of a sentence, without a full stop."""
    return (getattr(error, "strerror", None) or str(error) or "it is damaged").rstrip(".")


@contextlib.contextmanager
def _one_error(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise DataError(f"Cannot read the {what}: {reason(error)}.") from error


def _members(source: Path | IO[bytes], stack: contextlib.ExitStack) -> dict[str, tuple[Opener, int]]:
    """Return, for each array by name, a function that opens the array's file, and the size of the file."""
    if isinstance(source, Path) and source.is_dir():
        return {file.stem: (partial(io.FileIO, file), file.stat().st_size) for file in sorted(source.glob("*.npy"))}
    if not zipfile.is_zipfile(source):
        raise ValueError("expected an .npz file, or a folder of .npy files")
    archive = stack.enter_context(zipfile.ZipFile(source))
    infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    return {info.filename.removesuffix(".npy"): (partial(archive.open, info), info.file_size) for info in infos}


def _header(opener: Opener, size: int) -> Header:
    """Return the header of a file of `size` bytes. Raises ValueError for a malformed header, and UNREADABLE errors."""
    with opener() as file:
        magic = file.read(np.lib.format.MAGIC_LEN)
        if not magic.startswith(np.lib.format.MAGIC_PREFIX):
            raise ValueError("it is an archive" if magic.startswith(b"PK") else _EXPECTED)
        try:
            version = np.lib.format.read_magic(io.BytesIO(magic))
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
        except _MALFORMED as error:
            raise ValueError(f"{_EXPECTED}, its header is damaged") from error
        header = Header(shape, dtype)
        if dtype.hasobject or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError(_EXPECTED)
        if header.nbytes > size - file.tell():
            raise ValueError(f"its header describes {header.nbytes} bytes of values, and {size - file.tell()} follow")
        return header


def _check_memory(source: Path | IO[bytes], headers: Mapping[str, Header]) -> None:
    """Raise LimitError if the arrays exceed the machine's memory divided by MEMORY_SHARE."""
    needed = sum(header.nbytes for header in headers.values())
    memory = physical_memory()
    if memory is not None and MEMORY_SHARE * needed > memory:
        samples = max(header.shape[0] for header in headers.values() if header.shape)
        raise LimitError(
            f"The samples in {source} take {needed / 1e9:.1f} GB, but of this machine's {memory / 1e9:.1f} GB they may "
            f"take a {MEMORY_SHARE}th: at most {memory * samples // (MEMORY_SHARE * needed)} of the {samples} fit."
        )
