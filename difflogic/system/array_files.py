"""Read `.npy`, `.npz` and IDX files; only this module opens array files that come from outside difflogic.

NumPy parses a header as a Python literal, and an archive may be encrypted or compressed in many ways, so a damaged or
hostile file can raise almost any exception. This module converts all of them to DataError, and rejects a header that
describes more values than its file contains.
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
"""Ratio of the machine's memory to the maximum size of a file's arrays, which are copied several times."""
UNREADABLE = (OSError, ValueError, ArithmeticError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error,
              lzma.LZMAError, struct.error)  # fmt: skip
"""Exceptions raised for files that are missing, truncated, damaged, encrypted, or compressed by an unknown method."""
_MALFORMED = (*UNREADABLE, TypeError, LookupError, AttributeError, SyntaxError, MemoryError, tokenize.TokenError)
"""Exceptions of NumPy's header parser, including MemoryError for a literal that is nested too deeply."""
_AT_ONCE = 1 << 20
"""Number of bytes to read per call from a compressed file."""
_IDX_TYPES = {
    bytes((0, 0, code)): np.dtype(name)
    for code, name in {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}.items()
}
"""Mapping from an IDX file's first three bytes to the type of its values."""
_EXPECTED = "it is not a .npy file of numbers"


class Header(NamedTuple):
    """Header of an array file: shape and type of the array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Total size of the array's values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_array(source: Path | bytes, what: str) -> Array:
    """Return the array of an `.npy` file; a file on disk is memory-mapped, so that values are read on access.

    Args:
        source: Path or contents of the file.
        what: Description of the file for error messages, such as `start`.

    Raises:
        DataError: The file is unreadable or does not contain an array of plain values.
    """
    with _one_error(what):
        if isinstance(source, bytes):
            _header(partial(io.BytesIO, source), len(source))
            return np.lib.format.read_array(io.BytesIO(source), allow_pickle=False)
        _header(partial(io.FileIO, source), source.stat().st_size)
        return np.lib.format.open_memmap(source, mode="r")


def numbers_in(path: Path, what: str, *shapes: str) -> Array:
    """Return a memory-mapped array of numbers or booleans from an .npy file. Raises DataError.

    `shapes` are the allowed shapes, such as "[H, W, C]"; `what` is a description of the file for error messages.
    """
    array = read_array(path, f"{what} {path}")
    if array.dtype.kind not in "biuf" or array.ndim not in {shape.count(",") + 1 for shape in shapes}:
        expected = f"numbers of shape {' or '.join(shapes)}"
        raise DataError(f"The {what} {path} must be {expected}, got {array.dtype} of shape {list(array.shape)}.")
    return array


def bits_in(path: Path, what: str, *shapes: str) -> npt.NDArray[np.uint8]:
    """Return an array of 0 and 1 from an .npy file as uint8; see `numbers_in` for arguments. Raises DataError."""
    array = numbers_in(path, what, *shapes)
    if not np.isin(array, (0, 1)).all():
        raise DataError(f"The {what} {path} must contain only 0 and 1, got other values.")
    return np.array(array, dtype=np.uint8, order="C")


def content(path: Path) -> bytes:
    """Return the contents of a file, decompressed if its suffix is `.gz`.

    Raises:
        DataError: The file is unreadable.
        LimitError: The decompressed contents exceed 1/MEMORY_SHARE of the machine's memory.
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
        raise LimitError(f"{path} exceeds {most / 1e9:.1f} GB, 1/{MEMORY_SHARE} of this machine's memory.")
    return b"".join(parts)


def is_idx(path: Path) -> bool:
    """Return whether a file (decompressed if its suffix is `.gz`) begins like an IDX file."""
    with contextlib.suppress(*UNREADABLE), (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        return bytes(file.read(2)) == b"\0\0"
    return False


def read_idx(path: Path) -> Array:
    """Return the array of an IDX file, the format of MNIST, plain or as `.gz`.

    Raises:
        DataError: The file is unreadable, or its header does not match its values.
        LimitError: The decompressed contents exceed 1/MEMORY_SHARE of the machine's memory.
    """
    data = content(path)
    with _one_error(f"IDX file {path}"):
        if (dtype := _IDX_TYPES.get(data[:3])) is None:
            raise ValueError("its first bytes are not those of an IDX file")
        shape = struct.unpack_from(f">{data[3]}I", data, 4)
        header, start = Header(shape, dtype), 4 + 4 * len(shape)
        if header.nbytes != len(data) - start:
            raise ValueError(f"expected {header.nbytes} bytes of values after the header, got {len(data) - start}")
        return np.frombuffer(data, dtype, offset=start).reshape(shape)


def read_arrays(
    source: Path | IO[bytes],
    check: Callable[[Mapping[str, Header]], None] = lambda _: None,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> dict[str, Array]:
    """Return the arrays of an `.npz` file, or of all `.npy` files in a folder, by name.

    Args:
        source: The file or folder.
        check: Function that receives the headers of the selected arrays by name before values are read, and may raise.
        is_wanted: Function that selects arrays by name.

    Raises:
        DataError: The file is unreadable, or the values of an array are not plain.
        LimitError: The arrays exceed 1/MEMORY_SHARE of the machine's memory.
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
    """Return the names of all arrays in an `.npz` file. Raises DataError."""
    with _one_error(f"arrays in {source}"), contextlib.ExitStack() as stack:
        return [*_members(source, stack)]


def reason(error: Exception) -> str:
    """Return the message of an error as a clause, without a full stop."""
    return (getattr(error, "strerror", None) or str(error) or "it is damaged").rstrip(".")


@contextlib.contextmanager
def _one_error(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise DataError(f"Cannot read the {what}: {reason(error)}.") from error


def _members(source: Path | IO[bytes], stack: contextlib.ExitStack) -> dict[str, tuple[Opener, int]]:
    """Return a mapping from array names to (function that opens the array's file, size of the file in bytes)."""
    if isinstance(source, Path) and source.is_dir():
        return {file.stem: (partial(io.FileIO, file), file.stat().st_size) for file in sorted(source.glob("*.npy"))}
    try:
        archive = stack.enter_context(zipfile.ZipFile(source))
    except zipfile.BadZipFile as error:
        raise ValueError(f"expected an .npz file or a folder of .npy files ({error})") from error
    infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    return {info.filename.removesuffix(".npy"): (partial(archive.open, info), info.file_size) for info in infos}


def _header(opener: Opener, size: int) -> Header:
    """Read the header of a file of `size` bytes. Raises ValueError for a malformed header, or errors in UNREADABLE."""
    with opener() as file:
        magic = file.read(np.lib.format.MAGIC_LEN)
        if not magic.startswith(np.lib.format.MAGIC_PREFIX):
            raise ValueError("it is an archive" if magic.startswith(b"PK") else _EXPECTED)
        try:
            version = np.lib.format.read_magic(io.BytesIO(magic))
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
        except _MALFORMED as error:
            raise ValueError(f"{_EXPECTED}, since its header is damaged") from error
        header = Header(shape, dtype)
        if dtype.hasobject or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError(_EXPECTED)
        if header.nbytes > size - file.tell():
            raise ValueError(f"expected {header.nbytes} bytes of values after the header, got {size - file.tell()}")
        return header


def _check_memory(source: Path | IO[bytes], headers: Mapping[str, Header]) -> None:
    """Raise LimitError if the arrays in total exceed 1/MEMORY_SHARE of the machine's memory."""
    needed = sum(header.nbytes for header in headers.values())
    memory = physical_memory()
    if memory is not None and MEMORY_SHARE * needed > memory:
        samples = max(header.shape[0] for header in headers.values() if header.shape)
        raise LimitError(
            f"The samples in {source} require {needed / 1e9:.1f} GB, more than 1/{MEMORY_SHARE} of this machine's "
            f"{memory / 1e9:.1f} GB: at most {memory * samples // (MEMORY_SHARE * needed)} of {samples} samples fit."
        )
