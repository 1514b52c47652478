"""Dispatches and their commands: long work goes in several submits, each short enough for watchdogs and signals."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from difflogic.gpu.device import GpuDevice

SUBMIT_SECONDS = 0.08
"""Aim for the length of one submit: long enough to hide its cost, short enough for signals and watchdogs."""


class Dispatch(NamedTuple):
    """One line of a compute pass."""

    kernel: str
    pipeline: Any
    bind_group: Any
    x: int
    y: int
    work: int = 0
    """Gate evaluations, roughly; 0 for what is short beside the fused steps."""


def encode(device: GpuDevice, dispatches: Sequence[Dispatch]) -> Any:
    """A command encoder with all dispatches in one pass."""
    encoder = device.handle.create_command_encoder()
    encode_pass(encoder, dispatches)
    return encoder


def encode_pass(encoder: Any, dispatches: Sequence[Dispatch], timestamps: dict[str, Any] | None = None) -> None:
    """Encode one pass, its pipelines set where they change."""
    # Straight to the library: wgpu-py's own methods look for an error after each call, which takes 3.8 us a dispatch
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
    """Cuts dispatch lists by work, and learns from how long it takes how much makes a submit."""

    def __init__(self, device: GpuDevice, marked: Any, least: int) -> None:
        """Work up to `least` is never divided. `marked`: any buffer; a copied word of it says that a submit is done."""
        self.device, self._marked, self._least = device, marked, least
        self._most = least
        self._marks = [device.staging("mark", 4) for _ in range(2)]
        self._under_way: list[Any] = []

    def pieces(self, dispatches: Sequence[Dispatch]) -> list[list[Dispatch]]:
        """Return what each submit should do."""
        return cut(dispatches, self._most)

    def submit(self, pieces: Sequence[Sequence[Dispatch]]) -> None:
        """Queue pieces, a submit each, waiting for those before the last two."""
        for piece in pieces:
            mark = self._free_mark()
            encoder = encode(self.device, piece)
            encoder.copy_buffer_to_buffer(self._marked, 0, mark, 0, 4)
            self.device.queue.submit([encoder.finish()])
            self._under_way.append(mark)

    def _free_mark(self) -> Any:
        """A mark that no submit under way uses: with two of them, the first is waited for."""
        if len(self._under_way) < len(self._marks):
            return next(mark for mark in self._marks if mark not in self._under_way)
        # Waiting for the oldest leaves one submit for the device to work on while the next is encoded.
        mark = self._under_way.pop(0)
        self.device.read_staging(mark, 4, np.uint32, "pacing")
        return mark

    def learn(self, dispatches: Sequence[Dispatch], seconds: float) -> None:
        """Size submits by what this work took."""
        work = sum(dispatch.work for dispatch in dispatches)
        # By the last measurement alone: a machine that becomes busy slows work down from one submit to the next.
        self._most = max(self._least, int(work * SUBMIT_SECONDS / max(seconds, 1e-6)))

    def close(self) -> None:
        """Free the marks. Only after everything submitted has been waited for."""
        for mark in self._marks:
            mark.destroy()


def cut(dispatches: Sequence[Dispatch], most: int) -> list[list[Dispatch]]:
    """The list in pieces, each of at most so much work or of one dispatch."""
    pieces: list[list[Dispatch]] = [[]]
    work = 0
    for dispatch in dispatches:
        # Never an empty piece, and what is short goes with what it follows: it has no work of its own to count.
        if work and work + dispatch.work > most:
            pieces.append([])
            work = 0
        pieces[-1].append(dispatch)
        work += dispatch.work
    return pieces
