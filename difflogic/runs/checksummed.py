"""Reader and writer of safetensors files whose metadata contains SHA-256 checksums of every array and of the file.

`sha256.NAME` covers an array's type, shape and bytes. `sha256.file` covers the file with zeros in place of the 64
digits of this checksum, so that every changed byte is detected, also in the header.
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
"""Size in bytes of the field at the beginning of a file with the header's length, a little-endian uint64."""


class ChecksumError(ValueError):
    """Error for altered bytes; the message is a clause that names the affected part of the file."""


def encode(arrays: Arrays, metadata: dict[str, str]) -> bytes:
    """Return the contents of a file with `arrays` (little-endian, of any shape), `metadata` and checksums."""
    digests = {f"sha256.{name}": _digest(array) for name, array in arrays.items()}
    blank = {"sha256.file": _BLANK.decode()}
    data = safetensors.numpy.save(
        {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()},
        metadata=metadata | digests | blank,
    )
    header = _sorted_header(data)
    # The checksum of the file cannot cover its own digits.
    content = bytearray(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
    content += memoryview(data)[_LENGTH_BYTES + len(_header(data)) :]
    start = _checksum_start(content)
    content[start : start + len(_BLANK)] = _file_digest(content, start)
    return bytes(content)


def decode(data: bytes) -> Arrays:
    """Return the arrays by name in `data`, the contents of a file. Raises ChecksumError if a byte was altered."""
    start = _checksum_start(data)
    if start < 0 or data[start : start + len(_BLANK)] != _file_digest(data, start):
        raise ChecksumError(_damage(data))
    return safetensors.numpy.load(data)


def part_of(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin with `prefix`, by name without the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def peek(data: bytes, name: str) -> str | None:
    """Return the metadata value `name` without verifying checksums, or None if missing; works for damaged files."""
    # The header is not parsed, since in a damaged file it may not be JSON.
    match = re.search(rb'"%s":"([^"\\]*)"' % re.escape(name.encode()), _header(data))
    return match[1].decode(errors="replace") if match else None


def metadata(data: bytes) -> dict[str, str]:
    """Return the metadata in `data`, the contents of a file that `decode` has accepted."""
    return dict(json.loads(_header(data))["__metadata__"])


def is_whole(data: bytes) -> bool:
    """Return whether the header in `data` is valid JSON; if so, a missing metadata entry was never in the file."""
    try:
        return isinstance(json.loads(_header(data)), dict)
    except (ValueError, RecursionError):
        return False


def _header(data: bytes | bytearray) -> bytes:
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    return bytes(data[_LENGTH_BYTES : _LENGTH_BYTES + length])


def _sorted_header(data: bytes) -> bytes:
    """Return the header with sorted metadata, since safetensors writes metadata in random order."""
    header = json.loads(_header(data))
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    # Padding makes the arrays begin at a multiple of eight bytes, as in safetensors.
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
    # Type and shape are included, since they change the meaning of the bytes.
    digest = hashlib.sha256(f"{array.dtype.str}{list(array.shape)}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _damage(data: bytes) -> str:
    try:
        arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        return f"it is truncated or its header is damaged ({error})"
    # Checksums of arrays only serve to locate damage; verifying the checksum of the file is faster.
    for name, array in arrays.items():
        if peek(data, f"sha256.{name}") != _digest(array):
            return f"the array {name} does not match its checksum"
    return "its header does not match its checksum"
