"""Read and write safetensors files with checksums in the metadata: a SHA-256 of every array and of the file.

`sha256.NAME` covers an array's type, shape and bytes; `sha256.file` covers the file with its own 64 digits as zeros, so
that no byte can change unnoticed, the header's included.
"""

import hashlib
import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

Arrays = dict[str, npt.NDArray[Any]]

_BLANK = b"0" * 64
_FILE_CHECKSUM = re.compile(rb'"sha256\.file":"([0-9a-f]{64})"')
_LENGTH_BYTES = 8
"""Length of the header's length, a little-endian uint64."""


class ChecksumError(ValueError):
    """Error for altered bytes; the message says where, as the end of a sentence."""


def encode(arrays: Arrays, metadata: dict[str, str]) -> bytes:
    """Return a file with checksums of `arrays` (any shape, little-endian) and `metadata` (names without `sha256.`)."""
    digests = {f"sha256.{name}": _digest(array) for name, array in arrays.items()}
    blank = {"sha256.file": _BLANK.decode()}
    data = safetensors.numpy.save(
        {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()},
        metadata=metadata | digests | blank,
    )
    header = _sorted_header(data)
    # The file's checksum cannot cover its own digits.
    content = bytearray(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
    content += memoryview(data)[_LENGTH_BYTES + len(_header(data)) :]
    start = _checksum_start(content)
    content[start : start + len(_BLANK)] = _file_digest(content, start)
    return bytes(content)


def decode(data: bytes) -> Arrays:
    """Return the arrays of a file. Raises ChecksumError if a byte is not the original one."""
    start = _checksum_start(data)
    if start < 0 or data[start : start + len(_BLANK)] != _file_digest(data, start):
        raise ChecksumError(_damage(data))
    return safetensors.numpy.load(data)


def part_of(arrays: Arrays, prefix: str) -> Arrays:
    """Return the entries whose names begin with `prefix`, which is removed from the names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def peek(data: bytes, name: str) -> str | None:
    """Return the unchecked metadata value `name` as the header spells it, or None."""
    # Do not parse, since the header of a damaged file may not be JSON.
    match = re.search(rb'"%s":"([^"\\]*)"' % re.escape(name.encode()), _header(data))
    return match[1].decode(errors="replace") if match else None


def metadata(data: bytes) -> dict[str, str]:
    """Return the metadata of a file that `decode` has accepted."""
    return dict(json.loads(_header(data))["__metadata__"])


def is_whole(data: bytes) -> bool:
    """Return whether the header is valid JSON; entries that it lacks were then never written."""
    try:
        return isinstance(json.loads(_header(data)), dict)
    except (ValueError, RecursionError):
        return False


def _header(data: bytes | bytearray) -> bytes:
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    return bytes(data[_LENGTH_BYTES : _LENGTH_BYTES + length])


def _sorted_header(data: bytes) -> bytes:
    """Return the header with its metadata sorted: the library writes entries in another order each time."""
    header = json.loads(_header(data))
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    # Arrays begin at a multiple of eight bytes, as in the library.
    return text.ljust(-(-len(text) // _LENGTH_BYTES) * _LENGTH_BYTES)


def _checksum_start(data: bytes | bytearray) -> int:
    match = _FILE_CHECKSUM.search(_header(data))
    return match.start(1) + _LENGTH_BYTES if match else -1


def _file_digest(data: bytes | bytearray, start: int) -> bytes:
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(_BLANK)
    digest.update(memoryview(data)[start + len(_BLANK) :])  # no copy: a population's file is large
    return digest.hexdigest().encode()


def _digest(array: npt.NDArray[Any]) -> str:
    # The same bytes with another type or shape are another array.
    digest = hashlib.sha256(f"{array.dtype.str}{list(array.shape)}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _damage(data: bytes) -> str:
    try:
        arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        return f"it is truncated or its header is damaged ({error})"
    # The checksum of the file is quicker to check than those of all arrays.
    for name, array in arrays.items():
        if peek(data, f"sha256.{name}") != _digest(array):
            return f"the array {name} does not match its checksum"
    return "its header does not match its checksum"
