"""Pool of reusable GPU buffers, since creating a buffer takes longer than most computations on it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from difflogic.errors import LimitError
from difflogic.gpu.device import GpuDevice

LEAST_BYTES = 256
MOST_FREE_BYTES = 1 << 28
"""Maximum total size in bytes of the pool's free buffers; further buffers are released to the driver."""


class PooledBuffer:
    """Handle of a buffer, which is returned to its pool when the last reference to the handle is deleted."""

    __slots__ = ("_pool", "buffer")

    def __init__(self, pool: BufferPool, buffer: Any) -> None:
        self.buffer = buffer
        self._pool = pool

    def __del__(self) -> None:
        self._pool.give_back(self.buffer)


class BufferPool:
    """Pool of storage buffers whose sizes are powers of two.

    Commands run in order, so a buffer may be reused while earlier commands that read it are still pending.
    """

    def __init__(self, device: GpuDevice) -> None:
        self._device = device
        self._free: defaultdict[int, list[Any]] = defaultdict(list)
        self._free_bytes = 0
        self._most = min(device.limits["max-storage-buffer-binding-size"], device.limits["max-buffer-size"])

    def take(self, size: int) -> PooledBuffer:
        """Return a buffer of at least `size` bytes with undefined contents. Raises LimitError if memory runs out."""
        if size > self._most:
            raise LimitError(
                f"An array of {size / 1e6:.0f} MB is too large for this device, which binds at most "
                f"{self._most / 1e6:.0f} MB: use smaller arrays or the CPU."
            )
        rounded = min(1 << (max(LEAST_BYTES, size) - 1).bit_length(), self._most)
        free = self._free[rounded]
        if free:
            self._free_bytes -= rounded
            return PooledBuffer(self, free.pop())
        return PooledBuffer(self, self._device.buffer("array", rounded))

    def give_back(self, buffer: Any) -> None:
        """Return `buffer` to the pool, which may hand it out again."""
        # A buffer in excess of the maximum is dropped, not destroyed: destroying it would abort the process if commands
        # that use it are not yet submitted. The driver frees it after the last of these commands.
        if self._free_bytes + buffer.size <= MOST_FREE_BYTES:
            self._free_bytes += buffer.size
            self._free[buffer.size].append(buffer)
