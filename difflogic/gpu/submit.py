"""Encode and submit dispatches, dividing long work into submits that are short enough for watchdogs and signals."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from difflogic.gpu.device import GpuDevice

SUBMIT_SECONDS = 0.08
"""Target duration of a submit in seconds: long enough to hide its overhead, short enough for signals and watchdogs."""


class Dispatch(NamedTuple):
    """Dispatch of a kernel with `x * y` workgroups."""

    kernel: str
    pipeline: Any
    bind_group: Any
    x: int
    y: int
    work: int = 0
    """Approximate number of gate evaluations, or 0 if the dispatch is short compared with a fused step."""


def encode(device: GpuDevice, dispatches: Sequence[Dispatch]) -> Any:
    """Return a command encoder with all dispatches in one compute pass."""
    encoder = device.handle.create_command_encoder()
    encode_pass(encoder, dispatches)
    return encoder


def encode_pass(encoder: Any, dispatches: Sequence[Dispatch], timestamps: dict[str, Any] | None = None) -> None:
    """Encode the dispatches as one compute pass, setting the pipeline only when it changes."""
    # Calls the library directly: wgpu-py's methods check for an error after each call, which takes 3.8 us per dispatch
    # instead of 1.1, and an error within a pass is only reported when its encoder is finished.
    from wgpu.backends.wgpu_native import ffi, lib

    compute_pass = encoder.begin_compute_pass(timestamp_writes=timestamps)
    handle, current = compute_pass._internal, None
    for dispatch in dispatches:
        if dispatch.pipeline is not current:
            lib.wgpuComputePassEncoderSetPipeline(handle, dispatch.pipeline._internal)
            current = dispatch.pipeline
        lib.wgpuComputePassEncoderSetBindGroup(handle, 0, dispatch.bind_group._internal, 0, ffi.NULL)
        lib.wgpuComputePassEncoderDispatchWorkgroups(handle, dispatch.x, dispatch.y, 1)
    compute_pass.end()


class SubmitQueue:
    """Queue that divides dispatch lists into submits by their work, adapting to the measured speed."""

    def __init__(self, device: GpuDevice, marked: Any, least: int) -> None:
        """Create a queue that never divides work up to `least`; each submit copies `marked` last, to signal its end."""
        self.device, self._marked, self._least = device, marked, least
        self._most = least
        self._marks = [device.staging("mark", 4) for _ in range(2)]
        self._under_way: list[Any] = []

    def pieces(self, dispatches: Sequence[Dispatch]) -> list[list[Dispatch]]:
        """Divide dispatches into lists, one per submit."""
        return cut(dispatches, self._most)

    def submit(self, pieces: Sequence[Sequence[Dispatch]]) -> None:
        """Queue each piece as a submit, waiting until at most two are pending."""
        for piece in pieces:
            mark = self._free_mark()
            encoder = encode(self.device, piece)
            encoder.copy_buffer_to_buffer(self._marked, 0, mark, 0, 4)
            self.device.queue.submit([encoder.finish()])
            self._under_way.append(mark)

    def _free_mark(self) -> Any:
        """Return a staging buffer that no pending submit uses, waiting for the oldest submit if all are in use."""
        if len(self._under_way) < len(self._marks):
            return next(mark for mark in self._marks if mark not in self._under_way)
        # Waiting for the oldest leaves the device one submit to work on while the next is encoded.
        mark = self._under_way.pop(0)
        self.device.read_staging(mark, 4, np.uint32, "pacing")
        return mark

    def learn(self, dispatches: Sequence[Dispatch], seconds: float) -> None:
        """Adapt the maximum work per submit to the `seconds` that `dispatches` took."""
        work = sum(dispatch.work for dispatch in dispatches)
        # Only the last measurement counts, since a machine that becomes busy slows down from one submit to the next.
        self._most = max(self._least, int(work * SUBMIT_SECONDS / max(seconds, 1e-6)))

    def close(self) -> None:
        """Free the staging buffers. All submitted work must be done."""
        for mark in self._marks:
            mark.destroy()


def cut(dispatches: Sequence[Dispatch], most: int) -> list[list[Dispatch]]:
    """Divide the list into pieces with a work of at most `most`; a dispatch with more work forms a separate piece."""
    pieces: list[list[Dispatch]] = [[]]
    work = 0
    for dispatch in dispatches:
        # No piece is empty, and dispatches without counted work stay with the previous dispatch.
        if work and work + dispatch.work > most:
            pieces.append([])
            work = 0
        pieces[-1].append(dispatch)
        work += dispatch.work
    return pieces
