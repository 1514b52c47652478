"""The time on the device is measured: timestamps around each group of dispatches, and what bounds every step.

A group is a run of dispatches of one kernel. Each gets a pass of its own, because WebGPU puts timestamps at
the ends of passes; where the adapter has none, each group is submitted alone and the host's clock is read.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from difflogic.gpu.adapter import TIMESTAMPS, Adapter, open_device
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.probes import AnyShader
from difflogic.gpu.shaders import Source
from difflogic.gpu.submit import Dispatch, encode_pass

COPY_BYTES = 64 << 20
EMPTY_DISPATCHES = 1000
ROUND_TRIPS = 3
"""The shortest of so many counts: never more than what a submit with work spends on it."""
MOST_QUERIES = 4096
"""What every WebGPU implementation holds in one query set."""

EMPTY = """
@group(0) @binding(0) var<storage, read_write> word: array<u32>;
@compute @workgroup_size(1) fn main() { word[0] += 1u; }
"""
"""A kernel that does next to nothing, but must wait for the one before it."""


@dataclass(frozen=True)
class DeviceTimes:
    """Seconds of one run of a dispatch list, in the mean over a submit; waiting includes the device's work."""

    kernels: dict[str, float]
    counts: dict[str, int]
    """Dispatches of each kernel."""
    encode: float
    submit: float
    wait: float
    timestamps: bool
    """False where the host's clock timed the kernels: each then includes a round trip."""
    gaps: float = 0.0
    """From the end of a group of dispatches to the beginning of the next; only timestamps tell."""
    round_trip: float = 0.0
    """Waiting for a submit that does nothing, and reading it back."""

    @property
    def wall(self) -> float:
        return self.encode + self.submit + self.wait


class Timer:
    """Measures one dispatch list, `repeat` runs to a submit."""

    def __init__(self, device: GpuDevice, dispatches: Sequence[Dispatch], repeat: int = 1) -> None:
        import wgpu

        self.device = device
        self._groups = [(kernel, list(group)) for kernel, group in groupby(dispatches, key=lambda each: each.kernel)]
        self._timestamps = TIMESTAMPS in device.handle.features
        # Two timestamps to a group, and a query set holds so many.
        self._repeat = max(1, min(repeat, MOST_QUERIES // (2 * len(self._groups))))
        queries = 2 * len(self._groups) * self._repeat
        size = 8 * queries
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._ticks = device.handle.create_buffer(label="ticks", size=size, usage=usage)
        self._staging = device.staging("ticks staging", size)
        self._queries = (
            device.handle.create_query_set(label="ticks", type="timestamp", count=queries) if self._timestamps else None
        )

    def measure(self) -> DeviceTimes:
        """One submit; the work is really done, so that a train step trains."""
        encode, submit, wait, ticks = self._submit(self._encode)
        gaps = round_trip = 0.0
        if self._timestamps:
            gaps = float(np.maximum(ticks[2::2] - ticks[1:-1:2], 0).sum()) * _period(self.device)
            round_trip = min(self._submit(lambda encoder: None)[2] for _ in range(ROUND_TRIPS))
            # Ticks alternate: a group begins, the group ends. Between an end and the next beginning lies a gap.
            spans = (ticks[1::2] - ticks[0::2]).reshape(self._repeat, -1) * _period(self.device)
            seconds = spans.mean(axis=0)
        else:
            seconds = np.array([self._alone(group) for _, group in self._groups])
        kernels: dict[str, float] = {}
        counts: dict[str, int] = {}
        for (kernel, group), each in zip(self._groups, seconds, strict=True):
            kernels[kernel] = kernels.get(kernel, 0.0) + float(each)
            counts[kernel] = counts.get(kernel, 0) + len(group)
        encode, submit, wait, gaps, round_trip = (
            each / self._repeat for each in (encode, submit, wait, gaps, round_trip)
        )
        return DeviceTimes(kernels, counts, encode, submit, wait, self._timestamps, gaps, round_trip)

    @property
    def gap_count(self) -> int:
        """Gaps of one run, with that before the next."""
        return len(self._groups) - (self._repeat == 1)

    def _submit(self, encode: Callable[[Any], None]) -> tuple[float, float, float, Any]:
        """Seconds to encode, to submit and to wait; and the timestamps."""
        begin = time.perf_counter()
        encoder = self.device.handle.create_command_encoder()
        encode(encoder)
        encoder.copy_buffer_to_buffer(self._ticks, 0, self._staging, 0, self._ticks.size)
        commands = encoder.finish()
        encoded = time.perf_counter()
        self.device.queue.submit([commands])
        submitted = time.perf_counter()
        ticks = self.device.read_staging(self._staging, self._ticks.size, np.int64, "timing")
        return encoded - begin, submitted - encoded, time.perf_counter() - submitted, ticks

    def _encode(self, encoder: Any) -> None:
        if self._queries is None:
            for _ in range(self._repeat):
                encode_pass(encoder, [each for _, group in self._groups for each in group])
            return
        query = 0
        for _ in range(self._repeat):
            for _, group in self._groups:
                ends = {"beginning_of_pass_write_index": query, "end_of_pass_write_index": query + 1}
                encode_pass(encoder, group, {"query_set": self._queries, **ends})
                query += 2
        encoder.resolve_query_set(self._queries, 0, query, self._ticks, 0)

    def _alone(self, group: Sequence[Dispatch]) -> float:
        return sum(self._submit(lambda encoder: encode_pass(encoder, group))[:3])

    def close(self) -> None:
        for each in (self._ticks, self._staging, *([self._queries] if self._queries else [])):
            each.destroy()


def _period(device: GpuDevice) -> float:
    """Seconds per tick: wgpu-native hands out the driver's ticks as they are."""
    from wgpu.backends.wgpu_native import extras

    return 1e-9 * float(extras.lib.wgpuQueueGetTimestampPeriod(device.queue._internal))


@dataclass(frozen=True)
class Rates:
    """The rates of a device are the best that it can do."""

    copy_bytes_per_s: float
    """A copy of one buffer to another; each byte counts twice, read and written."""
    dispatch_s: float
    """An empty dispatch that waits for the one before it."""
    round_trip_s: float
    """Submit, and read 4 bytes back."""
    open_s: float
    """Opening a device on an adapter that is known."""


def measure_rates(device: GpuDevice) -> Rates:
    """Some tens of milliseconds on hardware, about a second on software."""
    staging = device.staging("rates", 4)
    size = min(COPY_BYTES, device.limits["max-buffer-size"])
    source, target = device.buffer("copy source", size), device.buffer("copy target", size)

    def run(encode: Callable[[Any], None]) -> float:
        begin = time.perf_counter()
        encoder = device.handle.create_command_encoder()
        encode(encoder)
        encoder.copy_buffer_to_buffer(source, 0, staging, 0, 4)
        device.queue.submit([encoder.finish()])
        device.read_staging(staging, 4, np.uint32, "timing")
        return time.perf_counter() - begin

    round_trip = statistics.median(run(lambda encoder: None) for _ in range(20))

    def copies(count: int) -> Callable[[Any], None]:
        def encode(encoder: Any) -> None:
            for _ in range(count):
                encoder.copy_buffer_to_buffer(source, 0, target, 0, size)

        return encode

    # As many copies to a submit as take some 50 ms, and the shortest of five: what disturbs only makes it longer.
    once = max(run(copies(1)) for _ in range(2))
    count = max(1, min(256, int(0.05 / once)))
    copying = min(run(copies(count)) for _ in range(5))
    shader = AnyShader(device, Source("empty", EMPTY, ()), [np.zeros(1, dtype=np.uint32)], uniforms=0)
    dispatches = [shader.dispatch([0], (1, 1))] * EMPTY_DISPATCHES
    empty = [run(lambda encoder: encode_pass(encoder, dispatches)) for _ in range(4)][1:]
    shader.close()
    for buffer in (staging, source, target):
        buffer.destroy()
    return Rates(
        copy_bytes_per_s=2 * size * count / max(copying - round_trip, 1e-9),
        dispatch_s=max(statistics.median(empty) - round_trip, 0.0) / EMPTY_DISPATCHES,
        round_trip_s=round_trip,
        open_s=statistics.median(_opening(device.adapter) for _ in range(3)),
    )


def _opening(adapter: Adapter) -> float:
    begin = time.perf_counter()
    handle = open_device(adapter)
    seconds = time.perf_counter() - begin
    handle.destroy()
    return seconds
