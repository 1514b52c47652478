"""Buffers that are used again: making one costs more than most of what is computed into it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from difflogic.errors import LimitError
from difflogic.gpu.device import GpuDevice

LEAST_BYTES = 256
MOST_FREE_BYTES = 1 << 28
"""Free buffers beyond are left to the driver."""


class PooledBuffer:
    """A buffer that is lent, until nobody holds it any more."""

    __slots__ = ("_pool", "buffer")

    def __init__(self, pool: BufferPool, buffer: Any) -> None:
        self.buffer = buffer
        self._pool = pool

    def __del__(self) -> None:
        self._pool.give_back(self.buffer)


class BufferPool:
    """Storage buffers whose sizes are powers of two; commands of their next user come after those of the last."""

    def __init__(self, device: GpuDevice) -> None:
        self._device = device
        self._free: defaultdict[int, list[Any]] = defaultdict(list)
        self._free_bytes = 0
        self._most = min(device.limits["max-storage-buffer-binding-size"], device.limits["max-buffer-size"])

    def take(self, size: int) -> PooledBuffer:
        """A buffer of at least `size` bytes, with anything in it. Raises LimitError where the device has none."""
        if size > self._most:
            raise LimitError(
                f"An array of {size / 1e6:.0f} MB is too large for this device, which binds at most "
                f"{self._most / 1e6:.0f} MB: use smaller arrays, or the processor."
            )
        rounded = min(1 << (max(LEAST_BYTES, size) - 1).bit_length(), self._most)
        free = self._free[rounded]
        if free:
            self._free_bytes -= rounded
            return PooledBuffer(self, free.pop())
        return PooledBuffer(self, self._device.buffer("array", rounded))

    def give_back(self, buffer: Any) -> None:
        """Take a buffer back for its next user."""
        # Not destroyed beyond the bound: that would abort the process where commands that use it are yet to be
        # submitted. It goes when the last of them has.
        if self._free_bytes + buffer.size <= MOST_FREE_BYTES:
            self._free_bytes += buffer.size
            self._free[buffer.size].append(buffer)
